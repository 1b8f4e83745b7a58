"""How answers of the Responses API end, errors, changing ids, and what was lost on the way."""

import json

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream
from tests.infrastructure.providers.streams.responses_wire import (
    CALLED,
    END,
    FIND,
    HI,
    Json,
    broken,
    call_item,
    called,
    created,
    cut,
    ending,
    lost,
    said,
    sse,
    stream,
    text,
    text_item,
    tool,
)

ENDS: dict[str, Stream] = {
    **{
        reason: stream(said(end=end, raw_end=reason), *created(), *HI, cut(reason))
        for reason, end in {
            "max_output_tokens": "length",
            "content_filter": "content_filter",
            "steered": "other",
        }.items()
    },
    "no room for the rest of a call": stream(
        called(Call("call_1", "find", '{"x"'), end="length", raw_end="max_output_tokens"),
        *created(),
        *FIND[:2],
        cut("max_output_tokens"),
    ),
    "cut by something new in the middle of a call": stream(
        called(Call("call_1", "find", '{"x"'), end="length", raw_end="brand_new"),
        *created(),
        *FIND[:2],
        cut("brand_new"),
    ),
    "an empty answer": stream(
        Answer(usage=(30, 5, 20), end="EmptyAnswer", raw_end=None), *created(), ending()
    ),
    "no end": stream(broken("Hello"), *created(), *HI),
    "no end after a call": stream(
        broken(calls=(Call("call_1", "find", '{"x": 1}'),)), *created(), *FIND
    ),
    "cut in the middle of the last event": Stream(
        sse(*created(), *HI) + sse(END)[:200], broken("Hello")
    ),
    "nothing but the start": stream(broken(), *created()),
}


def failed(code: str) -> Answer:
    return Answer("Hello", end=code, raw_end=None)


def _failed(code: str, message: str = "boom") -> Json:
    return ending(status="failed", error={"code": code, "message": message}, usage=None)


ERRORS: dict[str, Stream] = {
    **{
        kind: stream(failed(code), *created(), *HI, _failed(kind))
        for kind, code in {
            "server_error": "Provider",
            "rate_limit_exceeded": "RateLimited",
            "insufficient_quota": "QuotaExceeded",
            "invalid_prompt": "ContentFiltered",
            "context_length_exceeded": "ContextOverflow",
        }.items()
    },
    "an event of its own": stream(
        failed("RateLimited"),
        *created(),
        *HI,
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None},
    ),
    "an event with an object": stream(
        failed("RateLimited"),
        *created(),
        *HI,
        {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded"}},
    ),
    "as other hosts write it": stream(
        failed("Provider"), *created(), *HI, json.dumps({"error": {"message": "boom"}})
    ),
    "a body instead of a stream": Stream(
        json.dumps({"error": {"message": "boom", "code": "insufficient_quota"}}).encode(),
        Answer(end="QuotaExceeded", raw_end=None),
    ),
}


def _renamed(events: list[Json]) -> list[Json]:
    """The same, with another id for the item in every event, as some gateways have it."""
    out: list[Json] = []
    for number, event in enumerate(events):
        changed = {**event}
        if "item_id" in event:
            changed["item_id"] = f"x{number}"
        if "item" in event:
            changed["item"] = {**event["item"], "id": f"x{number}"}
        out.append(changed)
    return out


def _without(name: str, events: list[Json]) -> list[Json]:
    return [{key: value for key, value in one.items() if key != name} for one in events]


_TWO = [*FIND, *tool(1, "{}", call="call_2", name="look")]
_BOTH = (Call("call_1", "find", '{"x": 1}'), Call("call_2", "look", "{}"))
_BOTH_AGAIN = ending(call_item('{"x": 1}', n=0), call_item("{}", "call_2", "look", 1))

IDENTITY: dict[str, Stream] = {
    "an id for each event": stream(said(), *created(), *_renamed(HI), END),
    "an id for each event, two calls": stream(
        called(*_BOTH), *created(), *_renamed(_TWO), _BOTH_AGAIN
    ),
    "another id at the end": stream(
        said(), *created(), *HI, ending(text_item("Hello"), id="resp_9")
    ),
    "another id in the second event": stream(said(), created()[0], created("resp_2")[1], *HI, END),
    "another id for the call when it is whole": stream(
        called(),
        *created(),
        *FIND[:-1],
        {**FIND[-1], "item": call_item('{"x": 1}', "call_9")},
        CALLED,
    ),
    "no index": stream(called(*_BOTH), *created(), *_without("output_index", _TWO), _BOTH_AGAIN),
    "neither index nor id": stream(
        called(*_BOTH),
        *created(),
        *_without("item_id", _without("output_index", _TWO)),
        _BOTH_AGAIN,
    ),
    "one index for all": stream(
        called(*_BOTH), *created(), *({**one, "output_index": 0} for one in _TWO), _BOTH_AGAIN
    ),
    "no start": stream(said(), *HI, END),
    "the start of an item is lost": stream(said(), *created(), *HI[1:], END),
    "the start comes twice": stream(said(), *created(), *created(), *HI, END),
    "begun anew by another id": stream(
        said(drops=1), *created(), *text(0, "Hel")[:3], *created("resp_2"), *HI, END
    ),
    "begun anew with the same id": stream(
        said(drops=1), *created(), *text(0, "Hel")[:3], *created(), *HI, END
    ),
    "begun anew from a call": stream(
        said(drops=1), *created(), *FIND[:2], *created("resp_2"), *HI, END
    ),
}

_LINES = tool(0, '{"lines":["a",', '"b",', '"c"]}')
_WITHOUT_B = Call("call_1", "find", '{"lines":["a","c"]}')
_TORN = json.dumps({**_LINES[2], "delta": '"x-y",'}).encode().replace(b"x-y", b"x\xffy")

DAMAGE: dict[str, Stream] = {
    "an event in the middle of a call": stream(
        lost(_WITHOUT_B), *created(), *_LINES[:2], json.dumps(_LINES[2])[:-3], *_LINES[3:], CALLED
    ),
    "an event that never came": stream(
        lost(_WITHOUT_B), *created(), *_LINES[:2], *_LINES[3:], CALLED
    ),
    "an event that came twice": stream(
        lost(Call("call_1", "find", '{"lines":["a","b","b","c"]}')),
        *created(),
        *_LINES[:3],
        *_LINES[2:],
        CALLED,
    ),
    "bytes of a call that are not UTF-8": stream(
        lost(Call("call_1", "find", '{"lines":["a","x\ufffdy","c"]}')),
        *created(),
        *_LINES[:2],
        _TORN,
        *_LINES[3:],
        CALLED,
    ),
    "half a character in a call": stream(
        lost(Call("call_1", "find", '{"lines":["a","x\ufffdy","c"]}')),
        *created(),
        *_LINES[:2],
        {**_LINES[2], "delta": '"x\ud83cy",'},
        *_LINES[3:],
        CALLED,
    ),
    "an event before a call": stream(lost(), *created(), b"{", *FIND, CALLED),
    "an event in the text": stream(
        said("Hello", notices=("StreamDamaged",)),
        *created(),
        *HI[:3],
        json.dumps(HI[3])[:-3],
        *HI[4:],
        END,
    ),
    "two events in a row": stream(broken("Hel"), *created(), *HI[:3], b"{", b"}{", *HI[3:], END),
    "the last event": stream(broken("Hello"), *created(), *HI, json.dumps(END)[:-3]),
}
