"""The conversation with the user. See README.md; enter here only."""

from kode_sidecar.main_session.change_sets import ChangeSets
from kode_sidecar.main_session.decisions import EditLocks
from kode_sidecar.main_session.services import SessionDefaults, SessionRecords, SessionServices
from kode_sidecar.main_session.session_registry import SessionRegistry
from kode_sidecar.main_session.toolset import Toolbox

__all__ = [
    "ChangeSets",
    "EditLocks",
    "SessionDefaults",
    "SessionRecords",
    "SessionRegistry",
    "SessionServices",
    "Toolbox",
]
