"""What an answer comes to, however it was cut: the common ground of our decoders and the SDKs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is the JSON text, "" for none."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """`end` is the unified finish reason, or the code of the failure; `raw_end` the host's word.

    `usage` counts the whole prompt, the answer, and what of the prompt was cached. `sealed` are
    the signatures of thinking blocks in order, `notices` the codes of what the user is told.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int, int] | None = None
    end: str = "stop"
    raw_end: str | None = "stop"
    sealed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    drops: int = 0


@dataclass(frozen=True)
class Stream:
    """The body of one answer, byte for byte, and what it means.

    `needs_done`: as Kimi, whose answers end with `[DONE]` only.
    """

    body: bytes
    says: Answer
    tools: frozenset[str] = field(default_factory=frozenset[str])
    needs_done: bool = False


def joined(events: Iterable[ModelEvent]) -> list[ModelEvent]:
    """Neighbouring growth of one kind as one event: the cuts of the bytes no longer show."""
    out: list[ModelEvent] = []
    for event in events:
        match out[-1] if out else None, event:
            case TextDelta(before), TextDelta(text):
                out[-1] = TextDelta(before + text)
            case ThinkingDelta(before), ThinkingDelta(text):
                out[-1] = ThinkingDelta(before + text)
            case ToolUseDelta(index, before), ToolUseDelta(other, text) if index == other:
                out[-1] = ToolUseDelta(index, before + text)
            case _:
                out.append(event)
    return out


def answer_of(events: Sequence[ModelEvent]) -> Answer:
    """What the events of one answer come to; of a dropped attempt nothing is left."""
    starts = [at for at, event in enumerate(events) if isinstance(event, ResponseStarted)]
    last = events[starts[-1] :] if starts else events
    names = {e.index: e for e in last if isinstance(e, ToolUseStarted)}
    arguments = dict.fromkeys(names, "")
    for event in last:
        if isinstance(event, ToolUseDelta):
            arguments[event.index] += event.json
    end = last[-1]
    assert isinstance(end, ResponseFinished | ResponseFailed)
    finished = isinstance(end, ResponseFinished)
    usages = [event.usage for event in last if isinstance(event, UsageReported)]
    return Answer(
        text="".join(event.text for event in last if isinstance(event, TextDelta)),
        thinking="".join(event.text for event in last if isinstance(event, ThinkingDelta)),
        calls=tuple(Call(e.tool_use_id, e.name, arguments[i]) for i, e in names.items()),
        usage=next(((u.input_tokens, u.output_tokens, u.cached_tokens) for u in usages), None),
        end=end.reason if finished else end.error.code,
        raw_end=end.raw_reason if finished else None,
        sealed=tuple(_seal(event) for event in last if isinstance(event, ThinkingSigned)),
        notices=tuple(event.code for event in last if isinstance(event, ModelNotice)),
        drops=sum(isinstance(event, AttemptDropped) for event in events),
    )


def _seal(event: ThinkingSigned) -> str:
    if event.opaque is None:
        return event.signature or ""
    return event.opaque["reasoning_item"].get("encrypted_content", "")
