"""OpenAI's Responses API from the socket to the next request: what goes out, and comes back."""

import asyncio
import json
import time
from typing import Any

import msgspec
import pytest

from kode_sidecar.core.domain.message import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from kode_sidecar.core.domain.model_event import ModelEvent, UsageReported
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolSpec
from kode_sidecar.core.kernel.message_assembler import MessageAssembler
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.attempt import Attempt
from kode_sidecar.infrastructure.providers.dialect import AnswerDecoder
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.endpoint import Endpoint
from kode_sidecar.infrastructure.providers.known_providers import BUILTIN_PROVIDERS, OPENAI
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, ProviderProfile, TokenPrice
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig, read_providers
from kode_sidecar.infrastructure.providers.rate_limiter import RateLimiter
from tests.infrastructure.providers.streams.responses_wire import (
    HI,
    call_item,
    created,
    ending,
    reasoning,
    reasoning_item,
    sse,
    text,
    tool,
)
from tests.support.raw_http import HANG_CEILING, HEAD, LAST_CHUNK, RawHttpServer, chunk

Json = dict[str, Any]
GPT = ModelProfile(
    "gpt-m",
    dialect="openai_responses",
    provider="openai",
    price=TokenPrice(2.0, 0.2, 8.0),
    images=True,
)
QUESTION = Message(id="q", session_id="s", role="user", content=(TextBlock(text="Hi"),))
FIND = ToolSpec("find", "Find it.", {"properties": {"x": {"type": "integer"}}})
# Two calls, each with reasoning of its own, and a summary for the first.
TWO_THOUGHTS = sse(
    *created(),
    *reasoning(0, "Let me", "look"),
    *tool(1, '{"x": 1}'),
    *reasoning(2, sealed="gAAAmore"),
    *tool(3, "{}", call="call_2"),
    ending(
        reasoning_item("Let me", "look"),
        call_item('{"x": 1}'),
        reasoning_item(sealed="gAAAmore", n=2),
        call_item("{}", "call_2", n=3),
    ),
)


def sent(model: ModelProfile, *messages: Message, **fields: Any) -> Json:
    request = ModelRequest("m", "Be brief.", messages or (QUESTION,), **fields)
    return json.loads(DIALECTS[model.dialect].encode_request(request, model).body)


async def ask(server: RawHttpServer, *messages: Message) -> tuple[Attempt, list[ModelEvent]]:
    request = ModelRequest("m", "", messages, [FIND], sampling=Sampling(None, None))
    config = ProviderConfig(server.url, "secret-key", profile=OPENAI)
    endpoint = Endpoint(config, HttpClient, RateLimiter(time.monotonic))
    attempt = Attempt(endpoint, GPT, request, set())
    try:
        async with asyncio.timeout(HANG_CEILING):
            return attempt, [event async for batch in attempt.batches() for event in batch]
    finally:
        await endpoint.aclose()


def assembled(events: list[ModelEvent], provider: str = "openai") -> Message:
    """The message that an answer becomes, as it comes back from the disk."""
    numbers = iter(range(100))
    assembler = MessageAssembler(lambda: str(next(numbers)), "turn", "message")
    assembler.feed(events)
    assembler.finish()
    message = Message(
        id="a",
        session_id="s",
        role="assistant",
        content=tuple(assembler.blocks),
        provider=provider,
    )
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


def read(body: bytes) -> list[ModelEvent]:
    request = ModelRequest("m", "", [QUESTION])
    errors = ProviderConfig("https://x.example/v1", profile=OPENAI, api_key="k").errors()
    decoder = AnswerDecoder(DIALECTS["openai_responses"].new_decoder(request, GPT, errors))
    return [*decoder.feed(body), *decoder.finish()]


def results(*ids: str) -> Message:
    blocks = tuple(
        ToolResultBlock(tool_use_id=one, content=(TextBlock(text="found"),)) for one in ids
    )
    return Message(id="t", session_id="s", role="tool", content=blocks)


async def test_a_tool_loop_gets_its_reasoning_back_letter_by_letter() -> None:  # C2 C3
    bodies = (TWO_THOUGHTS, sse(*created(), *HI, ending()))
    async with RawHttpServer(*([HEAD, chunk(one), LAST_CHUNK] for one in bodies)) as server:
        attempt, events = await ask(server, QUESTION)
        assert attempt.error is None
        first = assembled(events)
        thoughts = [block.text for block in first.content if isinstance(block, ThinkingBlock)]
        assert thoughts == ["Let me\n\nlook", ""]
        attempt, _ = await ask(server, QUESTION, first, results("call_1", "call_2"))
        assert attempt.error is None
        again: Json = json.loads(server.requests[1].body)
    assert server.requests[1].target == "/v1/responses"
    assert again["input"][1:] == [
        reasoning_item("Let me", "look"),
        {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": '{"x":1}'},
        reasoning_item(sealed="gAAAmore", n=2),
        {"type": "function_call", "call_id": "call_2", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        {"type": "function_call_output", "call_id": "call_2", "output": "found"},
    ]


async def test_each_message_gets_its_phase_back() -> None:
    """Also two of them in a row, which stay two."""
    looking, hello = {"phase": "commentary"}, {"phase": "final_answer"}
    body = sse(
        *created(),
        *text(0, "I am ", "looking.", **looking),
        *tool(1, '{"x": 1}'),
        *text(2, "Found.", item_id="msg_2", **looking),
        *text(3, "Hello", item_id="msg_3", **hello),
        ending(),
    )
    bodies = (body, sse(*created(), *HI, ending()))
    async with RawHttpServer(*([HEAD, chunk(one), LAST_CHUNK] for one in bodies)) as server:
        _, events = await ask(server, QUESTION)
        answer = assembled(events)
        await ask(server, QUESTION, answer, results("call_1"))
        again: Json = json.loads(server.requests[1].body)
    said = [item for item in again["input"] if item.get("role") == "assistant"]
    message = {"type": "message", "role": "assistant"}
    assert said == [
        {**message, "content": "I am looking.", **looking},
        {**message, "content": "Found.", **looking},
        {**message, "content": "Hello", **hello},
    ]
    other = msgspec.structs.replace(GPT, provider="acme")
    assert "phase" not in json.dumps(sent(other, QUESTION, answer, results("call_1")))
    chat = msgspec.structs.replace(GPT, dialect="openai_chat")
    assert "phase" not in json.dumps(sent(chat, QUESTION, answer, results("call_1")))


def test_an_answer_without_phases_gets_none() -> None:
    events = read(sse(*created(), *text(0, "One", phase=None), ending()))
    assert "phase" not in json.dumps(sent(GPT, QUESTION, assembled(events), QUESTION))


def test_a_request_says_what_it_is_to_say_and_the_host_keeps_nothing() -> None:
    body = sent(GPT, tools=[FIND], max_tokens=5, cache_key="s1", effort=None)
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert (body["instructions"], body["prompt_cache_key"]) == ("Be brief.", "s1")
    assert body["max_output_tokens"] == 16, "less is refused"
    assert body["tools"][0]["parameters"]["type"] == "object"
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    ]
    plain = msgspec.structs.replace(GPT, id="openai/gpt-4.1")
    assert "include" not in sent(plain)


@pytest.mark.parametrize("other", ["kimi", "openai_chat", "openai_responses", "anthropic_messages"])
def test_another_host_gets_none_of_the_reasoning(other: str) -> None:
    profile = ProviderProfile(name="acme", base_url="https://x.example/v1", dialect=other)  # type: ignore[arg-type]
    answer = assembled(read(TWO_THOUGHTS))
    body = json.dumps(sent(profile.model("m"), QUESTION, answer, results("call_1", "call_2")))
    assert "gAAA" not in body
    assert "reasoning_item" not in body


@pytest.mark.parametrize("other", ["kimi", "openai_chat", "anthropic_messages"])
def test_nor_does_another_dialect_of_the_same_host(other: str) -> None:
    profile = msgspec.structs.replace(OPENAI, dialect=other)
    answer = assembled(read(TWO_THOUGHTS))
    body = json.dumps(sent(profile.model("m"), QUESTION, answer, results("call_1", "call_2")))
    assert "gAAA" not in body
    assert "reasoning_item" not in body


def test_reasoning_that_led_to_nothing_stays_away() -> None:
    """The host refuses it without the item that followed."""
    events = read(sse(*created(), *text(0, "One"), *reasoning(1), ending()))
    items = sent(GPT, QUESTION, assembled(events), QUESTION)["input"]
    assert [item["type"] for item in items] == ["message"] * 3


def test_what_tools_show_is_seen_with_their_result() -> None:
    picture = ImageBlock(media_type="image/png", data="AAAA")
    call = assembled(read(sse(*created(), *tool(0, "{}"), ending())))
    shown = ToolResultBlock(tool_use_id="call_1", content=(TextBlock(text="One"), picture))
    history = (QUESTION, call, Message(id="t", session_id="s", role="tool", content=(shown,)))
    assert sent(GPT, *history)["input"][-1]["output"] == [
        {"type": "input_text", "text": "One"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]
    blind = msgspec.structs.replace(GPT, images=False)
    assert "reads text only" in sent(blind, *history)["input"][-1]["output"]


def test_one_word_of_the_users_makes_a_provider_speak_it() -> None:
    own = {"openai": {"dialect": "openai_responses", "body": {"reasoning": {"summary": "auto"}}}}
    provider = read_providers(own, BUILTIN_PROVIDERS)["openai"]
    model = provider.model("gpt-new")
    assert sent(model, effort="max")["reasoning"] == {"summary": "auto", "effort": "xhigh"}
    assert "reasoning_effort" not in sent(model, effort="low")
    assert sent(model)["reasoning"] == {"summary": "auto"}


def test_usage_is_priced() -> None:
    (reported,) = [event for event in read(TWO_THOUGHTS) if isinstance(event, UsageReported)]
    assert (reported.usage.cached_tokens, reported.usage.reasoning_tokens) == (20, 2)
    assert reported.cost_usd == pytest.approx((10 * 2.0 + 20 * 0.2 + 5 * 8.0) / 1e6)
