"""What every session shares, and what the tools of one turn act on."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.budget import BudgetedModel, stricter
from kode_sidecar.agent.context.builder import Traits
from kode_sidecar.agent.context.compaction import CompactionTexts
from kode_sidecar.agent.context.memory import MemoryNote
from kode_sidecar.agent.context.reminders import EditorNote
from kode_sidecar.agent.context.surroundings import SystemPrompt
from kode_sidecar.agent.edits import ChangeSets, EditLocks
from kode_sidecar.agent.event_log import SessionStream
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions import PermissionGate, UserQuestions
from kode_sidecar.agent.tools.background import BackgroundCommands
from kode_sidecar.agent.turns.context import LearnedRates, TurnContext
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.budget import Budget
from kode_sidecar.core.domain.message import Block, Message, TextBlock, texts_of
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import (
    ArtifactSink,
    CallEnded,
    Clock,
    Emit,
    Incoming,
    ModelClient,
    ModelRequest,
    NewId,
    NextRound,
    RunCall,
    RunTurn,
    Sampling,
    Tool,
    ToolCall,
    ToolOutcome,
    ignore_outcome,
    run_call,
)
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.protocol.turn import TurnOptions
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles
from kode_sidecar.infrastructure.records.json_log import JsonLog
from kode_sidecar.infrastructure.workspace.workspace import Workspace

if TYPE_CHECKING:  # loaded when a prompt calls a verb
    from kode_sidecar.agent.verbs.calls import VerbCall


@dataclass
class HookScope:
    """What hooks get to know of one session. `begun`: those of its start have run."""

    session_id: str
    transcript: Path
    permissions: PermissionGate
    mode: Callable[[], Mode]
    emit: Emit
    begun: bool = False


class Hooks(Protocol):
    """The hooks of one session."""

    async def run_call(self, tool: Tool, params: Any, call: ToolCall, /) -> ToolOutcome:
        """Run a valid call of a tool, unless a hook forbids it."""
        ...

    async def before_prompt(self, text: str, *, resumed: bool) -> str | None:
        """Return what hooks say beside a prompt. Raises KodeError `Denied` if one forbids it."""
        ...

    async def before_compaction(self, turn_id: str) -> str | None:
        """Return why history may not be summed up now; None if it may."""
        ...

    def next_round(self, turn_id: str) -> NextRound | None:
        """Return what asks at the end of a turn whether it has to go on; None: nobody does."""
        ...


class NoHooks:
    """`Hooks` of a user who has none."""

    async def run_call(self, tool: Tool, params: Any, call: ToolCall, /) -> ToolOutcome:
        """Run the call."""
        return await tool.run(params, call)

    async def before_prompt(self, text: str, *, resumed: bool) -> str | None:
        """Say nothing."""

    async def before_compaction(self, turn_id: str) -> str | None:
        """Allow it."""

    def next_round(self, turn_id: str) -> NextRound | None:
        """Let the turn end."""


_NO_HOOKS = NoHooks()


def _no_hooks(_scope: HookScope) -> Hooks:
    return _NO_HOOKS


FindHooks = Callable[[HookScope], Hooks]
"""Returns the hooks of now. Raises KodeError `ConfigInvalid` for hooks that cannot be read."""


@dataclass(frozen=True)
class ToolScope:
    """What the tools of one session act on; `turn` is the one that calls them."""

    session_id: str
    turn: Callable[[], TurnContext]
    change_sets: ChangeSets
    emit: SessionStream
    records: ConversationFiles
    save_artifact: ArtifactSink
    commands: BackgroundCommands
    run_call: RunCall = run_call


OfferTools = Callable[[AgentProfile, Mode], Sequence[Tool]]
"""The tools on offer to an agent in a mode, in its own fixed order."""

CallVerb = Callable[[Sequence[Block]], Awaitable["VerbCall | None"]]
"""Returns what a prompt `/name` calls, None if nothing. Raises KodeError."""


async def _calls_nothing(_: Sequence[Block]) -> None:
    return None


Recall = Callable[[str, Collection[str]], Awaitable[MemoryNote | None]]
"""`(prompt, ids)`: what is remembered for a prompt, but for these. Raises KodeError."""

_IDS = "memoryIds"


async def recall(context: TurnContext, ask: Recall, emit: Emit) -> None:
    """Recall before a turn's first step. The user is notified of a failure; the turn goes on."""
    prompt = context.shown[-1] if context.shown else None
    if prompt is None or not prompt.is_prompt:
        return
    try:
        remembered = await remembered_for(prompt.content, context.shown, ask)
    except KodeError as error:
        text = f"{error.message} The turn goes on without what is remembered."
        emit(
            Notice(turn_id=context.turn_id, code="MemoryUnavailable", message=text, level="warning")
        )
        return
    if remembered is not None:
        context.remember(remembered)


async def remembered_for(
    blocks: Sequence[Block], shown: Sequence[Message], ask: Recall
) -> Incoming | None:
    """Return what goes beside a prompt, without what the messages that the model gets already say.

    Raises KodeError as `Recall` does.
    """
    text = "\n".join(texts_of(blocks))
    if not text:
        return None
    reminders = [one for one in shown if _IDS in one.meta and not one.is_prompt]
    reported = {str(memory_id) for one in reminders for memory_id in one.meta[_IDS]}
    note = await ask(text, reported)
    if note is None:
        return None
    meta = {"origin": "reminder", _IDS: list(note.ids)}
    return Incoming("user", (TextBlock(text=note.text),), meta)


# While so many rounds of the loop go by, as many requests of the client are read.
_ROUNDS_APART = 8


class Beginnings:
    """Lets turns begin some rounds of the loop apart, in order; one alone does not wait.

    To put a request together and send it is work of milliseconds. When a hundred turns begin at
    the same moment, whatever the client asks meanwhile is answered in between.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._rounds_left = 0

    async def wait(self) -> None:
        """Wait until it is this one's turn to begin."""
        if not self._rounds_left:
            self._keep_apart()
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        await place

    def _keep_apart(self) -> None:
        self._rounds_left = _ROUNDS_APART
        asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._rounds_left -= 1
        if self._rounds_left:
            asyncio.get_running_loop().call_soon(self._round)
            return
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # its turn was not cancelled
                place.set_result(None)
                self._keep_apart()
                return


@dataclass(frozen=True)
class RequestBody:
    """A request as it goes to the host: for which of its models, and the body."""

    model: str
    body: bytes


EncodeRequest = Callable[[ModelRequest], Awaitable[RequestBody]]


@dataclass(frozen=True)
class Budgets:
    """`own` is the user's; `model` keeps to them; `date` is the day that a day's limit is for."""

    model: BudgetedModel
    own: Budget | None
    date: Callable[[], str]

    async def limits(self, asked: Budget | None) -> Budget | None:
        """The limits of what comes next. Raises KodeError `InvalidParams`, `Storage`."""
        budget = stricter(self.own, asked)
        await self.model.look_up(budget, self.date())
        return budget


@dataclass(frozen=True)
class SessionServices:
    """Shared by all sessions.

    `editor_note` says what the user looks at now; `system_prompt` is what a session that begins now
    would send; `recall` says what is remembered for a prompt, `koding_note`
    what its options mean; `questions` are those that wait for the user; `rates` is what was learned
    of counting the tokens of models, `encode` a request as it is sent; `edit_locks` keep edits of
    one document apart, `beginnings` the first steps of turns; `tools` makes those of a session. The
    user is notified of a model that is silent for `silence_seconds`. `provider` is who is asked
    for a model, for the log; `report_bug` writes there too. `run_turn` is the loop of a turn,
    `stream` says whether answers come as they grow, `call_ended` gets what each call came to;
    `call_verb` fills in what a prompt `/name` calls, `hooks` finds the user's hooks of now.
    `save_artifact` stores what tools say beyond what the model reads, None: beside the session;
    `summary_model` is asked for summaries in place of the session's;
    `save_accepted` is the setting of that name, `seeing_models` returns the models that take
    pictures.
    """

    model: ModelClient
    editor: EditorPort
    workspace: Workspace
    clock: Clock
    new_id: NewId
    sampling: Sampling
    max_tokens: int | None
    questions: UserQuestions
    silence_seconds: float
    editor_note: Callable[[], EditorNote | None]
    system_prompt: Callable[[AgentProfile, Mode], SystemPrompt]
    limit_instruction: Callable[[], str]
    koding_note: Callable[[TurnOptions], str | None]
    compaction_texts: Callable[[], CompactionTexts]
    recall: Recall
    traits: Traits
    rates: LearnedRates
    encode: EncodeRequest
    edit_locks: EditLocks
    tools: Callable[[ToolScope], OfferTools]
    budgets: Budgets
    log: JsonLog
    provider: Callable[[str], str]
    report_bug: Callable[[str, BaseException], None]
    call_verb: CallVerb = _calls_nothing
    hooks: FindHooks = _no_hooks
    beginnings: Beginnings = field(default_factory=Beginnings)
    run_turn: RunTurn = run_turn
    stream: bool = True
    call_ended: CallEnded = ignore_outcome
    save_artifact: ArtifactSink | None = None
    save_accepted: Callable[[], bool] = lambda: True
    summary_model: str | None = None
    seeing_models: Callable[[], Sequence[str]] = tuple
