"""What every session shares, and what each one writes to. Built by the composition root."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.domain.agent_event import Event
from kode_sidecar.domain.message import Message
from kode_sidecar.kernel.contracts import ArtifactSink, Clock, ModelClient, NewId, Tool
from kode_sidecar.main_session.change_sets import ChangeSets
from kode_sidecar.main_session.contracts import EditorPort
from kode_sidecar.main_session.decisions import EditLocks
from kode_sidecar.protocol.session import Mode
from kode_sidecar.records.json_log import JsonLog
from kode_sidecar.workspace.workspace import Workspace


class MessageRecord(Protocol):
    """The truth of what was said in one session."""

    def append(self, message: Message) -> None:
        """Write one finished message. Raises KodeError `Storage`."""
        ...

    def rename(self, title: str) -> None:
        """Give the session a title. Raises KodeError `Storage`."""
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
    """One session's files. `save` makes all that was written durable; KodeError `Storage`."""

    messages: MessageRecord
    journal: EventRecord
    save: Callable[[], Awaitable[None]]
    save_artifact: ArtifactSink


@dataclass(frozen=True)
class SessionDefaults:
    """What a session uses when nobody says otherwise; from the settings."""

    agent: str
    mode: Mode
    model: str
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    permission_timeout: float


@dataclass(frozen=True)
class SessionServices:
    """Shared by all sessions.

    `system_prompt` is byte-stable during a session; `edit_locks` keep edits of one document
    apart; `toolset` gives the tools on offer to an agent in a mode; `provider` is the model's host,
    for the log; `report_bug` writes there too.
    """

    model: ModelClient
    editor: EditorPort
    workspace: Workspace
    clock: Clock
    new_id: NewId
    defaults: SessionDefaults
    system_prompt: Callable[[AgentProfile, Mode], str]
    limit_instruction: str
    edit_locks: EditLocks
    toolset: Callable[[AgentProfile, Mode, ChangeSets], Sequence[Tool]]
    log: JsonLog
    provider: str
    report_bug: Callable[[str, BaseException], None]
