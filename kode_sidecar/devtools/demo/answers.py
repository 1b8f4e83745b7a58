"""Builds a model's answers as SSE bytes in Moonshot's wire format, for `ModelServer`.

Recording((
    answer(thinking("hm"), text("Let me look."), tool_call("read_file", {"path": "a.py"})),
    answer(text("Done.")),
))
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kode_sidecar.devtools.demo.model_server import Piece, RecordedResponse


@dataclass(frozen=True)
class DemoText:
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Thinking:
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class DemoCall:
    name: str
    arguments: tuple[str, ...]
    call_id: str | None


@dataclass(frozen=True)
class Hold:
    """A point where the answer waits for `ModelServer.release(name)`."""

    name: str


Part = DemoText | Thinking | DemoCall | Hold


@dataclass(frozen=True)
class TokenUsage:
    """Tokens as Moonshot counts: `cached` is part of `prompt`, `reasoning` of `completion`."""

    prompt: int = 100
    completion: int = 20
    cached: int = 0
    reasoning: int = 0

    def wire(self) -> dict[str, Any]:
        thought = {"completion_tokens_details": {"reasoning_tokens": self.reasoning}}
        return {
            **(thought if self.reasoning else {}),
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "cached_tokens": self.cached,
        }


def text(content: str, *, size: int = 4) -> DemoText:
    """Return answer text in fragments of `size` characters."""
    return DemoText(_cut(content, size))


def thinking(content: str, *, size: int = 4) -> Thinking:
    """Return reasoning in fragments of `size` characters; an empty text is one empty fragment."""
    return Thinking(_cut(content, size) or ("",))


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    call_id: str | None = None,
    size: int = 12,
) -> DemoCall:
    """Return a tool call; text `arguments` are sent unchanged. `call_id` defaults to `name:idx`."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return DemoCall(name, _cut(raw, size), call_id)


def hold(name: str) -> Hold:
    """Return a point where the stream waits until `ModelServer.release` lets it continue."""
    return Hold(name)


def answer(
    *parts: Part,
    usage: TokenUsage | None = TokenUsage(),
    finish: str | None = "",
    usage_chunk: bool = True,
    done: bool = True,
    model: str = "kimi-k2.6",
    response_id: str = "chatcmpl-66f1c0ffee00000000000001",
    delay_ms: float = 0,
) -> RecordedResponse:
    """Return one streamed answer, one piece per event.

    `finish` is derived from the parts unless given; None leaves it out. Usage is in the last
    choice and, with `usage_chunk`, again in a chunk of its own.
    """
    stream = _Stream(model, response_id, delay_ms)
    stream.delta({"role": "assistant", "content": ""})
    for part in parts:
        stream.part(part)
    if finish == "":
        finish = "tool_calls" if stream.calls else "stop"
    counted = usage.wire() if usage is not None else None
    if finish is not None:
        stream.delta({}, finish=finish, usage=counted)
    if counted is not None and usage_chunk:
        stream.event(stream.chunk(choices=[], usage=counted))
    if done:
        stream.send(b"data: [DONE]\n\n")
    return RecordedResponse(tuple(stream.pieces))


class _Stream:
    """Builds the chunks of one answer."""

    def __init__(self, model: str, response_id: str, delay_ms: float) -> None:
        self.pieces: list[Piece] = []
        self.calls = 0
        self._hold = ""
        self._model = model
        self._response_id = response_id
        self._delay_ms = delay_ms

    def part(self, part: Part) -> None:
        match part:
            case Hold(name):
                self._hold = name
            case DemoText(fragments):
                for fragment in fragments:
                    self.delta({"content": fragment})
            case Thinking(fragments):
                for fragment in fragments:
                    self.delta({"reasoning_content": fragment})
            case DemoCall():
                for fragment in _call_fragments(part, self.calls):
                    self.delta({"tool_calls": [fragment]})
                self.calls += 1

    def chunk(self, **fields: Any) -> dict[str, Any]:
        return {
            "id": self._response_id,
            "object": "chat.completion.chunk",
            "created": 1767225600,
            "model": self._model,
            "system_fingerprint": "fpv0_5f3d8e1a",
            **fields,
        }

    def delta(
        self,
        delta: dict[str, Any],
        finish: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
        if usage is not None:
            choice["usage"] = usage
        self.event(self.chunk(choices=[choice]))

    def event(self, body: dict[str, Any]) -> None:
        self.send(f"data: {_json(body)}\n\n".encode())

    def send(self, data: bytes) -> None:
        self.pieces.append(Piece(data, self._delay_ms, self._hold))
        self._hold = ""


def _call_fragments(call: DemoCall, index: int) -> Iterator[dict[str, Any]]:
    """Yield the fragments of a call: the first names it, the others add arguments."""
    yield {
        "index": index,
        "id": call.call_id if call.call_id is not None else f"{call.name}:{index}",
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    for fragment in call.arguments:
        yield {"index": index, "function": {"arguments": fragment}}


def _cut(content: str, size: int) -> tuple[str, ...]:
    return tuple(content[start : start + size] for start in range(0, len(content), size))


def _json(value: object) -> str:
    """Return compact JSON; escaped if it has a lone surrogate, which UTF-8 cannot encode."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    plain = text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
    return text if plain else json.dumps(value, separators=(",", ":"))
