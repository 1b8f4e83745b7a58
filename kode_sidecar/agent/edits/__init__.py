"""Hunks: proposed, decided, sent, verified, undone. See README.md."""

from kode_sidecar.agent.edits.change_sets import ChangeSets
from kode_sidecar.agent.edits.services import EditLocks

__all__ = ["ChangeSets", "EditLocks"]
