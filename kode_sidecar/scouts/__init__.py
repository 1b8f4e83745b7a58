"""Scouts: read-only agents that explore in parallel under hard limits. See README.md."""

from kode_sidecar.scouts.dispatch import Dispatch
from kode_sidecar.scouts.explore_report import as_json

__all__ = ["Dispatch", "as_json"]
