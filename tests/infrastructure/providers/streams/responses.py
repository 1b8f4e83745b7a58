"""Answers of OpenAI's Responses API, one for each shape that is documented or was met."""

import json
from typing import Any

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream
from tests.infrastructure.providers.streams.responses_ends import DAMAGE, ENDS, ERRORS, IDENTITY
from tests.infrastructure.providers.streams.responses_wire import (
    CALLED,
    END,
    FIND,
    FOUND,
    HELLO,
    HI,
    Json,
    added,
    call_item,
    called,
    created,
    done,
    ending,
    part,
    reasoning,
    reasoning_item,
    response,
    said,
    sse,
    stream,
    text,
    text_item,
    tool,
)

PARALLEL = (FOUND, Call("call_2", "look", "{}"))
_REFUSAL: Json = {
    **text_item("", "msg_1"),
    "content": [{"type": "refusal", "refusal": "I cannot"}],
}
_SEARCH: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}


def _thought_in_the_open(*pieces: str) -> list[Json]:
    """Reasoning of an open model: its words, and no seal."""
    item: Json = {"type": "reasoning", "id": "rs_0", "summary": []}
    whole = {"type": "reasoning_text", "text": "".join(pieces)}
    return [
        added(0, item),
        *(part("reasoning_text.delta", 0, "rs_0", delta=one) for one in pieces),
        part("reasoning_text.done", 0, "rs_0", text=whole["text"]),
        done(0, {**item, "content": [whole]}),
    ]


ITEMS: dict[str, Stream] = {
    "text": stream(said(), *created(), *HI, END),
    "two messages": stream(
        said("One\n\nTwo"),
        *created(),
        *text(0, "One", item_id="msg_1"),
        *text(1, "Two", item_id="msg_2"),
        ending(text_item("One", "msg_1"), text_item("Two", "msg_2")),
    ),
    "a refusal": stream(
        said("I cannot"),
        *created(),
        added(0, text_item("", status="in_progress")),
        part("content_part.added", 0, "msg_1", part={"type": "refusal", "refusal": ""}),
        part("refusal.delta", 0, "msg_1", delta="I can"),
        part("refusal.delta", 0, "msg_1", delta="not"),
        part("refusal.done", 0, "msg_1", refusal="I cannot"),
        part("content_part.done", 0, "msg_1", part=_REFUSAL["content"][0]),
        done(0, _REFUSAL),
        ending(_REFUSAL),
    ),
    "sealed reasoning with a summary": stream(
        said(thinking="Let me\n\nlook", sealed=("gAAAseal",)),
        *created(),
        *reasoning(0, "Let me", "look"),
        *text(1, "Hel", "lo"),
        ending(reasoning_item("Let me", "look"), HELLO),
    ),
    "sealed reasoning that is not shown": stream(
        said(sealed=("gAAAseal",)),
        *created(),
        *reasoning(0),
        *text(1, "Hello"),
        ending(reasoning_item(), HELLO),
    ),
    "reasoning in the open": stream(
        said(thinking="Hm, so", sealed=("",)),
        *created(),
        *_thought_in_the_open("Hm", ", so"),
        *text(1, "Hello"),
        ending(HELLO),
    ),
    "reasoning that nobody sealed": stream(
        said(thinking="Hm"),
        *created(),
        *reasoning(0, "Hm", sealed=None),
        *text(1, "Hello"),
        ending(reasoning_item("Hm", sealed=None), HELLO),
    ),
    "what the host did itself": stream(
        said(),
        *created(),
        added(0, {**_SEARCH, "status": "in_progress"}),
        {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
        done(0, _SEARCH),
        *text(1, "Hello"),
        ending(_SEARCH, HELLO),
    ),
}

CALLS: dict[str, Stream] = {
    "a call": stream(called(), *created(), *FIND, CALLED),
    "text and a call": stream(
        called(text="Hello"),
        *created(),
        *HI,
        *tool(1, '{"x": 1}'),
        ending(HELLO, call_item('{"x": 1}', n=1)),
    ),
    "two calls": stream(
        called(*PARALLEL),
        *created(),
        *FIND,
        *tool(1, "{}", call="call_2", name="look"),
        ending(call_item('{"x": 1}', n=0), call_item("{}", "call_2", "look", 1)),
    ),
    "two calls that grow side by side": stream(
        called(*PARALLEL),
        *created(),
        *FIND[:2],
        *tool(1, "{}", call="call_2", name="look"),
        *FIND[2:],
        ending(call_item('{"x": 1}', n=0), call_item("{}", "call_2", "look", 1)),
    ),
    "reasoning between two calls": stream(
        called(*PARALLEL, sealed=("gAAAseal", "gAAAmore"), thinking="Hm"),
        *created(),
        *reasoning(0, "Hm"),
        *tool(1, '{"x": 1}'),
        *reasoning(2, sealed="gAAAmore"),
        *tool(3, "{}", call="call_2", name="look"),
        ending(),
    ),
    "no arguments": stream(
        called(Call("call_1", "find", "")), *created(), *tool(0), ending(call_item("", n=0))
    ),
    "arguments only when it is whole": stream(called(), *created(), FIND[0], FIND[-1], CALLED),
    "only when it is whole": stream(called(), *created(), FIND[-1], CALLED),
    "the name comes last": stream(
        called(), *created(), added(0, {"type": "function_call", "id": "fc_0"}), *FIND[1:], CALLED
    ),
    "the name never comes": stream(
        Answer(usage=(30, 5, 20), end="IncompleteAnswer", raw_end=None),
        *created(),
        *FIND[1:3],
        ending(),
    ),
    "leaked into the text": stream(
        called(Call("functions.find:0", "find", '{"x": 1}')),
        *created(),
        *text(
            0,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0",
            '<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|><|tool_calls_section_end|>',
        ),
        ending(),
        tools=frozenset({"find"}),
    ),
}


def _whole(status: str = "completed", *output: Json, **fields: Any) -> bytes:
    return json.dumps(
        response(status, *output, **{"usage": response("")["usage"], **fields})
    ).encode()


FORMS: dict[str, Stream] = {
    "a whole answer": Stream(
        _whole("completed", reasoning_item("Hm"), HELLO, call_item('{"x": 1}')),
        called(text="Hello", thinking="Hm", sealed=("gAAAseal",), usage=None),
    ),
    "a whole answer that failed": Stream(
        _whole("failed", error={"code": "rate_limit_exceeded", "message": "Slow down"}),
        Answer(end="RateLimited", raw_end=None),
    ),
    "a whole answer that somebody cancelled": Stream(
        _whole("cancelled", HELLO), said(end="incomplete", raw_end="cancelled", usage=None)
    ),
    "only its two ends": stream(said(), created()[0], END),
    "only the items": stream(said(), *created(), HI[-1], ending()),
    "no event lines": Stream(
        b"".join(
            b"data: " + line[6:] + b"\n\n"
            for line in sse(*created(), *HI, END).splitlines()
            if line.startswith(b"data: ")
        ),
        said(),
    ),
    "an end mark as other hosts have it": stream(said(), *created(), *HI, END, "[DONE]"),
    "an end mark before the end": stream(said(), *created(), *HI, "[DONE]", END),
    "more after the end": stream(
        said(), *created(), *HI, END, *created("resp_2"), *text(0, "ghost")
    ),
    "events that nobody knows": stream(
        said(),
        {"type": "keepalive"},
        *created(),
        {"type": "response.brand_new", "item_id": {"odd": 1}},
        *HI,
        END,
    ),
    "a character cut in two": stream(
        said("a🎉b"), *created(), *text(0, "a\ud83c", "\udf89b"), ending(text_item("a🎉b"))
    ),
}

STREAMS: dict[str, Stream] = {
    f"{group}: {name}": found
    for group, streams in {
        "items": ITEMS,
        "calls": CALLS,
        "form": FORMS,
        "end": ENDS,
        "error": ERRORS,
        "identity": IDENTITY,
        "damage": DAMAGE,
    }.items()
    for name, found in streams.items()
}
