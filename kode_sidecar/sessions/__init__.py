"""Conversations: opened, listed, read, branched, copied, repaired. See README.md."""

from kode_sidecar.sessions.attachments import SessionAttachments
from kode_sidecar.sessions.catalog import SessionCatalog
from kode_sidecar.sessions.copies import SessionCopies
from kode_sidecar.sessions.folders import SessionFolders
from kode_sidecar.sessions.reading import StoredMessages
from kode_sidecar.sessions.registry import SessionRegistry
from kode_sidecar.sessions.repair import repair_session
from kode_sidecar.sessions.session import Session
from kode_sidecar.sessions.usage import UsageReport

__all__ = [
    "Session",
    "SessionAttachments",
    "SessionCatalog",
    "SessionCopies",
    "SessionFolders",
    "SessionRegistry",
    "StoredMessages",
    "UsageReport",
    "repair_session",
]
