"""Chunks of hosts that name things their own way, read as if they did not. Sans-IO.

What `WireNames` says is moved to where OpenAI has it; everything else stays. Only hosts that need
this pay for it.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from kode_sidecar.providers.openai_wire import Chunk, decode_exact
from kode_sidecar.providers.profiles import WireNames

Json = dict[str, Any]
ReadChunk = Callable[[bytes], Chunk]
"""Raises msgspec.DecodeError (a ValueError) and RecursionError."""

_IN_ANSWER = ("text", "reasoning", "usage")
_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "reasoning_tokens": "reasoning_tokens",
}


def chunk_reader(names: WireNames) -> ReadChunk:
    """What reads a chunk of a host that uses these names."""
    if not any(getattr(names, name) for name in (*_IN_ANSWER, *_COUNTS)):
        return decode_exact

    def read(data: bytes) -> Chunk:
        value = msgspec.json.decode(data)
        return msgspec.convert(_renamed(value, names), Chunk, strict=False)

    return read


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
    """Put what stands at a dotted path where its usual name is."""
    found: Any = value if path else None
    for part in path.split("."):
        found = cast(Json, found).get(part) if isinstance(found, dict) else None
    if found is not None:
        value[name] = found


def _objects(values: Any) -> list[Json]:
    items = cast(list[Any], values) if isinstance(values, list) else []
    return [cast(Json, item) for item in items if isinstance(item, dict)]
