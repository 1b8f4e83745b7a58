"""A created or opened session: its files, and the options it runs with."""

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
    """The open files of a session, and the content that earlier processes wrote."""

    records: ConversationFiles
    conversation: Conversation = field(default_factory=Conversation)
    history: EventHistory = field(default_factory=EventHistory)
    scouts_spent: Sequence[Spent] = ()


@dataclass
class SessionDefaults:
    """Options from the settings, for sessions that set none; the editor may change three.

    `agents` are the user's own agents, as written in the settings.
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
    """A session that has not run in this process yet, and its options.

    `defaults` apply to what its metadata leaves open.
    """

    opened: OpenedSession
    agent: AgentProfile
    mode: Mode
    model: str
    defaults: SessionDefaults

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.opened.records.meta.id
