"""Chunks of an OpenAI-compatible stream: only the fields we use, as structs. Sans-IO.

For hosts with names of their own, the fields in `WireNames` are moved to OpenAI's names first.
Only those hosts pay for that.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import Usage
from kode_sidecar.core.text.lenient_json import (
    MOST_TOKENS,
    Number,
    lenient_json,
    token_count,
)
from kode_sidecar.infrastructure.providers.profiles import WireNames

Json = dict[str, Any]
_IN_ANSWER = ("text", "reasoning", "usage")
_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "reasoning_tokens": "reasoning_tokens",
}


class ToolFunction(Struct):
    """`arguments` is a piece of JSON text; some hosts send the finished object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCallDelta(Struct):
    """A piece of a tool call. Hosts leave out `index`, or repeat or blank `id`.

    `extra_content` holds Gemini's signature of a thought.
    """

    index: int | None = None
    id: str | int | None = None
    function: ToolFunction | None = None
    extra_content: dict[str, Any] | None = None


class ContentPart(Struct):
    """Content as a list: text, or thinking with a text or parts of its own."""

    type: str = ""
    text: str | None = None
    thinking: "str | list[ContentPart] | None" = None


class Delta(Struct):
    """The growth in a chunk; also the `message` of a whole completion."""

    role: str | None = None
    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class TokenDetails(Struct):
    cached_tokens: Number = None
    reasoning_tokens: Number = None


class OpenAIUsage(Struct):
    """Token counts; hosts use four names for cached tokens, two for reasoning tokens."""

    prompt_tokens: Number = None
    completion_tokens: Number = None
    total_tokens: Number = None
    cached_tokens: Number = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    reasoning_tokens: Number = None
    prompt_cache_hit_tokens: Number = None
    cache_read_input_tokens: Number = None
    cost: Any = None


class GroqExtra(Struct):
    usage: OpenAIUsage | None = None


class OpenAIChoice(Struct):
    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    usage: OpenAIUsage | None = None
    error: Any = None


class OpenAIChunk(Struct):
    """One event. `choices` may be empty, null or absent."""

    id: str | int | None = None
    model: str | None = None
    choices: list[OpenAIChoice] | None = None
    usage: OpenAIUsage | None = None
    error: Any = None
    x_groq: GroqExtra | None = None


class ReasoningDetails:
    """Collects OpenRouter's list of a model's reasoning, which it wants back unchanged.

    A piece continues the one before it if both have the same type and index.
    """

    def __init__(self) -> None:
        self.whole: list[Json] = []

    def add(self, pieces: list[Any]) -> str:
        """Add the pieces of one event; return their text."""
        said: list[str] = []
        for piece in _objects(pieces):
            words = piece.get("text") or piece.get("summary")
            said += [words] if isinstance(words, str) else []
            last = self.whole[-1] if self.whole else piece
            place = [(last.get(name), piece.get(name)) for name in ("type", "index")]
            if last is piece or any(new not in (None, old) for old, new in place):
                self.whole.append(dict(piece))
                continue
            for name, value in piece.items():
                before = last.get(name)
                grows = name in ("text", "summary", "data")
                if grows and isinstance(before, str) and isinstance(value, str):
                    last[name] = before + value
                elif value is not None:
                    last[name] = value
        return "".join(said)


_REFUSAL_WORDS = ("message", "detail", "msg", "error_msg", "status_msg", "errorMessage")
_REFUSED = "invalid_request_error"
_REFUSAL_CODES = ("code", "error_code", "status_code", "errorCode")


def error_of(data: bytes, chunk: OpenAIChunk) -> object:
    """Return the error that an event reports, however it is wrapped; None when it reports none."""
    if chunk.error:
        return chunk.error
    for choice in chunk.choices or ():
        if choice.error:
            return choice.error
        if choice.finish_reason == "error":
            return {"message": "the host reported an error without saying which"}
    if chunk.choices is None and chunk.usage is None:
        return _bare_error(data)
    return None


def _bare_error(data: bytes) -> object:
    """Return an error at the top level, such as `{"object": "error", "message": ...}`.

    An object with words for people and without an answer is a refusal, whatever its members are
    called: MiniMax, Baidu, Zhipu and the common gateways each have an envelope of their own.
    """
    value = lenient_json(data)
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    inner = fields.get("base_resp")
    if isinstance(inner, dict):
        fields = {**cast(dict[str, Any], inner)}
        if fields.get("status_code") in (0, "0"):
            return None
    said = next((fields[key] for key in _REFUSAL_WORDS if isinstance(fields.get(key), str)), "")
    code = next((fields[key] for key in _REFUSAL_CODES if fields.get(key) is not None), None)
    named = fields.get("object") == "error" or fields.get("type") == "error" or code is not None
    if not said or not (named or fields.get("success") is False):
        return None
    # It is no failure of the way, so the same request would bring the same.
    kind = fields.get("type") or ("" if fields.get("object") == "error" else _REFUSED)
    return {"type": kind, "code": code, "message": said}


def usage_of(wire: OpenAIUsage) -> Usage:
    """Convert the counts: cached tokens are part of our input, wherever the host counts them."""
    details = wire.prompt_tokens_details
    inside = token_count(
        wire.cached_tokens, details and details.cached_tokens, wire.prompt_cache_hit_tokens
    )
    cached = inside or token_count(wire.cache_read_input_tokens)
    given = token_count(wire.prompt_tokens)
    # More cached than prompt tokens: this host counts them apart.
    tokens_in = given + cached if cached > given else given
    tokens_out = token_count(wire.completion_tokens)
    out = wire.completion_tokens_details
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=token_count(wire.total_tokens) or tokens_in + tokens_out,
        cached_tokens=cached,
        reasoning_tokens=token_count(out and out.reasoning_tokens, wire.reasoning_tokens),
    )


def reported_cost(wire: OpenAIUsage) -> float | None:
    """Return the cost of the answer that the host reports: a number, or a total."""
    cost = wire.cost
    if isinstance(cost, dict):
        cost = cast(Json, cost).get("total_cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < MOST_TOKENS else None


_decode = msgspec.json.Decoder(OpenAIChunk).decode


class ChunkReader:
    """Reads the chunks of a host that uses `names`."""

    def __init__(self, names: WireNames) -> None:
        usual = not any(getattr(names, name) for name in (*_IN_ANSWER, *_COUNTS))
        self._names = None if usual else names
        self.exact: Callable[[bytes], OpenAIChunk] = _decode if usual else self._renamed
        """Raises msgspec.DecodeError (a ValueError) and RecursionError."""

    def tolerant(self, data: bytes) -> OpenAIChunk | None:
        """Return a chunk from JSON that strict readers refuse; None if it is no chunk."""
        value = lenient_json(data)
        try:
            if self._names is not None:
                value = _renamed(value, self._names)
            return msgspec.convert(value, OpenAIChunk, strict=False)
        except (ValueError, RecursionError):
            return None

    def _renamed(self, data: bytes) -> OpenAIChunk:
        assert self._names is not None
        value = msgspec.json.decode(data)
        return msgspec.convert(_renamed(value, self._names), OpenAIChunk, strict=False)


def _renamed(value: Any, names: WireNames) -> Any:
    if not isinstance(value, dict):
        return value
    chunk = cast(Json, value)
    _move(chunk, names.usage, "usage")
    for choice in _objects(chunk.get("choices")):
        for part in _objects([choice.get("delta"), choice.get("message")]):
            _move(part, names.text, "content")
            _move(part, names.reasoning, "reasoning_content")
        _rename_counts(choice.get("usage"), names)
    _rename_counts(chunk.get("usage"), names)
    return chunk


def _rename_counts(usage: Any, names: WireNames) -> None:
    for usage_object in _objects([usage]):
        for name, usual in _COUNTS.items():
            _move(usage_object, getattr(names, name), usual)


def _move(value: Json, path: str, name: str) -> None:
    """Copy the value at a dotted path to its usual name."""
    found: Any = value if path else None
    for part in path.split("."):
        found = cast(Json, found).get(part) if isinstance(found, dict) else None
    if found is not None:
        value[name] = found


def _objects(values: Any) -> list[Json]:
    items = cast(list[Any], values) if isinstance(values, list) else []
    return [cast(Json, item) for item in items if isinstance(item, dict)]
