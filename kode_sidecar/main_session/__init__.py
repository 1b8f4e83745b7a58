"""The conversation with the user. See README.md; enter here, or by `agent` once it is loaded."""

from kode_sidecar.main_session.session_catalog import SessionCatalog
from kode_sidecar.main_session.session_records import (
    NewSession,
    SessionDefaults,
    SessionRecords,
)
from kode_sidecar.main_session.session_registry import SessionRegistry
from kode_sidecar.main_session.stored_messages import StoredMessages
from kode_sidecar.main_session.usage_report import UsageReport

__all__ = [
    "NewSession",
    "SessionCatalog",
    "SessionDefaults",
    "SessionRecords",
    "SessionRegistry",
    "StoredMessages",
    "UsageReport",
]
