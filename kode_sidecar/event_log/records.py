"""What a session is made of before its first turn: its files and how it was asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.context.agents import AgentProfile, agent_profile
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Blob
from kode_sidecar.event_log.history import EventHistory
from kode_sidecar.protocol.session import Mode
from kode_sidecar.records.conversation_files import ConversationFiles, ScoutLog
from kode_sidecar.records.journal import Journal
from kode_sidecar.records.spending import Spent


@dataclass(frozen=True)
class SessionRecords:
    """One session's files. `save` makes all that was written durable; KodeError `Storage`.

    `open_scout_log` makes the record of a scout; `close` releases all but those.
    """

    messages: ConversationFiles
    journal: Journal
    save: Callable[[], Awaitable[None]]
    save_artifact: Callable[[str], Blob]
    open_scout_log: Callable[[str], ScoutLog]
    close: Callable[[], None]


@dataclass(frozen=True)
class OpenedSession:
    """The files of a session of an earlier process, and what is in them."""

    records: SessionRecords
    conversation: Conversation
    history: EventHistory
    scouts_spent: Sequence[Spent] = ()


@dataclass(frozen=True)
class SessionDefaults:
    """What a session uses when nobody says otherwise; from the settings.

    `agents` are the user's own, as written.
    """

    agent: str
    mode: Mode
    model: str
    window_messages: int
    agents: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def profile(self, name: str) -> AgentProfile:
        """The agent of that name. Raises KodeError `ConfigInvalid`."""
        return agent_profile(name, self.window_messages, self.agents)


@dataclass(frozen=True)
class NewSession:
    """A session that exists and has not run in this process yet.

    `defaults` are for what its head leaves open; `conversation`, `history` and what scouts spent
    are what earlier processes left.
    """

    id: str
    title: str
    agent: AgentProfile
    mode: Mode
    model: str
    records: SessionRecords
    defaults: SessionDefaults
    conversation: Conversation = field(default_factory=Conversation)
    history: EventHistory = field(default_factory=EventHistory)
    scouts_spent: Sequence[Spent] = ()
