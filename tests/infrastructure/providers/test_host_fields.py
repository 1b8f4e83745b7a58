"""What `config.yaml` and the presets say of a host reaches its requests; what it does is told."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock, ThinkingBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import ModelEvent, ModelNotice, UsageReported
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.http.request import HttpTimeouts, TimeLimits
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.known_providers import (
    KIMI,
    KIMI_INTERNATIONAL,
    PRESETS,
    as_at_host,
    billed_by,
)
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, TokenPrice, WireNames
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig, read_providers
from kode_sidecar.infrastructure.providers.registry import Registry
from kode_sidecar.infrastructure.records.host_models import KnownHosts
from tests.support.raw_http import RawHttpServer, delta, event, refusal, sse_answer

HELLO = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
ACME: dict[str, Any] = {
    "base_url": "https://llm.example/v1",
    "body": {"top_k": 5, "provider": {"sort": "price"}},
    "timeouts": {"first_byte": 300, "idle": 400},
    "models": [{"id": "large", "body": {"top_k": 9}, "timeouts": {"idle": 900}}, "small"],
}


def body(model: ModelProfile, *messages: Message) -> dict[str, Any]:
    request = ModelRequest("m", "", messages or (HELLO,))
    return json.loads(DIALECTS[model.dialect].encode_request(request, model).body)


@pytest.mark.parametrize(
    "dialect", ["openai_chat", "openai_responses", "anthropic_messages", "kimi"]
)
def test_fields_of_the_user_go_with_every_request(dialect: str) -> None:
    acme = read_providers({"acme": {**ACME, "dialect": dialect}}, {})["acme"]
    for model_id, top_k in (("large", 9), ("small", 5), ("unlisted", 5)):
        sent = body(acme.model(model_id))
        assert (sent["top_k"], sent["provider"]) == (top_k, {"sort": "price"})


@pytest.mark.parametrize("field", ["model", "messages", "tools", "stream"])
def test_what_a_request_is_about_is_not_the_users_to_set(field: str) -> None:
    for entry in (
        {**ACME, "body": {field: 1}},
        {**ACME, "models": [{"id": "x", "body": {field: 1}}]},
    ):
        with pytest.raises(KodeError, match=rf"providers\.acme\.body.*{field}"):
            read_providers({"acme": entry}, {})


def test_patience_by_provider_and_model() -> None:
    acme = read_providers({"acme": ACME}, {})["acme"]
    usual = HttpTimeouts()
    large, small = usual.of(acme.model("large").timeouts), usual.of(acme.model("small").timeouts)
    assert (large.first_byte, large.idle, large.pinged) == (300, 900, 900)
    assert (small.first_byte, small.idle, small.connect) == (300, 400, usual.connect)
    assert usual.of(TimeLimits()) == usual
    with pytest.raises(KodeError, match=r"providers\.acme\.timeouts"):
        read_providers({"acme": {**ACME, "timeouts": {"idle": -1}}}, {})


def test_reasoning_goes_back_under_the_hosts_own_name() -> None:
    call = ToolUseBlock(tool_use_id="a", name="find")
    answer = Message(
        id="a", session_id="s", role="assistant", content=(ThinkingBlock(text="Hm"), call)
    )
    names = WireNames(reasoning_back="reasoning")
    model = ModelProfile("m", dialect="openai_chat", thinking="always", names=names)
    sent = body(model, HELLO, answer)["messages"][1]
    assert sent["reasoning"] == "Hm"
    assert "reasoning_content" not in sent


def test_the_chinese_host_bills_in_its_own_currency() -> None:
    chinese = billed_by("api.moonshot.cn", KIMI)
    assert {model.price.currency for model in chinese.models if model.price} == {"CNY"}
    pro = chinese.model("kimi-k3.1-pro").price
    assert pro is not None
    assert (pro.input, pro.cached, pro.output, pro.cache_write) == (13, 1.3, 68, 13)
    assert billed_by("api.moonshot.ai", KIMI_INTERNATIONAL) is KIMI_INTERNATIONAL
    own = {"kimi": {"models": [{"id": "kimi-k3", "price": {"input": 1, "cached": 1, "output": 1}}]}}
    mine = billed_by("api.moonshot.cn", read_providers(own, {"kimi": KIMI})["kimi"])
    assert mine.model("kimi-k3").price == TokenPrice(1, 1, 1)


def test_only_the_vendors_host_is_known_to_take_late_tools() -> None:
    for host, takes in (("api.moonshot.cn", True), ("gateway.example", None)):
        there = as_at_host(host, KIMI)
        assert there.model("kimi-k3.1-pro").late_tools is takes
        assert there.model("kimi-k2.6").system_notes is takes
        assert not there.model("kimi-k2.6").late_tools, "the K3 family alone"
        assert not there.model("kimi-k9").system_notes
    own = {"kimi": {"models": [{"id": "kimi-k3", "late_tools": False, "system_notes": False}]}}
    mine = as_at_host("api.moonshot.ai", read_providers(own, {"kimi": KIMI})["kimi"])
    assert (mine.model("kimi-k3").late_tools, mine.model("kimi-k3").system_notes) == (False, False)


def test_no_retired_model_is_in_the_table() -> None:
    ids = {model.id for model in KIMI.models}
    assert ids >= {"kimi-k3.1-pro", "kimi-k3.1-pro-highspeed", "kimi-k3", "kimi-k2.6"}
    assert not {one for one in ids if "k2.5" in one or "moonshot" in one or "turbo" in one}


@pytest.fixture
async def server() -> AsyncIterator[RawHttpServer]:
    usage = {"prompt_tokens": 2_048, "completion_tokens": 5, "cost": 0.25}
    last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    end = event({"choices": [last], "usage": usage})
    async with RawHttpServer(sse_answer(delta(content="Hi"), end)) as one:
        yield one


async def ask(server: RawHttpServer, preset: str, prompt_tokens: int) -> list[ModelEvent]:
    config = ProviderConfig(server.url, "k" * 20, profile=PRESETS[preset])
    client = ChatClient(Registry([config]), HttpClient)
    request = ModelRequest(f"{preset}/m", "", [HELLO], prompt_tokens=prompt_tokens)
    try:
        return [event async for batch in client.stream(request) for event in batch]
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("preset", "size", "said"),
    [("ollama", 9_000, True), ("ollama", 2_100, False), ("deepseek", 9_000, False)],
)
async def test_a_host_that_cuts_silently_is_told_of(
    server: RawHttpServer, preset: str, size: int, said: bool
) -> None:
    events = await ask(server, preset, size)
    codes = [event.code for event in events if isinstance(event, ModelNotice)]
    assert ("PromptCut" in codes) is said


async def test_the_window_of_an_unknown_model_is_learned_from_a_refusal() -> None:
    said = "This model's maximum context length is 8192 tokens."
    refused = refusal(400, "invalid_request_error", said)
    async with RawHttpServer(refused) as server:
        config = ProviderConfig(server.url, "k" * 20, profile=PRESETS["lmstudio"])
        client = ChatClient(Registry([config]), HttpClient)
        assert client.models("lmstudio/m")[0].context_window is None
        async for _ in client.stream(ModelRequest("lmstudio/m", "", [HELLO])):
            pass
        assert client.models("lmstudio/m")[0].context_window == 8_192
        assert client.models("lmstudio/other")[0].context_window is None
        await client.aclose()


async def test_learned_windows_outlive_the_process(tmp_path: Path) -> None:
    said = "This model's maximum context length is 8192 tokens."
    config = None
    async with RawHttpServer(refusal(400, "invalid_request_error", said)) as server:
        config = ProviderConfig(server.url, "k" * 20, profile=PRESETS["lmstudio"])
        client = ChatClient(Registry([config]), HttpClient, hosts=KnownHosts(tmp_path))
        async for _ in client.stream(ModelRequest("lmstudio/m", "", [HELLO])):
            pass
        await client.aclose()
    restarted = ChatClient(Registry([config]), HttpClient, hosts=KnownHosts(tmp_path))
    assert restarted.models("lmstudio/m")[0].context_window == 8_192
    await restarted.aclose()


async def test_openrouter_is_asked_what_it_costs_and_believed(server: RawHttpServer) -> None:
    events = await ask(server, "openrouter", 2_100)
    assert server.requests[0].json["usage"] == {"include": True}
    (reported,) = [event for event in events if isinstance(event, UsageReported)]
    assert reported.cost_usd == 0.25
