"""Conversations: opened, listed, read, branched, copied, repaired. See README.md.

`session` and `repair` are imported directly: code that runs a session loads with the agent.
"""

from kode_sidecar.agent.sessions.attaching import FollowedSessions, SessionAttachments
from kode_sidecar.agent.sessions.catalog import SessionCatalog
from kode_sidecar.agent.sessions.copies import SessionCopies
from kode_sidecar.agent.sessions.files import JOB, SessionFolders
from kode_sidecar.agent.sessions.reading import StoredMessages
from kode_sidecar.agent.sessions.registry import SessionRegistry
from kode_sidecar.agent.sessions.usage import UsageReport

__all__ = [
    "JOB",
    "FollowedSessions",
    "SessionAttachments",
    "SessionCatalog",
    "SessionCopies",
    "SessionFolders",
    "SessionRegistry",
    "StoredMessages",
    "UsageReport",
]
