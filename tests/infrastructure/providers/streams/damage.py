"""Answers whose calls lost something on the way, and answers whose ids mean little."""

import json

from tests.infrastructure.providers.streams import anthropic_wire as messages
from tests.infrastructure.providers.streams.answer import Answer, Call, Stream
from tests.infrastructure.providers.streams.chat_wire import (
    CALLS,
    DONE,
    ROLE,
    STOP,
    calls,
    chunk,
    piece,
    says,
    stream,
)

PART = '{"lines":["a",'
_OPEN = calls(piece(0, PART, call="a", name="find"))
_REST = calls(piece(0, '"c"]}'))
_LOST = calls(piece(0, '"b",'))
_TORN = json.dumps(calls(piece(0, '"x-y",'))).encode().replace(b"x-y", b"x\xffy")


def lost(arguments: str, *, raw_end: str = "tool_calls", **fields: object) -> Answer:
    """Calls that came to nothing: the answer says itself that it is not whole."""
    call = Call("a", "find", arguments)
    return Answer(**{"calls": (call,), "end": "incomplete", "raw_end": raw_end, **fields})  # type: ignore[arg-type]


CHAT_DAMAGE: dict[str, Stream] = {
    "an event in the middle of a call": stream(
        lost(f'{PART}"c"]}}'), _OPEN, json.dumps(_LOST)[:-3], _REST, CALLS, DONE
    ),
    "bytes of a call that are not UTF-8": stream(
        lost(f'{PART}"x\ufffdy","c"]}}'), _OPEN, _TORN, _REST, CALLS, DONE
    ),
    "half a character in a call": stream(
        lost(f'{PART}"x\ufffdy","c"]}}'),
        _OPEN,
        json.dumps(calls(piece(0, '"x\ud83cy",'))),
        _REST,
        CALLS,
        DONE,
    ),
    "an event before a call": stream(
        lost(f'{PART}"c"]}}', text="Hi"), says("Hi"), b"{", _OPEN, _REST, CALLS, DONE
    ),
    "an event after the calls, before the end mark": stream(
        Answer(
            calls=(Call("a", "find", f'{PART}"c"]}}'),),
            end="tool_calls",
            raw_end="tool_calls",
            notices=("StreamDamaged",),
        ),
        _OPEN,
        _REST,
        CALLS,
        b"{",
        DONE,
    ),
}


def _id(number: int, delta: object, finish: str | None = None) -> dict[str, object]:
    return chunk(delta, finish, id=f"n{number}")


def _named(number: int, delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return _id(number, {"role": "assistant", **delta}, finish)


CHAT_IDENTITY: dict[str, Stream] = {
    "the first event has no id": stream(
        Answer("Hello"),
        {**ROLE, "id": None},
        chunk({"role": "assistant", "content": "Hello"}),
        STOP,
        DONE,
    ),
    "the first event has an empty id": stream(
        Answer("Hello"),
        {**says("Hel"), "id": ""},
        {**says("lo"), "id": ""},
        chunk({"role": "assistant", "content": ""}),
        STOP,
        DONE,
    ),
    "an id for each chunk": stream(
        Answer("Hello"),
        _named(1, {"content": ""}),
        _id(2, {"content": "Hel"}),
        _id(3, {"content": "lo"}),
        _named(4, {"content": ""}, "stop"),
        DONE,
    ),
    "an id and a role for each chunk": stream(
        Answer("Hello"),
        _named(1, {"content": "Hel"}),
        _named(2, {"content": "lo"}),
        _named(3, {}, "stop"),
        DONE,
    ),
    "an id for each chunk, begun anew": stream(
        Answer("Hello", drops=1),
        _named(1, {"content": ""}),
        _id(2, {"content": "Hel"}),
        _named(3, {"content": ""}),
        _id(4, {"content": "Hello"}),
        _id(5, {}, "stop"),
        DONE,
    ),
    "an id for each chunk, a second answer after the end": stream(
        Answer("Hello"),
        _named(1, {"content": ""}),
        _id(2, {"content": "Hello"}),
        _id(3, {}, "stop"),
        _named(4, {"content": ""}),
        _id(5, {"content": "Hello"}),
        DONE,
    ),
    "the role of the second answer comes without its id": stream(
        Answer("Hello", drops=1),
        ROLE,
        says("Hel"),
        {**ROLE, "id": ""},
        _id(2, {"content": "Hello"}),
        _id(2, {}, "stop"),
        DONE,
    ),
    "only the first of several choices": stream(
        Answer("Hello"),
        {
            **chunk(),
            "choices": [
                {"index": 1, "delta": {"content": "no"}, "finish_reason": None},
                {"index": 0, "delta": {"content": "Hel"}, "finish_reason": None},
            ],
        },
        {
            **chunk(),
            "choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}],
        },
        says("lo"),
        STOP,
        DONE,
    ),
}

_HEAD = [messages.start(), messages.opened(0, "tool_use", id="a", name="find", input={})]
_TAIL = [messages.closed(0), *messages.ending("tool_use")]


def _input(text: str) -> dict[str, object]:
    return messages.grown(0, "input_json_delta", partial_json=text)


_COUNTED = {"usage": (3, 5, 0), "raw_end": "tool_use"}

ANTHROPIC_DAMAGE: dict[str, Stream] = {
    "an event in the middle of a call": messages.stream(
        lost(f'{PART}"c"]}}', **_COUNTED),  # type: ignore[arg-type]
        *_HEAD,
        _input(PART),
        json.dumps(_input('"b",'))[:-3],
        _input('"c"]}'),
        *_TAIL,
    ),
    "bytes of a call that are not UTF-8": messages.stream(
        lost(f'{PART}"x\ufffdy","c"]}}', **_COUNTED),  # type: ignore[arg-type]
        *_HEAD,
        _input(PART),
        json.dumps(_input('"x-y",')).encode().replace(b"x-y", b"x\xffy"),
        _input('"c"]}'),
        *_TAIL,
    ),
}
