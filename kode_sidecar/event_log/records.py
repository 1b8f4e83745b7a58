"""What a session is made of before its first turn: its files and how it was asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kode_sidecar.context.agents import AgentProfile, agent_profile
from kode_sidecar.domain.agent_event import Event
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Blob, Message
from kode_sidecar.event_log.history import EventHistory
from kode_sidecar.protocol.session import Mode
from kode_sidecar.records.conversation_meta import ConversationMeta
from kode_sidecar.records.spending import Spent


class MessageRecord(Protocol):
    """The truth of what was said in one session."""

    @property
    def meta(self) -> ConversationMeta:
        """The session's head as last written."""
        ...

    def append(self, message: Message) -> None:
        """Write one finished message. Raises KodeError `Storage`."""
        ...

    def rename(self, title: str) -> None:
        """Give the session a title. Raises KodeError `Storage`."""
        ...

    def write_meta(self, meta: ConversationMeta) -> None:
        """Take another head; it is durable after the next save."""
        ...


class ScoutLog(Protocol):
    """What one scout said and was told."""

    def append(self, message: Message) -> None:
        """Write one finished message. Raises KodeError `Storage`."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class EventRecord(Protocol):
    """The truth of what was sent in one session."""

    @property
    def last_seq(self) -> int:
        """Number of the newest event, 0 before the first."""
        ...

    def append(self, event: Event) -> None:
        """Write one numbered event. Raises KodeError `Storage`."""
        ...


@dataclass(frozen=True)
class SessionRecords:
    """One session's files. `save` makes all that was written durable; KodeError `Storage`.

    `open_scout_log` makes the record of a scout; `close` releases all but those.
    """

    messages: MessageRecord
    journal: EventRecord
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
