"""Reads the messages of servers, and the parts of their answers, as leniently as can be. Pure.

Servers are other people's programs: one half of a character, a raw tab or a field that is null
must cost neither the answer nor the tool that it stands in.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.text.lenient_json import lenient_json
from kode_sidecar.core.text.shown_text import fix_value
from kode_sidecar.infrastructure.mcp.contracts import CallResult, Content, Json, as_object

T = TypeVar("T", bound=Struct)

_BOM = b"\xef\xbb\xbf"
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,15})(?:\.0)?\s*["},]')
_ANSWERS = (b'"result"', b'"error"')
_FIELD = re.compile(r"at `\$\.(\w+)")
_HEAD_BYTES = 300


class Unreadable(Exception):
    """What a server sent is no JSON. `ids` are those of requests that it may answer."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        super().__init__()
        self.ids = ids


def read_messages(data: bytes) -> tuple[list[Json], bool]:
    """Return the messages in a line, a body or an event, and whether they are strict JSON.

    Plain text is no message. Raises `Unreadable` for what looks like a broken answer.
    """
    strict = True
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        strict, value = False, _lenient(data)
    if value is None and _is_answer(data):
        raise Unreadable(tuple(map(int, _ID.findall(data))))
    found = cast(list[object], value) if isinstance(value, list) else [value]
    return [cast(Json, one) for one in found if isinstance(one, dict)], strict


def _lenient(data: bytes) -> object:
    data = data.strip().removeprefix(_BOM)
    value = lenient_json(data)
    if value is None and (start := data.find(b'{"jsonrpc"')) > 0:  # after words of a log
        value = lenient_json(data[start:])
    try:
        return fix_value(value)
    except RecursionError:
        return None


def _is_answer(data: bytes) -> bool:
    head = data[:_HEAD_BYTES]
    answers = b'"jsonrpc"' in data and any(word in data for word in _ANSWERS)
    return answers and b"{" in head and b'"method"' not in head


def request_id(value: object) -> int | None:
    """Return the number of a request of ours from an answer; some servers send `"1"` or `1.0`."""
    if isinstance(value, str):
        text = value.strip().removesuffix(".0")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def salvaged(raw: object, kind: type[T]) -> T | None:
    """Return `raw` as `kind` without the fields that are null or wrong; None if one is needed."""
    if not isinstance(raw, dict):
        return None
    fields = {key: value for key, value in cast(Json, raw).items() if value is not None}
    while True:
        try:
            return msgspec.convert(fields, kind, strict=False)
        except msgspec.ValidationError as error:
            found = _FIELD.search(str(error))
            if found is None or fields.pop(found[1], None) is None:
                return None


def call_result(answer: Json) -> CallResult:
    """Return the result of a call, whichever shape a server gave it."""
    raw: object = answer.get("content")
    blocks = cast(list[object], raw) if isinstance(raw, list) else [raw]
    content = [_block(one) for one in blocks if one is not None]
    structured: Any = answer.get("structuredContent")
    if not content and structured is None:
        known = ("content", "isError", "_meta", "resultType")
        structured = {key: value for key, value in answer.items() if key not in known} or None
    failed = answer.get("isError")
    is_error = failed.casefold() == "true" if isinstance(failed, str) else bool(failed)
    return CallResult(content=content, structured_content=structured, is_error=is_error)


def _block(raw: object) -> Content:
    block = salvaged(raw, Content)
    if block is None or (block.type == "text" and not isinstance(_text(raw), str)):
        return Content(type="text", text=_words(_text(raw) if block else raw))
    return block


def _text(raw: object) -> object:
    return as_object(raw).get("text") or ""


def _words(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def error_words(message: Mapping[str, Any]) -> tuple[object, str]:
    """Return the code and the text of an answer that is an error."""
    error: object = message.get("error")
    failure = as_object(error)
    return failure.get("code"), str(failure.get("message") or error or "no reason given")
