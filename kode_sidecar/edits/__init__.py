"""Hunks: proposed, decided, sent, verified, undone. See README.md."""

from kode_sidecar.edits.change_sets import ChangeSets
from kode_sidecar.edits.edit_locks import EditLocks

__all__ = ["ChangeSets", "EditLocks"]
