"""A model whose every word is a step of the story."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import ToolResultBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.kernel.contracts import ModelRequest
from simulation.story import Step, Violation

Batch = Sequence[ModelEvent]


class SimulatedModel:
    """`kernel.contracts.ModelClient`. `may_start` is false from a cancel to the next prompt."""

    def __init__(self) -> None:
        self.may_start = True
        self.requests: list[ModelRequest] = []
        self._answers: list[asyncio.Queue[Batch]] = []
        self._calls = 0

    def missing(self, model: str) -> ErrorInfo | None:
        """Nothing is ever missing."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batch, None]:
        """Answer as the steps say."""
        if not self.may_start:
            raise Violation("something starts after a cancel", "the model is asked")
        _check_history(request)
        self.requests.append(request)
        answer: asyncio.Queue[Batch] = asyncio.Queue()
        self._answers.append(answer)
        try:
            yield [ResponseStarted("r", "m")]
            while True:
                batch = await answer.get()
                yield batch
                if isinstance(batch[-1], ResponseFinished | ResponseFailed):
                    return
        finally:
            self._answers.remove(answer)

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._answers)

    def say(self, step: Step) -> None:
        """The next word of the oldest answer that is under way."""
        if self._answers:
            self._answers[0].put_nowait(self._batch(step))

    def finish(self) -> None:
        """End every answer."""
        for answer in self._answers:
            answer.put_nowait([ResponseFinished("stop", "stop")])

    def _batch(self, step: Step) -> Batch:
        match step.word(0):
            case "text":
                return [TextDelta(f"word {step.number(1)} ")]
            case "stop":
                return [ResponseFinished("stop", "stop")]
            case "fail":
                return [ResponseFailed(failure("Provider", "The host is gone."))]
            case tool:
                return self._call(tool, step.number(1))

    def _call(self, tool: str, number: int) -> Batch:
        self._calls += 1
        mark = chr(0xAC00 + self._calls)
        name, arguments = {
            "edit": ("propose_edit", {"path": "a.txt", "edits": [_edit(number, mark)]}),
            "ask": ("ask_user", {"question": "Which?", "choices": ["one", "two"]}),
        }.get(tool, ("read_file", {"path": "a.txt"}))
        raw = json.dumps(arguments)
        return [
            ToolUseStarted(0, f"call-{self._calls}", name),
            ToolUseDelta(0, raw[: len(raw) // 2]),
            ToolUseDelta(0, raw[len(raw) // 2 :]),
            ResponseFinished("tool_calls", "tool_calls"),
        ]


def _edit(number: int, mark: str) -> dict[str, str]:
    line = f"line {chr(0x0410 + number % 4)}\n"
    return {"old": line, "new": f"{line}{mark} new\n"}


def _check_history(request: ModelRequest) -> None:
    """Every call of a tool is answered by the message right after it, once."""
    messages = [message for message in request.messages if message.content]
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        asked = [b.tool_use_id for b in message.content if isinstance(b, ToolUseBlock)]
        if not asked:
            continue
        blocks = following.content if following is not None else ()
        answered = [b.tool_use_id for b in blocks if isinstance(b, ToolResultBlock)]
        if answered != asked:
            raise Violation("a call has no result", f"{asked}, not {answered}")
