"""Forty hosts of past and future: each name is answered within two requests, or told the truth.

Real loopback HTTP; the words of the refusals are those of the vendors.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kode_sidecar.core.domain.message import ImageBlock, Message, TextBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    TextDelta,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolSpec
from kode_sidecar.core.settings import load_settings
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.registry import SessionHosts, SessionRetiredModels
from kode_sidecar.servers.boot.provider_setup import set_up_providers
from tests.support.raw_http import HANG_CEILING, Answer, RawHttpServer, RawRequest, response

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJ"
    "RU5ErkJggg=="
)


class Vendor(NamedTuple):
    """A vendor: its provider, a name a user gives, today's answer, the next id, and its refusal."""

    provider: str
    name: str
    today: str
    next_id: str
    gone: tuple[int, object]


def _openai(message: str, code: str = "model_not_found") -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


_KIMI_GONE = (
    404,
    {
        "error": {
            "message": "Not found the model x or Permission denied",
            "type": "resource_not_found_error",
        }
    },
)
_NO_CLAUDE = (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}})
_NO_QWEN = (404, _openai("The model `x` does not exist or you do not have access to it."))
_NO_GLM = (400, {"error": {"code": "1211", "message": "模型不存在，请检查模型代码。"}})
_NO_ROUTE = (400, {"error": {"message": "x is not a valid model ID", "code": 400}})
_NO_GEMINI = (
    404,
    [{"error": {"code": 404, "message": "models/x is not found for API version v1main"}}],
)

VENDORS = (
    Vendor("kimi", "ide-chat", "kimi-k3.1-pro", "kimi-k4-pro", _KIMI_GONE),
    Vendor("kimi", "kimi", "kimi-k2.7-code", "kimi-k4", _KIMI_GONE),
    Vendor("kimi-coding", "kimi-coding", "kimi-for-coding", "kimi-for-coding-2", _KIMI_GONE),
    Vendor("kimi-coding-intl", "kimi-coding-intl", "kimi-for-coding", "k4", _KIMI_GONE),
    Vendor(
        "deepseek",
        "deepseek",
        "deepseek-v4-pro",
        "deepseek-v5",
        (400, _openai("Model Not Exist", "invalid_request_error")),
    ),
    Vendor("qwen", "qwen", "qwen3.8-max", "qwen4-max", _NO_QWEN),
    Vendor("qwen", "qwen-coder", "qwen3-coder-plus", "qwen4-coder", _NO_QWEN),
    Vendor("glm", "glm", "glm-5.3", "glm-6", _NO_GLM),
    Vendor("openrouter", "openrouter", "openrouter/auto", "openrouter/auto-2", _NO_ROUTE),
    Vendor("gemini", "gemini", "gemini-4-argon", "gemini-5-pro", _NO_GEMINI),
    Vendor("openai", "gpt", "gpt-6.1-sol", "gpt-7", (404, _openai("The model `x` does not exist"))),
    Vendor("anthropic", "claude-opus", "claude-opus-5-5", "claude-opus-6", _NO_CLAUDE),
    Vendor("anthropic", "claude-haiku", "claude-haiku-5-5", "claude-haiku-6", _NO_CLAUDE),
)
BY_NAME = {vendor.name: vendor for vendor in VENDORS}
OTHERS = ("text-embedding-9", "whisper-4", "image-2")


def answered(model: str) -> dict[str, Any]:
    """Return a whole answer in both dialects at once: each decoder reads its own members."""
    return {
        "id": "a1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"input_tokens": 9, "output_tokens": 1, "prompt_tokens": 9},
    }


class FakeHost:
    """A vendor's host at some time: what it serves, what it lists (None: it refuses to)."""

    def __init__(
        self, vendor: Vendor, serves: Sequence[str], lists: Sequence[str | dict[str, Any]] | None
    ) -> None:
        self.vendor = vendor
        self.serves = serves
        self.lists = lists
        self.refuses: tuple[str, int, dict[str, Any]] | None = None
        self.calls_it = ""
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []

    def answer(self, request: RawRequest) -> Answer:
        """Return the answer to a request."""
        if request.method == "GET":
            if self.lists is None:
                return response(403, {"error": {"message": "this key may not list models"}})
            entries = [{"id": one} if isinstance(one, str) else one for one in self.lists]
            return response(200, {"object": "list", "data": entries})
        model = request.json["model"]
        self.asked.append(model)
        self.bodies.append(request.json)
        if model not in self.serves:
            status, body = self.vendor.gone
            return response(status, body)
        if self.refuses is not None and (not self.refuses[0] or self.refuses[0] in request.json):
            return response(*self.refuses[1:])
        return response(200, answered(self.calls_it or model))


class Asked:
    """A client with the settings of a user who has a key for a vendor, and its fake host."""

    def __init__(self, host: FakeHost, home: Path) -> None:
        self.host = host
        self.server = RawHttpServer()
        self.server.choose = host.answer
        self.home = home

    async def __aenter__(self) -> "Asked":
        await self.server.__aenter__()
        provider = self.host.vendor.provider
        self.home.mkdir()
        config = (
            f"providers:\n  {provider}:\n    base_url: {self.server.url}\n    api_key_env: KEY\n"
        )
        (self.home / "config.yaml").write_text(config, encoding="utf-8")
        environment = {"KODE_HOME": str(self.home), "KEY": "sk-1"}
        setup = set_up_providers(load_settings(environment))
        assert setup.problems == []
        self.hosts = SessionHosts()
        self.chat = ChatClient(
            setup.registry, HttpClient, retired=SessionRetiredModels(), hosts=self.hosts
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.chat.aclose()
        await self.server.__aexit__()

    async def ask(self, name: str = "", *blocks: ImageBlock) -> list[ModelEvent]:
        """Ask once, with a tool on offer."""
        content = (TextBlock(text="Hi"), *blocks)
        hello = Message(id="m", session_id="s", role="user", content=content)
        tool = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {}})
        request = ModelRequest(
            name or self.host.vendor.name,
            "Be brief.",
            [hello],
            tools=[tool],
            sampling=Sampling(temperature=None, top_p=None),
        )
        async with asyncio.timeout(HANG_CEILING):
            return [event async for batch in self.chat.stream(request) for event in batch]


def said(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def notices(events: Sequence[ModelEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, ModelNotice)]


def truth(events: Sequence[ModelEvent]) -> str:
    (last,) = [event for event in events if isinstance(event, ResponseFailed)]
    return last.error.message


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda one: one.name)
async def test_the_host_of_today_answers_at_once(vendor: Vendor, tmp_path: Path) -> None:
    host = FakeHost(vendor, [vendor.today], [vendor.today])
    async with Asked(host, tmp_path / "home") as asked:
        assert said(await asked.ask()) == "Hi"
        assert host.asked == [vendor.today]


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda one: one.name)
async def test_the_host_of_tomorrow_has_new_ids_only(vendor: Vendor, tmp_path: Path) -> None:
    host = FakeHost(vendor, [vendor.next_id], [*OTHERS, vendor.next_id])
    async with Asked(host, tmp_path / "home") as asked:
        events = await asked.ask()
        assert said(events) == "Hi"
        assert host.asked == [vendor.today, vendor.next_id]
        (notice,) = notices(events)
        assert vendor.today in notice
        assert f"{vendor.next_id} answers" in notice

        # It is said once, and remembered.
        events = await asked.ask()
        assert (said(events), notices(events)) == ("Hi", [])
        assert host.asked[2:] == [vendor.next_id]


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda one: one.name)
async def test_a_host_that_serves_nothing_and_lists_nothing(vendor: Vendor, tmp_path: Path) -> None:
    host = FakeHost(vendor, [], None)
    async with Asked(host, tmp_path / "home") as asked:
        error = truth(await asked.ask())
        assert len(host.asked) <= 2
        assert vendor.today in error
        assert "setting `model`" in error


async def test_a_list_without_the_id_that_is_served_does_no_harm(tmp_path: Path) -> None:
    host = FakeHost(BY_NAME["glm"], ["glm-5.3"], ["glm-4"])
    async with Asked(host, tmp_path / "home") as asked:
        assert said(await asked.ask()) == "Hi"
        assert host.asked == ["glm-5.3"]


async def test_a_host_that_lists_no_model_for_chats(tmp_path: Path) -> None:
    host = FakeHost(BY_NAME["deepseek"], [], OTHERS)
    async with Asked(host, tmp_path / "home") as asked:
        error = truth(await asked.ask())
        assert len(host.asked) <= 2
        assert "whisper-4" in error


async def test_an_id_that_retired_is_answered_by_its_family(tmp_path: Path) -> None:
    lists = ["claude-haiku-6", "claude-opus-6", "claude-opus-5-9", "claude-sonnet-7"]
    host = FakeHost(BY_NAME["claude-opus"], lists, lists)
    async with Asked(host, tmp_path / "home") as asked:
        events = await asked.ask("anthropic/claude-opus-4-1")
        assert said(events) == "Hi"
        assert host.asked == ["claude-opus-4-1", "claude-opus-6"]
        assert "claude-opus-6 answers" in notices(events)[0]
        assert notices(await asked.ask("anthropic/claude-opus-4-1")) == []
        assert host.asked[2:] == ["claude-opus-6"]


async def test_an_id_without_relatives_is_not_replaced(tmp_path: Path) -> None:
    host = FakeHost(BY_NAME["gpt"], ["gpt-7"], ["gpt-7"])
    async with Asked(host, tmp_path / "home") as asked:
        error = truth(await asked.ask("openai/o9-large"))
        assert host.asked == ["o9-large"]
        assert "gpt-7" in error


async def test_a_family_is_the_newest_that_the_host_is_known_to_list(tmp_path: Path) -> None:
    lists = ["gpt-6.1-sol", "gpt-8-mini", "gpt-8", "gpt-7"]
    host = FakeHost(BY_NAME["gpt"], lists, lists)
    async with Asked(host, tmp_path / "home") as asked:
        await asked.chat.endpoint(asked.chat.registry.providers["openai"]).list_models()
        assert said(await asked.ask("gpt")) == "Hi"
        assert host.asked == ["gpt-8"]


async def test_a_reroute_under_another_id_is_said_once(tmp_path: Path) -> None:
    host = FakeHost(BY_NAME["gemini"], ["gemini-2.5-flash"], ["gemini-2.5-flash"])
    host.calls_it = "gemini-3.5-flash-lite"
    async with Asked(host, tmp_path / "home") as asked:
        (notice,) = notices(await asked.ask("gemini/gemini-2.5-flash"))
        assert "gemini-2.5-flash with gemini-3.5-flash-lite" in notice
        assert notices(await asked.ask("gemini/gemini-2.5-flash")) == []


@pytest.mark.parametrize(
    ("asked_id", "called"),
    [
        ("gpt-6.1-sol", "gpt-6.1-sol-2026-10-01"),
        ("gpt-6.1-sol", "openai/gpt-6.1-sol"),
        ("gpt-9-latest", "gpt-9-20270101"),
        ("gpt-mine", "llama-9"),
    ],
)
async def test_the_same_model_in_other_words_is_no_reroute(
    asked_id: str, called: str, tmp_path: Path
) -> None:
    host = FakeHost(BY_NAME["gpt"], [asked_id], [asked_id])
    host.calls_it = called
    async with Asked(host, tmp_path / "home") as asked:
        assert notices(await asked.ask(f"openai/{asked_id}")) == []


TRUTHS = {
    "403 by client": (
        "kimi-coding",
        (
            403,
            {
                "error": {
                    "type": "access_terminated_error",
                    "message": "Kimi For Coding is currently only available for Coding Agents",
                }
            },
        ),
        ("approved", "platform.kimi.com"),
    ),
    "account empty": (
        "deepseek",
        (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}),
        ("recharge",),
    ),
    "key of another region": (
        "ide-chat",
        (401, {"error": {"type": "invalid_authentication_error", "message": "Invalid key"}}),
        ("did not accept the API key",),
    ),
}


@pytest.mark.parametrize("case", TRUTHS.values(), ids=list(TRUTHS))
async def test_one_request_and_the_truth(
    case: tuple[str, tuple[int, dict[str, Any]], tuple[str, ...]], tmp_path: Path
) -> None:
    name, refusal, words = case
    vendor = BY_NAME[name]
    host = FakeHost(vendor, [vendor.today], [vendor.today])
    host.refuses = ("", *refusal)
    async with Asked(host, tmp_path / "home") as asked:
        error = truth(await asked.ask())
        assert len(host.asked) == 1
        for word in words:
            assert word in error


async def test_a_model_without_tools_is_asked_without_them(tmp_path: Path) -> None:
    vendor = BY_NAME["glm"]
    host = FakeHost(vendor, [vendor.today], [vendor.today])
    host.refuses = ("tools", 400, _openai("glm-5.3 does not support tools", "bad_request"))
    async with Asked(host, tmp_path / "home") as asked:
        events = await asked.ask()
        assert (said(events), len(host.asked)) == ("Hi", 2)
        assert "takes no tools" in notices(events)[0]


async def test_a_model_without_images_is_asked_without_them(tmp_path: Path) -> None:
    vendor = BY_NAME["gemini"]
    host = FakeHost(vendor, [vendor.today], [vendor.today])
    host.refuses = ("messages", 400, _openai("It does not support image input", "bad_request"))

    def answer(request: RawRequest) -> Answer:
        if request.method == "POST" and b"base64" not in request.body:
            host.refuses = None
        return host.answer(request)

    async with Asked(host, tmp_path / "home") as asked:
        asked.server.choose = answer
        events = await asked.ask("", ImageBlock(data=PNG, media_type="image/png"))
        assert (said(events), len(host.asked)) == ("Hi", 2)
        assert "takes no pictures" in notices(events)[0]


WINDOWS: dict[str, dict[str, Any]] = {
    "Moonshot, OpenRouter": {"context_length": 16_384},
    "llama.cpp": {"meta": {"n_ctx": 16_384, "n_ctx_train": 131_072}},
    "vLLM, SGLang": {"max_model_len": 16_384},
    "LiteLLM, Anthropic": {"max_input_tokens": 16_384, "max_output_tokens": 4_096},
    "LiteLLM, beside the model": {"model_info": {"max_input_tokens": 16_384}},
    "Mistral": {"max_context_length": 16_384},
    "LM Studio": {"max_context_length": 131_072, "loaded_context_length": 16_384},
    "Groq": {"context_window": 16_384},
}


@pytest.mark.parametrize("fields", WINDOWS.values(), ids=list(WINDOWS))
async def test_another_window_is_read_from_the_list(fields: dict[str, Any], tmp_path: Path) -> None:
    vendor = BY_NAME["qwen"]
    host = FakeHost(vendor, [vendor.today], [{"id": vendor.today, **fields}, {"id": "odd"}])
    async with Asked(host, tmp_path / "home") as asked:
        endpoint = asked.chat.endpoint(asked.chat.registry.providers["qwen"])
        models = await endpoint.list_models()
        assert [one.context_length for one in models] == [16_384, None]
        assert asked.chat.models("qwen")[0].context_window == 16_384
