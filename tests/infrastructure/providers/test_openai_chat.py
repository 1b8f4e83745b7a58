"""Chunk shapes met in real streams of OpenAI-compatible hosts."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Usage
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)
from kode_sidecar.infrastructure.providers.dialect import AnswerDecoder
from kode_sidecar.infrastructure.providers.event_decoder import AnswerContext, damage_notice
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder
from kode_sidecar.infrastructure.providers.profiles import TokenPrice
from tests.infrastructure.providers.streams.answer import joined

DONE = "[DONE]"


def chunk(delta: Any = None, finish: Any = None, **fields: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "delta": {} if delta is None else delta,
        "finish_reason": finish,
    }
    return {"id": "r1", "model": "m1", "choices": [choice]} | fields


def tool(index: int | None = None, call_id: Any = None, name: Any = None, args: Any = None) -> Any:
    call: dict[str, Any] = {"function": {"name": name, "arguments": args}}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return call


def calls(*fragments: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def raw(*events: Any) -> list[bytes]:
    return [
        event
        if isinstance(event, bytes)
        else json.dumps(event).encode()
        if event != DONE
        else b"[DONE]"
        for event in events
    ]


def read(*events: Any, tools: frozenset[str] = frozenset()) -> list[ModelEvent]:
    """All events, one feed per chunk, neighbouring growth joined."""
    decoder = ChatDecoder(AnswerContext(tool_names=tools))
    found = [event for data in raw(*events) for event in decoder.feed_many((data,))]
    return joined(found + decoder.finish())


STARTED = ResponseStarted("r1", "m1")
STOP = ResponseFinished("stop", "stop")
CALLS = ResponseFinished("tool_calls", "tool_calls")
END = (chunk(finish="stop"), DONE)
END_CALLS = (chunk(finish="tool_calls"), DONE)
ONE_CALL = [STARTED, ToolUseStarted(0, "a", "f"), ToolUseDelta(0, '{"x":1}'), CALLS]

SHAPES: dict[str, tuple[list[Any], list[Any]]] = {
    "role first, then text": (
        [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), *END],
        [STARTED, TextDelta("Hi"), STOP],
    ),
    "choices null and absent": (
        [
            {"id": "r1", "choices": None},
            {"id": "r1", "object": "x"},
            chunk({"content": "Hi"}),
            *END,
        ],
        [STARTED, TextDelta("Hi"), STOP],
    ),
    "reasoning before the answer": (
        [
            chunk({"reasoning_content": "Let "}),
            chunk({"reasoning_content": "me"}),
            chunk({"content": "Hi"}),
            *END,
        ],
        [STARTED, ThinkingDelta("Let me"), TextDelta("Hi"), STOP],
    ),
    "empty reasoning is reasoning": (
        [
            chunk({"role": "assistant", "content": "", "reasoning_content": ""}),
            chunk({"content": "Hi"}),
            chunk({"content": "!", "reasoning_content": ""}),
            *END,
        ],
        [STARTED, ThinkingDelta(""), TextDelta("Hi!"), STOP],
    ),
    "no arguments at all": (
        [calls(tool(0, "a", "f")), *END_CALLS],
        [STARTED, ToolUseStarted(0, "a", "f"), CALLS],
    ),
    "name late": (
        [calls(tool(0, "a", None, '{"x"')), calls(tool(0, None, "f", ":1}")), *END_CALLS],
        ONE_CALL,
    ),
    "parallel calls, interleaved": (
        [
            calls(tool(0, "a", "f", '{"x"')),
            calls(tool(1, "b", "g", "{")),
            calls(tool(0, args=":1}"), tool(1, args="}")),
            *END_CALLS,
        ],
        [
            STARTED,
            ToolUseStarted(0, "a", "f"),
            ToolUseDelta(0, '{"x"'),
            ToolUseStarted(1, "b", "g"),
            ToolUseDelta(1, "{"),
            ToolUseDelta(0, ":1}"),
            ToolUseDelta(1, "}"),
            CALLS,
        ],
    ),
    "a late fragment of the first of them": (
        [
            calls(tool(0, "a", "f", '{"x"')),
            calls(tool(0, "b", "g", "{}")),
            calls(tool(0, "a", None, ":1}")),
            *END_CALLS,
        ],
        [
            STARTED,
            ToolUseStarted(0, "a", "f"),
            ToolUseDelta(0, '{"x"'),
            ToolUseStarted(1, "b", "g"),
            ToolUseDelta(1, "{}"),
            ToolUseDelta(0, ":1}"),
            CALLS,
        ],
    ),
    "ids as numbers": (
        [chunk({"content": "Hi"}, id=7), calls(tool(0, 0, "f", "{}")), *END_CALLS],
        [
            ResponseStarted("7", "m1"),
            TextDelta("Hi"),
            ToolUseStarted(0, "0", "f"),
            ToolUseDelta(0, "{}"),
            CALLS,
        ],
    ),
    "text, then a call": (
        [chunk({"content": "I look."}), calls(tool(0, "a", "f", "{}")), *END_CALLS],
        [STARTED, TextDelta("I look."), ToolUseStarted(0, "a", "f"), ToolUseDelta(0, "{}"), CALLS],
    ),
    "neither": (
        [chunk({"content": "Hi"})],
        [STARTED, TextDelta("Hi"), ResponseFinished("incomplete", None)],
    ),
    "nothing at all": ([], [ResponseStarted(None, None), ResponseFinished("incomplete", None)]),
    "the end mark is the end": (
        [chunk({"content": "Hi"}), *END, chunk({"content": "ghost"})],
        [STARTED, TextDelta("Hi"), STOP],
    ),
    "a whole completion instead of a stream": (
        [
            {
                "id": "r1",
                "model": "m1",
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "reasoning_content": "Hm",
                            "content": "Hi",
                            "tool_calls": [tool(None, "", "f", "{}"), tool(None, None, "g", "{}")],
                        },
                        "finish_reason": "tool_calls",
                    }
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            }
        ],
        [
            STARTED,
            ThinkingDelta("Hm"),
            TextDelta("Hi"),
            ToolUseStarted(0, "functions.f:0", "f"),
            ToolUseDelta(0, "{}"),
            ToolUseStarted(1, "functions.g:1", "g"),
            ToolUseDelta(1, "{}"),
            UsageReported(Usage(input_tokens=3, output_tokens=2, total_tokens=5)),
            CALLS,
        ],
    ),
    "one bad event is passed over": (
        [chunk({"content": "a"}), b'{"id":"r1","cho{"id"', chunk({"content": "b"}), *END],
        [STARTED, TextDelta("ab"), damage_notice("The host"), STOP],
    ),
    "two bad events, but not in a row": (
        [chunk({"content": "a"}), b"{", chunk({"content": "b"}), b"{", *END],
        [STARTED, TextDelta("ab"), damage_notice("The host"), STOP],
    ),
    "a character cut in two": (
        [
            b'{"id":"r1","model":"m1","choices":[{"delta":{"content":"a\\ud83c"}}]}',
            b'{"choices":[{"delta":{"content":"\\udf89b"}}]}',
            b'{"choices":[{"delta":{"content":"\\udf89c"}}]}',
            *END,
        ],
        [STARTED, TextDelta("a🎉b\ufffdc"), STOP],
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_shapes(shape: tuple[list[Any], list[Any]]) -> None:  # D7
    events, expected = shape
    assert read(*events) == expected


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_a_batch_means_the_same_and_is_joined(shape: tuple[list[Any], list[Any]]) -> None:
    events, expected = shape
    decoder = ChatDecoder()
    found = decoder.feed_many(raw(*events))
    assert found == joined(found)
    assert joined(found + decoder.finish()) == expected


def test_cost() -> None:  # C1, C5
    decoder = ChatDecoder(AnswerContext(price=TokenPrice(2.0, 0.5, 10.0)))
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "cached_tokens": 400_000}
    decoder.feed_many(raw(chunk({"content": "Hi"}), chunk(finish="stop", usage=usage)))
    (reported,) = [event for event in decoder.finish() if isinstance(event, UsageReported)]
    assert reported.cost_usd == pytest.approx(1.2 + 0.2 + 1.0)
    assert reported.cost is not None
    assert reported.cost.currency == "USD"


def failed(*events: Any) -> ErrorInfo:
    last = read(*events)[-1]
    assert isinstance(last, ResponseFailed)
    return last.error


@pytest.mark.parametrize(
    "events",
    [
        [*END],
        [chunk({"content": " \n"}), *END],
        [chunk({"reasoning_content": "Hm"}), *END],
        [chunk({"reasoning_content": "Hm"}), chunk(finish="tool_calls"), DONE],
        [chunk({"reasoning_content": "Hm"}), DONE],
    ],
)
def test_an_answer_without_an_answer(events: list[Any]) -> None:
    error = failed(*events)
    assert (error.code, error.retryable) == ("EmptyAnswer", True)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_empty_answer_with_its_reason(reason: str) -> None:
    last = read(chunk({"reasoning_content": "Hm"}), chunk(finish=reason), DONE)[-1]
    assert isinstance(last, ResponseFinished)


ERRORS: dict[str, tuple[Any, str, bool]] = {
    "object": ({"error": {"type": "server_error", "message": "boom"}}, "Provider", True),
    "text": ({"error": "boom"}, "Provider", True),
    "with choices": (chunk({"content": ""}, error={"message": "boom"}), "Provider", True),
    "status as number": ({"error": {"code": 502, "message": "boom"}}, "Provider", True),
    "status as text": ({"error": {"code": "400", "message": "boom"}}, "Provider", False),
    "client's fault": (
        {"error": {"type": "invalid_request_error", "message": "boom"}},
        "Provider",
        False,
    ),
    "in the choice": (
        {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "boom"}}]},
        "Provider",
        True,
    ),
    "only a finish reason": (chunk(finish="error"), "Provider", True),
    "bare": ({"object": "error", "message": "boom", "code": 500}, "Provider", True),
    "overloaded": (
        {"error": {"type": "engine_overloaded_error", "message": "boom"}},
        "RateLimited",
        True,
    ),
    "quota": (
        {"error": {"type": "exceeded_current_quota_error", "message": "boom"}},
        "QuotaExceeded",
        False,
    ),
    "filter": ({"error": {"type": "content_filter", "message": "boom"}}, "ContentFiltered", False),
    "overflow": (
        {"error": {"message": "Your request exceeded model token limit : 8 (requested: 9)"}},
        "ContextOverflow",
        False,
    ),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=list(ERRORS))
def test_errors_in_the_stream(case: tuple[Any, str, bool]) -> None:
    event, code, retryable = case
    found = read(chunk({"content": "Hi"}), event, chunk({"content": "ghost"}), *END)
    assert found[:2] == [STARTED, TextDelta("Hi")]
    assert len(found) == 3
    assert isinstance(found[2], ResponseFailed)
    assert (found[2].error.code, found[2].error.retryable) == (code, retryable)


KEYS = st.sampled_from(
    ["id", "model", "choices", "usage", "error", "delta", "message", "content", "text", "thinking",
     "tool_calls", "index", "function", "name", "arguments", "finish_reason", "type", "code"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.sampled_from(["", "a", "\ud83c"])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4)
)


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=5) | JSON, max_size=6))
def test_no_chunk_whatever_breaks_the_decoder(chunks: list[Any]) -> None:
    decoder = ChatDecoder(AnswerContext(tool_names=frozenset({"a"})))
    found = decoder.feed_many(json.dumps(value).encode() for value in chunks)
    found += decoder.finish()
    assert isinstance(found[-1], ResponseFinished | ResponseFailed)
    assert sum(isinstance(event, ResponseFinished | ResponseFailed) for event in found) == 1


def test_bad_events_are_counted() -> None:
    decoder = ChatDecoder()
    decoder.feed_many(raw(chunk({"content": "a"}), b"{", chunk({"content": "b"}), b"[1]"))
    assert decoder.bad_events == 2


COMPLETION = json.dumps(SHAPES["a whole completion instead of a stream"][0][0], indent=1).encode()


@given(st.lists(st.integers(0, len(COMPLETION))))
def test_a_whole_body_cut_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(COMPLETION)]
    decoder = AnswerDecoder(ChatDecoder())
    for start, stop in pairwise(edges):
        assert decoder.feed(COMPLETION[start:stop]) == []
    assert decoder.finish() == SHAPES["a whole completion instead of a stream"][1]


@pytest.mark.parametrize(
    ("cost", "price", "said"),
    [
        (0.0125, None, (0.0125, "USD")),
        (0.5, TokenPrice(1, 1, 1, "CNY"), (0.5, "CNY")),
        ({"total_cost": 0.25}, None, (0.25, "USD")),
        (None, TokenPrice(1_000_000, 0, 0), (10.0, "USD")),
        ("free", TokenPrice(1_000_000, 0, 0), (10.0, "USD")),
        (-1, TokenPrice(1_000_000, 0, 0), (10.0, "USD")),
    ],
)
def test_the_hosts_word_for_the_cost_is_taken(
    cost: Any, price: TokenPrice | None, said: tuple[float, str]
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": cost}
    decoder = ChatDecoder(AnswerContext(price=price))
    events = decoder.feed_many(raw(chunk({"content": "Hi"}), chunk(finish="stop", usage=usage)))
    (reported,) = [e for e in events + decoder.finish() if isinstance(e, UsageReported)]
    assert reported.cost is not None
    assert (reported.cost.amount, reported.cost.currency) == said
    assert reported.cost_usd == (said[0] if said[1] == "USD" else None)
