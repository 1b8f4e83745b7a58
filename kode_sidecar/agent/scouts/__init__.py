"""Scouts: read-only agents that explore in parallel under hard limits. See README.md."""

from kode_sidecar.agent.scouts.report import as_json
from kode_sidecar.agent.scouts.scout_rules import MAX_TASKS
from kode_sidecar.agent.scouts.scout_run import Dispatch

__all__ = ["MAX_TASKS", "Dispatch", "as_json"]
