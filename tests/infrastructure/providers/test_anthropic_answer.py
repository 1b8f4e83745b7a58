"""Answers of Anthropic's Messages API from the socket to the next request."""

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.message import Message, TextBlock, ToolResultBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    UsageReported,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling
from kode_sidecar.core.kernel.message_assembler import MessageAssembler
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.infrastructure.providers.attempt import Attempt
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.endpoint import Endpoint
from kode_sidecar.infrastructure.providers.event_decoder import AnswerContext
from kode_sidecar.infrastructure.providers.known_providers import ANTHROPIC
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, TokenPrice
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.rate_limiter import RateLimiter
from tests.infrastructure.providers.streams.anthropic_wire import (
    closed,
    ending,
    opened,
    sse,
    start,
    text,
    thinking,
    tool,
)
from tests.support.raw_http import HANG_CEILING, HEAD, LAST_CHUNK, RawHttpServer, chunk, response

DIALECT = DIALECTS["anthropic_messages"]
CLAUDE = ModelProfile(
    "claude-m", dialect="anthropic_messages", provider="anthropic", price=TokenPrice(3.0, 0.3, 15.0)
)
QUESTION = Message(id="q", session_id="s", role="user", content=(TextBlock(text="Hi"),))


async def ask(server: RawHttpServer, *messages: Message) -> tuple[Attempt, list[ModelEvent]]:
    request = ModelRequest("m", "", messages, sampling=Sampling(None, None))
    config = ProviderConfig(server.url, "secret-key", profile=ANTHROPIC)
    endpoint = Endpoint(config, HttpClient, RateLimiter(time.monotonic))
    attempt = Attempt(endpoint, CLAUDE, request, set())
    try:
        async with asyncio.timeout(HANG_CEILING):
            return attempt, [event async for batch in attempt.batches() for event in batch]
    finally:
        await endpoint.aclose()


def assembled(events: list[ModelEvent]) -> Message:
    numbers = iter(range(100))
    assembler = MessageAssembler(lambda: str(next(numbers)), "turn", "message")
    assembler.feed(events)
    assembler.finish()
    return Message(
        id="a",
        session_id="s",
        role="assistant",
        content=tuple(assembler.blocks),
        provider=assembler.provider,
    )


async def test_a_tool_loop_gets_its_thinking_back_letter_by_letter() -> None:  # C2 C3
    first = sse(
        start(),
        *thinking(0, "Let me ", "look.", signature="seal=="),
        opened(1, "redacted_thinking", data="hidden=="),
        closed(1),
        *text(2, "I look."),
        *tool(3, "", '{"x": 1}'),
        *ending("tool_use"),
    )
    last = sse(start("msg_2"), *text(0, "Found."), *ending())
    answers = [[HEAD, chunk(body), LAST_CHUNK] for body in (first, last)]
    async with RawHttpServer(*answers) as server:
        attempt, events = await ask(server, QUESTION)
        assert attempt.error is None
        assert events[-1] == ResponseFinished("tool_calls", "tool_use")
        result = ToolResultBlock(tool_use_id="toolu_1", content=(TextBlock(text="here"),))
        results = Message(id="t", session_id="s", role="tool", content=(result,))
        _, events = await ask(server, QUESTION, assembled(events), results)
        assert events[-1] == ResponseFinished("stop", "end_turn")
    sent = server.requests[1]
    assert (sent.target, sent.headers["x-api-key"]) == ("/v1/messages", "secret-key")
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert sent.json["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me look.", "signature": "seal=="},
        {"type": "redacted_thinking", "data": "hidden=="},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"x": 1}},
    ]


async def test_refusals_are_understood() -> None:  # A12
    found = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with RawHttpServer(response(529, found, "request-id: req_1")) as server:
        error = (await ask(server, QUESTION))[0].error
    assert error is not None
    assert (error.code, error.http_status, error.retryable) == ("RateLimited", 529, True)
    assert error.details == {"type": "overloaded_error", "limit": "overload", "traceId": "req_1"}


async def test_an_unknown_model_is_told_from_a_wrong_address() -> None:  # A2
    found = {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-9"}}
    async with RawHttpServer(response(404, found)) as server:
        error = (await ask(server, QUESTION))[0].error
    assert error is not None
    assert error.code == "ModelNotFound"


def test_cost() -> None:  # C5
    decoder = MessagesDecoder(AnswerContext(price=CLAUDE.price))
    head = start(input_tokens=100_000, output_tokens=1, cache_read_input_tokens=1_000_000)
    events = [head, *text(0, "Hi"), *ending(output_tokens=100_000)]
    decoder.feed_many(json.dumps(event).encode() for event in events)
    (reported,) = [event for event in decoder.finish() if isinstance(event, UsageReported)]
    assert reported.cost_usd == pytest.approx(0.3 + 0.3 + 1.5)


def test_cost_of_a_cache_that_lasts() -> None:  # C5
    price = TokenPrice(3.0, 0.3, 15.0, cache_write=3.75, cache_write_hour=6.0)
    decoder = MessagesDecoder(AnswerContext(price=price))
    kept = {"ephemeral_1h_input_tokens": 600_000}
    head = start(input_tokens=0, output_tokens=1, cache_creation_input_tokens=1_000_000)
    head["message"]["usage"]["cache_creation"] = kept
    events = [head, *text(0, "Hi"), *ending(output_tokens=0)]
    decoder.feed_many(json.dumps(event).encode() for event in events)
    (reported,) = [event for event in decoder.finish() if isinstance(event, UsageReported)]
    assert reported.cost_usd == pytest.approx(0.4 * 3.75 + 0.6 * 6.0)


KEYS = st.sampled_from(
    ["type", "index", "delta", "content_block", "message", "usage", "error", "id", "model", "text",
     "thinking", "partial_json", "signature", "data", "name", "input", "content", "stop_reason",
     "input_tokens", "cache_creation"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop",
     "message_delta", "message_stop", "message", "ping", "error", "text", "thinking", "tool_use",
     "redacted_thinking", "text_delta", "input_json_delta", "signature_delta", "strange"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), KINDS, st.just("\ud83c")
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4)
)


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=5) | JSON, max_size=8))
def test_no_event_whatever_breaks_the_decoder(events: list[Any]) -> None:
    decoder = MessagesDecoder(AnswerContext(tool_names=frozenset({"text"})))
    found = decoder.feed_many(json.dumps(value).encode() for value in events)
    found += decoder.finish()
    assert isinstance(found[-1], ResponseFinished | ResponseFailed)
    assert sum(isinstance(event, ResponseFinished | ResponseFailed) for event in found) == 1
    # What a turn makes of the events must not break either.
    MessageAssembler(lambda: "b", "turn", "message").feed(found)
