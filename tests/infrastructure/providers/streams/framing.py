"""Event streams in every form that hosts give them, over one short chat answer."""

import json

from tests.infrastructure.providers.streams.answer import Answer, Stream


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "model": "m1", "choices": [choice]}
    return json.dumps(chunk, ensure_ascii=False).encode()


FIRST = _chunk({"role": "assistant", "content": "Grüß "})
SECOND = _chunk({"content": "Gott 你好 🎉"})
LAST = _chunk({}, "stop")
DONE = b"[DONE]"
ALL = (FIRST, SECOND, LAST, DONE)
SAYS = Answer("Grüß Gott 你好 🎉")
CUT = Answer("Grüß Gott 你好 🎉", end="incomplete", raw_end=None)


def _events(*data: bytes, end: bytes = b"\n", space: bytes = b" ") -> bytes:
    return b"".join(b"data:" + space + item + end + end for item in data)


def _in_two_lines(data: bytes) -> bytes:
    at = data.index(b', "model"') + 1
    return b"data: " + data[:at] + b"\ndata: " + data[at:] + b"\n\n"


STREAMS: dict[str, Stream] = {
    "lines end in LF": Stream(_events(*ALL), SAYS),
    "lines end in CRLF": Stream(_events(*ALL, end=b"\r\n"), SAYS),
    "lines end in CR": Stream(_events(*ALL, end=b"\r"), SAYS),
    "line ends are mixed": Stream(
        b"data: " + FIRST + b"\r\n\ndata: " + SECOND + b"\n\r\n" + _events(LAST, DONE, end=b"\r"),
        SAYS,
    ),
    "one event in several data lines": Stream(
        _in_two_lines(FIRST) + _events(SECOND, LAST, DONE), SAYS
    ),
    "no space after the colon": Stream(_events(*ALL, space=b""), SAYS),
    "comments keep the line alive": Stream(
        b": OPENROUTER PROCESSING\n\n:\n\n"
        + _events(FIRST)
        + b": ping\n\n"
        + _events(SECOND, LAST, DONE),
        SAYS,
    ),
    "a comment inside an event": Stream(
        b": hi\ndata: " + FIRST + b"\n: there\n\n" + _events(SECOND, LAST, DONE), SAYS
    ),
    "event, id and retry lines": Stream(
        b"event: chunk\nid: 1\nretry: 100\ndata: " + FIRST + b"\n\n" + _events(SECOND, LAST, DONE),
        SAYS,
    ),
    "an event with only a retry line": Stream(b"retry: 3000\n\n" + _events(*ALL), SAYS),
    "a field without a colon, and one we do not know": Stream(
        b"data\nfoo: bar\n\n" + _events(*ALL), SAYS
    ),
    "empty lines in between": Stream(
        b"\n\n\n" + _events(FIRST) + b"\n\n\n" + _events(SECOND, LAST, DONE), SAYS
    ),
    "a byte order mark": Stream(b"\xef\xbb\xbf" + _events(*ALL), SAYS),
    "the end mark lacks its empty line": Stream(
        _events(FIRST, SECOND, LAST) + b"data: [DONE]", SAYS, needs_done=True
    ),
    "the last chunk lacks its empty line": Stream(
        _events(FIRST, SECOND) + b"data: " + LAST,
        Answer("Grüß Gott 你好 🎉", notices=("StreamUnmarkedEnd",)),
    ),
    "cut in the middle of an event": Stream(_events(FIRST, SECOND) + b"data: " + LAST[:-20], CUT),
    "cut in the middle of a character": Stream(
        _events(FIRST) + b"data: " + SECOND[: SECOND.index("🎉".encode()) + 2],
        Answer("Grüß ", end="incomplete", raw_end=None),
    ),
    "cut between events": Stream(_events(FIRST, SECOND), CUT),
    "the end mark is missing": Stream(
        _events(FIRST, SECOND, LAST),
        Answer("Grüß Gott 你好 🎉", notices=("StreamUnmarkedEnd",)),
    ),
    "the end mark is missing, from Kimi": Stream(
        _events(FIRST, SECOND, LAST),
        Answer("Grüß Gott 你好 🎉", end="incomplete"),
        needs_done=True,
    ),
    "more after the end mark": Stream(
        _events(*ALL, _chunk({"content": "ghost"})) + b"garbage", SAYS
    ),
    "white space around the end mark": Stream(
        _events(FIRST, SECOND, LAST) + b"data:  [DONE] \n\n", SAYS, needs_done=True
    ),
    "an empty body": Stream(b"", Answer(end="incomplete", raw_end=None)),
    "only comments": Stream(b": ping\n\n: ping\n\n", Answer(end="incomplete", raw_end=None)),
    "a web page instead": Stream(
        b"<!doctype html><html><title>Log in</title></html>",
        Answer(end="ConfigInvalid", raw_end=None),
    ),
    "an error body instead": Stream(
        b'\xef\xbb\xbf {"error": {"type": "server_error", "message": "boom"}}',
        Answer(end="Provider", raw_end=None),
    ),
    "a whole completion instead": Stream(
        b'{"id":"c1","object":"chat.completion","model":"m1","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}',
        Answer("Hi", usage=(3, 2, 0)),
        needs_done=True,
    ),
    "a whole completion, cut": Stream(
        b'{"id":"c1","object":"chat.completion","model":"m1","choices":[{"index":0,"message":',
        Answer(end="incomplete", raw_end=None),
    ),
}
