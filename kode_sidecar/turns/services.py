"""What every session shares, and what the tools of one turn act on."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.compaction import CompactionTexts
from kode_sidecar.context.fitting import is_prompt
from kode_sidecar.context.memory import MemoryNote
from kode_sidecar.context.reminders import EditorNote
from kode_sidecar.domain.agent_event import Notice
from kode_sidecar.domain.message import Block, Message, TextBlock
from kode_sidecar.edits import ChangeSets, EditLocks
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import SessionRecords
from kode_sidecar.event_log.editor_port import EditorPort
from kode_sidecar.kernel.contracts import (
    Clock,
    Emit,
    Incoming,
    ModelClient,
    ModelRequest,
    NewId,
    Tool,
)
from kode_sidecar.permissions import UserQuestions
from kode_sidecar.protocol.session import Mode
from kode_sidecar.protocol.turn import TurnOptions
from kode_sidecar.records.json_log import JsonLog
from kode_sidecar.turns.context import ContextWindow, LearnedRates, ReturnsThinking, TurnContext
from kode_sidecar.workspace.workspace import Workspace


@dataclass(frozen=True)
class ToolScope:
    """What the tools of one turn act on: the turn and its session."""

    context: TurnContext
    change_sets: ChangeSets
    emit: Emit
    records: SessionRecords


Recall = Callable[[str, Collection[str]], Awaitable[MemoryNote | None]]
"""`(prompt, ids)`: what is remembered for a prompt, but for these. Raises KodeError."""

_IDS = "memoryIds"


async def recall(context: TurnContext, ask: Recall, emit: Emit) -> None:
    """Before a turn's first step. Memory that fails is told to the user, and the turn goes on."""
    prompt = context.shown[-1] if context.shown else None
    if prompt is None or not is_prompt(prompt):
        return
    try:
        remembered = await remembered_for(prompt.content, context.shown, ask)
    except KodeError as error:
        text = f"{error.message} The turn goes on without what is remembered."
        emit(Notice(turn_id=context.turn_id, code=error.code, message=text, level="warning"))
        return
    if remembered is not None:
        context.remember(remembered)


async def remembered_for(
    blocks: Sequence[Block], shown: Sequence[Message], ask: Recall
) -> Incoming | None:
    """What to tell beside a prompt; what the messages that the model gets say is not told again.

    Raises KodeError as `Recall` does.
    """
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    if not text:
        return None
    reminders = (message for message in shown if not is_prompt(message))
    told = {str(memory_id) for one in reminders for memory_id in one.meta.get(_IDS, ())}
    note = await ask(text, told)
    if note is None:
        return None
    meta = {"origin": "reminder", _IDS: list(note.ids)}
    return Incoming("user", (TextBlock(text=note.text),), meta)


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
