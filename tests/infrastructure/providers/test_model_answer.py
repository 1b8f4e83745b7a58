"""One question, one whole answer: with and without a stream, with and without an event loop."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from kode_sidecar.core.domain.model_event import ResponseFinished, UsageReported
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolSpec
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.known_providers import ANTHROPIC, KIMI
from kode_sidecar.infrastructure.providers.model_answer import (
    BlockingModels,
    ModelAnswer,
    send_message,
)
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.rate_limiter import RetryPolicy
from kode_sidecar.infrastructure.providers.registry import Registry
from tests.support.raw_http import (
    HANG_CEILING,
    HEAD,
    LAST_CHUNK,
    Answer,
    RawHttpServer,
    chunk,
    delta,
    event,
    refusal,
    response,
    sse_answer,
)

KEY = "live-key-3141592653"
SPENT: dict[str, Any] = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "total_tokens": 110,
    "cached_tokens": 40,
    "completion_tokens_details": {"reasoning_tokens": 4},
}
CALL: dict[str, Any] = {
    "index": 0,
    "id": "read_file:0",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "a"}'},
}
STREAMED = sse_answer(
    delta(role="assistant", content=""),
    delta(reasoning_content="hm"),
    delta(content="Let me "),
    delta(content="look."),
    delta(tool_calls=[CALL]),
    delta("tool_calls"),
    event({"id": "chatcmpl-1", "choices": [], "usage": SPENT}),
    b"data: [DONE]\n\n",
)
MESSAGE = {
    "role": "assistant",
    "reasoning_content": "hm",
    "content": "Let me look.",
    "tool_calls": [CALL],
}
WHOLE = response(
    200,
    {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [{"message": MESSAGE, "finish_reason": "tool_calls"}],
        "usage": SPENT,
    },
)
CLAUDE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "model": "claude-opus-5",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 2000,
        "output_tokens": 10,
    },
}


def client(url: str) -> ChatClient:
    configs = [
        ProviderConfig(url, KEY, profile=KIMI),
        ProviderConfig(url, KEY, profile=ANTHROPIC),
    ]
    return ChatClient(Registry(configs), HttpClient, retry=RetryPolicy(lambda: 0.0))


def request(model: str = "kimi-k2.6", **fields: Any) -> ModelRequest:
    hello = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
    tools = [ToolSpec("read_file", "", {"type": "object"})]
    return ModelRequest(model, "", [hello], tools, sampling=Sampling(None, None), **fields)


async def ask(url: str, asked: ModelRequest) -> ModelAnswer:
    chat = client(url)
    try:
        async with asyncio.timeout(HANG_CEILING):
            return await send_message(chat, asked)
    finally:
        await chat.aclose()


def reported(answer: ModelAnswer) -> dict[str, Any]:
    """All of an answer but its raw bytes, and ids that count up."""
    return {name: getattr(answer, name) for name in answer.__struct_fields__ if name != "raw"}


async def test_a_whole_answer_equals_the_drained_stream() -> None:  # A13 C3 D7
    async with RawHttpServer(STREAMED, WHOLE) as server:
        streamed = await ask(server.url, request())
        whole = await ask(server.url, request(stream=False))
        assert [sent.json["stream"] for sent in server.requests] == [True, False]
        assert "stream_options" not in server.requests[1].json
    assert reported(streamed) == reported(whole)
    assert streamed.content == (
        ThinkingBlock(id="b1", text="hm"),
        TextBlock(id="b2", text="Let me look."),
        ToolUseBlock(
            id="b3",
            tool_use_id="read_file:0",
            name="read_file",
            input={"path": "a"},
            title="Read file",
        ),
    )
    assert streamed.usage == Usage(
        input_tokens=100,
        output_tokens=10,
        total_tokens=110,
        cached_tokens=40,
        reasoning_tokens=4,
    )
    assert streamed.cost_usd == pytest.approx((60 * 0.95 + 40 * 0.16 + 10 * 4.0) / 1e6)
    assert (streamed.finish_reason, streamed.raw_finish_reason) == ("tool_calls", "tool_calls")
    assert (streamed.provider, streamed.asked, streamed.model, streamed.response_id) == (
        "kimi",
        "kimi-k2.6",
        "m",
        "chatcmpl-1",
    )
    assert json.loads(whole.raw)["choices"][0]["message"] == MESSAGE
    assert streamed.raw.endswith(b"data: [DONE]\n\n")


async def test_it_holds_what_the_stream_reports() -> None:  # A13
    async with RawHttpServer(STREAMED) as server:
        answer = await ask(server.url, request())
        chat = client(server.url)
        async with aclosing(chat.stream(request())) as batches:
            events = [event async for batch in batches for event in batch]
        await chat.aclose()
    (usage,) = [event for event in events if isinstance(event, UsageReported)]
    assert (answer.usage, answer.cost, answer.cost_usd) == (usage.usage, usage.cost, usage.cost_usd)
    assert events[-1] == ResponseFinished("tool_calls", "tool_calls")


async def test_what_is_written_into_a_cache_has_its_price() -> None:  # C5
    async with RawHttpServer(response(200, CLAUDE)) as server:
        answer = await ask(server.url, request("anthropic/claude-opus-5", stream=False))
        (sent,) = server.requests
    assert (sent.target, sent.json["stream"]) == ("/v1/messages", False)
    assert sent.headers["x-api-key"] == KEY
    assert answer.usage == Usage(
        input_tokens=3100,
        output_tokens=10,
        total_tokens=3110,
        cached_tokens=2000,
        cache_write_tokens=1000,
    )
    assert answer.cost_usd == pytest.approx((100 * 5 + 2000 * 0.5 + 1000 * 6.25 + 10 * 25) / 1e6)
    assert (answer.provider, answer.finish_reason, answer.raw_finish_reason) == (
        "anthropic",
        "stop",
        "end_turn",
    )


async def test_what_stays_in_a_cache_for_an_hour_has_its_own_price() -> None:  # C5
    brief = {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600}
    usage = {**CLAUDE["usage"], "cache_creation": brief}
    async with RawHttpServer(response(200, {**CLAUDE, "usage": usage})) as server:
        answer = await ask(server.url, request("anthropic/claude-opus-5", stream=False))
    assert answer.usage is not None
    assert answer.usage.cache_write_tokens == 1000
    written = 400 * 6.25 + 600 * 10
    assert answer.cost_usd == pytest.approx((100 * 5 + 2000 * 0.5 + written + 10 * 25) / 1e6)


CUT: Answer = [HEAD, chunk(delta(content="Hel")), LAST_CHUNK]


async def test_a_failure_is_part_of_the_answer() -> None:
    async with RawHttpServer(CUT, CUT) as server:
        answer = await ask(server.url, request())
    assert answer.error is not None
    assert answer.error.code == "IncompleteAnswer"
    assert answer.content == (TextBlock(id="b2", text="Hel"),)
    assert answer.finish_reason is None


async def test_the_raw_answer_holds_no_key() -> None:  # W14
    async with RawHttpServer(refusal(400, "invalid_request_error", f"bad {KEY}")) as server:
        answer = await ask(server.url, request())
    assert answer.error is not None
    assert b"bad ***" in answer.raw
    assert KEY not in repr(answer)


def test_without_an_event_loop() -> None:  # A13 C3
    ready: list[RawHttpServer] = []

    async def serve() -> RawHttpServer:
        return await RawHttpServer(STREAMED, WHOLE).__aenter__()

    with asyncio.Runner() as runner:
        ready.append(runner.run(serve()))
        server = ready[0]

        async def ask_in_thread() -> tuple[ModelAnswer, ModelAnswer]:
            return await asyncio.to_thread(_ask_blocking, server.url)

        streamed, whole = runner.run(ask_in_thread())
        assert reported(streamed) == reported(whole)
        assert {sent.connection for sent in server.requests} == {1}
        runner.run(server.__aexit__())


def _ask_blocking(url: str) -> tuple[ModelAnswer, ModelAnswer]:
    with BlockingModels(lambda: client(url)) as models:
        return models.send_message(request()), models.send_message(request(), stream=False)
