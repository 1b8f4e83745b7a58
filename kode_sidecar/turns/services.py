"""What every session shares. Built by the composition root."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.compaction import CompactionTexts
from kode_sidecar.context.editor_context import EditorNote
from kode_sidecar.edits import EditLocks
from kode_sidecar.event_log.editor_port import EditorPort
from kode_sidecar.kernel.contracts import (
    Clock,
    ModelClient,
    ModelRequest,
    NewId,
    Tool,
)
from kode_sidecar.permissions import UserQuestions
from kode_sidecar.protocol.session import Mode
from kode_sidecar.protocol.turn import TurnOptions
from kode_sidecar.records.json_log import JsonLog
from kode_sidecar.turns.recalling import Recall
from kode_sidecar.turns.token_meter import ContextWindow, LearnedRates, ReturnsThinking
from kode_sidecar.turns.tool_scope import ToolScope
from kode_sidecar.workspace.workspace import Workspace


@dataclass(frozen=True)
class EncodedRequest:
    """A request as it goes to the host: for which of its models, and the body."""

    model: str
    body: bytes


EncodeRequest = Callable[[ModelRequest], Awaitable[EncodedRequest]]


@dataclass(frozen=True)
class SessionServices:
    """Shared by all sessions.

    `editor_note` says what the user looks at now; `system_prompt` is byte-stable while the notes of
    the project and the skills are; `recall` says what is remembered for a prompt, `koding_note`
    what its options mean; `questions` are those that wait for the user; `context_window` is how
    much a model reads, `returns_thinking` whether it gets its reasoning back, `rates` what was
    learned of counting its tokens, `encode` a request as it is sent; `edit_locks` keep edits of one
    document apart; `toolset` gives the tools on offer to an agent in a mode. The user is told of a
    model that is silent for `silence_told` seconds. `provider` is who is asked for a model, for the
    log; `report_bug` writes there too.
    """

    model: ModelClient
    editor: EditorPort
    workspace: Workspace
    clock: Clock
    new_id: NewId
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    questions: UserQuestions
    silence_told: float
    editor_note: Callable[[], EditorNote | None]
    system_prompt: Callable[[AgentProfile, Mode], str]
    limit_instruction: str
    koding_note: Callable[[TurnOptions], str | None]
    compaction_texts: Callable[[], CompactionTexts]
    recall: Recall
    context_window: ContextWindow
    returns_thinking: ReturnsThinking
    rates: LearnedRates
    encode: EncodeRequest
    edit_locks: EditLocks
    toolset: Callable[[AgentProfile, Mode, ToolScope], Sequence[Tool]]
    log: JsonLog
    provider: Callable[[str], str]
    report_bug: Callable[[str, BaseException], None]
