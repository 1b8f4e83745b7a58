"""The engine of the conversation, without an editor: the kernel's loop over one task (B12)."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kode_sidecar.context.builder import PromptContext
from kode_sidecar.context.task_history import TaskHistory
from kode_sidecar.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    Event,
    MessageAdded,
    MessageCompleted,
    ModelWaiting,
    Notice,
)
from kode_sidecar.domain.error_info import failure
from kode_sidecar.domain.message import Message, TextBlock, ToolUseBlock, Usage
from kode_sidecar.headless_run.contracts import (
    EngineNote,
    EngineRequest,
    EngineResult,
    ModelSaid,
    StepStarted,
    TextGrew,
)
from kode_sidecar.headless_run.engine_limits import within_limits
from kode_sidecar.kernel import run_turn
from kode_sidecar.kernel.contracts import (
    ArtifactSink,
    Clock,
    ModelClient,
    NewId,
    TurnEnd,
    TurnLimits,
    TurnScope,
)


@dataclass(frozen=True)
class NativeServices:
    """What the loop needs. `window` is how many tokens a model reads, None where nobody knows.

    `returns_thinking`: the model gets its reasoning back. `limit_instruction` is told at the
    step limit.
    """

    model: ModelClient
    clock: Clock
    new_id: NewId
    limit_instruction: str
    window: Callable[[str], int | None]
    returns_thinking: Callable[[str], bool]
    report_bug: Callable[[str, BaseException], None]
    silence_told: float = 10.0


class NativeEngine:
    """`contracts.Engine` on `kernel.run_turn`. `save_artifact` keeps what tools say too much."""

    name = "native"

    def __init__(self, services: NativeServices, save_artifact: ArtifactSink) -> None:
        self._services = services
        self._save_artifact = save_artifact

    async def run(self, request: EngineRequest) -> EngineResult:
        """See `contracts.Engine`."""
        services = self._services
        narrator = _Narrator(request)
        history = TaskHistory(
            self._prompt(request),
            narrator.keep,
            services.clock,
            services.new_id,
            meta={"runId": request.run_id},
            window=services.window(request.model),
        )
        block = TextBlock(id=services.new_id("block"), text=request.prompt)
        history.commit(msgspec.structs.replace(history.open("user", {}), content=(block,)))
        return await within_limits(request, self._work(request, history, narrator))

    async def _work(
        self, request: EngineRequest, history: TaskHistory, narrator: "_Narrator"
    ) -> EngineResult:
        services = self._services
        scope = TurnScope(
            session_id=request.session_id,
            turn_id=request.run_id,
            new_id=services.new_id,
            clock=services.clock,
            save_artifact=self._save_artifact,
            report_bug=services.report_bug,
            silence_told=services.silence_told,
        )
        limits = TurnLimits(request.max_steps, services.limit_instruction)
        end = await run_turn(
            scope, services.model, request.tools.offered, history, limits, narrator
        )
        return _result(end, history.last_words, narrator)

    def _prompt(self, request: EngineRequest) -> PromptContext:
        return PromptContext(
            session_id=request.session_id,
            model=request.model,
            system=request.system,
            temperature=request.temperature,
            top_p=request.top_p,
            max_tokens=request.max_tokens,
            returns_thinking=self._services.returns_thinking(request.model),
            stream=request.stream,
        )


def _result(end: TurnEnd, said: str, narrator: "_Narrator") -> EngineResult:
    steps, usage = narrator.steps, narrator.usage
    if end.stop_reason == "error":
        error = end.error or failure("InternalError", "The model's turn ended without a reason.")
        return EngineResult("failed", said, steps, usage, error)
    if end.stop_reason == "max_tool_rounds":
        return EngineResult("step_limit", said, steps, usage)
    if end.stop_reason == "max_tokens":
        text = "The model's answer was cut off at its token limit; raise model.max_tokens."
        return EngineResult("failed", said, steps, usage, failure("IncompleteAnswer", text))
    if end.stop_reason == "refusal":
        text = "The host filtered the model's answer; change the task or the model."
        return EngineResult("failed", said, steps, usage, failure("ContentFiltered", text))
    return EngineResult("finished", said, steps, usage)


class _Narrator:
    """The kernel's `Emit`: its events as an engine's. What the engine itself asks is no event."""

    def __init__(self, request: EngineRequest) -> None:
        self._request = request
        self._offered = frozenset(tool.name for tool in request.tools.offered)
        self._answers: set[str] = set()
        self._texts: set[str] = set()
        self._said: list[str] = []
        self._calls: list[str] = []
        self.steps = 0
        self.usage = Usage()

    def keep(self, message: Message) -> None:
        """Count what an answer used."""
        if message.usage is not None:
            self.usage = self.usage.plus(message.usage)

    def __call__(self, event: Event | BlockDelta) -> int:
        """See `kernel.contracts.Emit`."""
        match event:
            case BlockDelta():
                if self._request.stream and event.block_id in self._texts:
                    self._request.on_event(TextGrew(text=event.add))
            case MessageAdded(role="assistant"):
                self._start(event.message_id)
            case BlockStarted(block=TextBlock()) if event.message_id in self._answers:
                self._texts.add(event.block_id)
            case BlockCompleted() | BlockDropped():
                self._block(event)
            case MessageCompleted() if event.message_id in self._answers:
                self._end(event)
            case Notice():
                self._note(event.code, event.message)
            case ModelWaiting(state="retrying"):
                self._note("Retrying", event.message)
            case _:
                pass
        return 0

    async def flow(self) -> None:
        """There is always room: what is told was written already."""

    def _start(self, message_id: str) -> None:
        self._answers.add(message_id)
        self._said, self._calls = [], []
        self.steps += 1
        self._request.on_event(StepStarted(step=self.steps))

    def _block(self, event: BlockCompleted | BlockDropped) -> None:
        self._texts.discard(event.block_id)
        if isinstance(event, BlockDropped) or event.message_id not in self._answers:
            return
        if isinstance(event.block, TextBlock):
            self._said.append(event.block.text)
        elif isinstance(event.block, ToolUseBlock):
            call = event.block
            self._calls.append(call.name)
            if call.name not in self._offered:
                self._note("UnknownTool", f"The model asked for a tool {call.name!r}.")
            elif call.invalid_input is not None:
                self._note("InvalidArguments", f"{call.name} was called without valid JSON.")

    def _end(self, event: MessageCompleted) -> None:
        if event.is_api_error_message:
            return
        said = ModelSaid(
            step=self.steps,
            text="\n".join(self._said),
            calls=tuple(self._calls),
            model=event.model or "",
            usage=event.usage,
        )
        self._request.on_event(said)

    def _note(self, code: str, message: str) -> None:
        self._request.on_event(EngineNote(code=code, message=message))
