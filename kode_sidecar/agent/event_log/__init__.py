"""The numbered events of a session, published once and stored. See README.md."""

from kode_sidecar.agent.event_log.activity_log import ActivityLog, LoggedModel
from kode_sidecar.agent.event_log.history import LOSS, EventHistory, OpenMessage
from kode_sidecar.agent.event_log.records import (
    NewSession,
    OpenedSession,
    SessionDefaults,
)
from kode_sidecar.agent.event_log.stream import SessionStream

__all__ = [
    "LOSS",
    "ActivityLog",
    "EventHistory",
    "LoggedModel",
    "NewSession",
    "OpenMessage",
    "OpenedSession",
    "SessionDefaults",
    "SessionStream",
]
