"""The conversation with the user. See README.md; enter here, or by `agent` once it is loaded."""

from kode_sidecar.main_session.session_records import (
    NewSession,
    SessionDefaults,
    SessionRecords,
)
from kode_sidecar.main_session.session_registry import SessionRegistry

__all__ = ["NewSession", "SessionDefaults", "SessionRecords", "SessionRegistry"]
