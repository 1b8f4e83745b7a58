"""A session as it is opened or made: its files, and the options it runs with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.agent.context.agents import AgentProfile, agent_profile
from kode_sidecar.agent.event_log.history import EventHistory
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles
from kode_sidecar.infrastructure.records.spending import Spent


@dataclass(frozen=True)
class OpenedSession:
    """The open files of a session, and what earlier processes left in them."""

    records: ConversationFiles
    conversation: Conversation = field(default_factory=Conversation)
    history: EventHistory = field(default_factory=EventHistory)
    scouts_spent: Sequence[Spent] = ()


@dataclass
class SessionDefaults:
    """Options from the settings, for what a session leaves open; the editor may change three.

    `agents` are the agents of the user's own, as written in the settings.
    """

    agent: str
    mode: Mode
    model: str
    window_messages: int
    agents: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def profile(self, name: str) -> AgentProfile:
        """Return the agent of that name. Raises KodeError `ConfigInvalid`."""
        return agent_profile(name, self.window_messages, self.agents)


@dataclass(frozen=True)
class NewSession:
    """A session that exists and has not run in this process yet, and the options it runs with.

    `defaults` are for what its head leaves open.
    """

    opened: OpenedSession
    agent: AgentProfile
    mode: Mode
    model: str
    defaults: SessionDefaults

    @property
    def id(self) -> str:
        """Its id."""
        return self.opened.records.meta.id
