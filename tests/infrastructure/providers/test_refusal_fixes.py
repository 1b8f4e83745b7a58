"""A refused request is put right by what its host said and asked once more; that is remembered."""

import asyncio
import base64
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from kode_sidecar.core.domain.message import ImageBlock, Message, TextBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    ResponseFinished,
    TextDelta,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolSpec
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, ProviderProfile
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.registry import Registry, SessionHosts
from tests.support.raw_http import (
    HANG_CEILING,
    Answer,
    RawHttpServer,
    refusal,
    response,
    says,
)

PICTURE = ImageBlock(
    media_type="image/png", data=base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()
)
TOOLS = [ToolSpec("find", "Finds.", {}), ToolSpec("mcp__a__odd", "Odd.", {})]
WHOLE = {
    "id": "1",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
    ],
}


def fails(words: str, status: int = 400) -> Answer:
    return refusal(status, "invalid_request_error", words)


# What a host says, what the next request has, and what it has not any more.
SAID: dict[str, tuple[Answer, Sequence[str], Sequence[str]]] = {
    "LiteLLM, a member": (
        fails("UnsupportedParamsError: anthropic does not support parameters: ['stream_options']"),
        ["tools"],
        ["stream_options"],
    ),
    "pydantic, a member": (
        fails("body -> tool_choice: Extra inputs are not permitted", 422),
        ["tools"],
        ["tool_choice"],
    ),
    "another name of the budget": (
        fails("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        ["max_completion_tokens"],
        ["max_tokens"],
    ),
    "Ollama, no tools": (fails("registry/llama does not support tools"), [], ["tools"]),
    "OpenRouter, no tools": (
        fails("No endpoints found that support tool use.", 404),
        [],
        ["tools", "tool_choice"],
    ),
    "no pictures": (fails("This model does not support image input"), [], ["data:image"]),
    "too large": (fails("Request exceeds the maximum size", 413), [], ["data:image"]),
    "the schema of one tool": (
        fails("Invalid schema for function 'mcp__a__odd': None is not of type 'object'"),
        ["find"],
        ["mcp__a__odd"],
    ),
    "a tool by its place": (
        fails("tools.1.custom.input_schema: JSON schema is invalid"),
        ["find"],
        ["mcp__a__odd"],
    ),
}


def client(server: RawHttpServer, hosts: SessionHosts) -> ChatClient:
    model = ModelProfile("m", dialect="openai_chat", images=True)
    profile = ProviderProfile(name="acme", base_url=server.url, models=(model,))
    return ChatClient(
        Registry([ProviderConfig(server.url, "", profile=profile)]), HttpClient, hosts=hosts
    )


async def ask(chat: ChatClient) -> list[ModelEvent]:
    said = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"), PICTURE))
    asked = ModelRequest(
        "acme/m", "", [said], TOOLS, sampling=Sampling(None, None), max_tokens=100, cache_key="s1"
    )
    async with asyncio.timeout(HANG_CEILING), aclosing(chat.stream(asked)) as batches:
        return [event async for batch in batches for event in batch]


def words(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def notices(events: Sequence[ModelEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, ModelNotice)]


@pytest.mark.parametrize("case", SAID.values(), ids=list(SAID))
async def test_it_is_asked_once_more_without_what_was_refused(
    case: tuple[Answer, Sequence[str], Sequence[str]],
) -> None:
    refused, there, gone = case
    hosts = SessionHosts()
    async with RawHttpServer(refused, says("fine")) as server:
        chat = client(server, hosts)
        events = await ask(chat)
        assert words(events) == "fine"
        assert "RequestAdapted" in notices(events)
        again = await ask(chat)
        assert "RequestAdapted" not in notices(again)
        await chat.aclose()
        later = client(server, hosts)  # what was learned belongs to the host
        assert words(await ask(later)) == "fine"
        await later.aclose()
        first, *others = [str(request.json) for request in server.requests]
        assert len(others) == 3
        for other in others:
            assert [one for one in gone if f"{one}'" in other or f"'{one}" in other] == []
            assert [one for one in there if one not in other] == []
        assert all(one in first for one in gone)


async def test_a_host_that_does_not_stream_answers_as_a_whole() -> None:
    refused = fails("Streaming is not supported for this model")
    async with RawHttpServer(refused, response(200, WHOLE)) as server:
        chat = client(server, SessionHosts())
        events = await ask(chat)
        await chat.aclose()
        assert words(events) == "fine"
        assert isinstance(events[-1], ResponseFinished)
        assert [request.json["stream"] for request in server.requests] == [True, False]


@pytest.mark.parametrize(
    "said", ["The request is invalid", "high risk", "unknown role in messages", "stream broke"]
)
async def test_what_names_nothing_of_ours_fails_at_once(said: str) -> None:
    async with RawHttpServer(fails(said)) as server:
        chat = client(server, SessionHosts())
        events: Any = await ask(chat)
        await chat.aclose()
        assert isinstance(events[-1], ResponseFailed)
        assert len(server.requests) == 1


async def test_a_host_that_always_finds_something_is_asked_four_times_at_most() -> None:
    names = ("tool_choice", "max_tokens", "stream_options", "tools")
    answers = [fails(f"Unknown parameter: {name}") for name in names]
    async with RawHttpServer(*answers) as server:
        chat = client(server, SessionHosts())
        events = await ask(chat)
        await chat.aclose()
        assert isinstance(events[-1], ResponseFailed)
        assert len(server.requests) == 4
