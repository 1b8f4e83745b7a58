"""The conversation with the user. See README.md; enter here, or by `agent` once it is loaded."""

from kode_sidecar.main_session.attachments import SessionAttachments
from kode_sidecar.main_session.copies import SessionCopies
from kode_sidecar.main_session.session_catalog import SessionCatalog
from kode_sidecar.main_session.session_folders import SessionFolders
from kode_sidecar.main_session.session_records import (
    NewSession,
    OpenedSession,
    SessionDefaults,
)
from kode_sidecar.main_session.session_registry import SessionRegistry
from kode_sidecar.main_session.stored_messages import StoredMessages
from kode_sidecar.main_session.usage_report import UsageReport

__all__ = [
    "NewSession",
    "OpenedSession",
    "SessionAttachments",
    "SessionCatalog",
    "SessionCopies",
    "SessionDefaults",
    "SessionFolders",
    "SessionRegistry",
    "StoredMessages",
    "UsageReport",
]
