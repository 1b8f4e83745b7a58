"""Conversations: opened, listed, read, branched, copied, repaired. See README.md.

`session` and `repair` are second doors: what runs a session is loaded with the agent.
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
