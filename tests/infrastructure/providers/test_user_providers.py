"""Providers that users add: data alone, strictly read, asked over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock, ThinkingBlock, Usage
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.core.settings import load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.known_providers import (
    BUILTIN_PROVIDERS,
    KIMI,
    LOGICAL_MODELS,
)
from kode_sidecar.infrastructure.providers.model_answer import ModelAnswer, send_message
from kode_sidecar.infrastructure.providers.provider_config import (
    read_logical_models,
    read_providers,
)
from kode_sidecar.infrastructure.providers.rate_limiter import RetryPolicy
from kode_sidecar.servers.boot.doctor import examine
from kode_sidecar.servers.boot.provider_setup import ProviderSetup, set_up_providers
from tests.support.raw_http import (
    HANG_CEILING,
    HEAD,
    LAST_CHUNK,
    Answer,
    RawHttpServer,
    chunk,
    event,
    refusal,
    response,
    says,
)

KEY = "acme-key-2718281828"
ODD = """
providers:
  acme:
    base_url: {url}
    api_key_env: ACME_KEY
    auth: {{header: X-Acme-Key, prefix: "Token "}}
    headers: {{x-client: kode}}
    names:
      max_tokens: max_tokens
      reasoning: internal.thoughts
      usage: meta.spent
      input_tokens: tokens.in
      output_tokens: tokens.out
      cached_tokens: tokens.hit
      reasoning_tokens: tokens.thought
    models:
      - id: acme-large
        thinking: never
        sampling: true
        context_window: 20000
        max_output: 500
        price: {{input: 2, cached: 1, output: 10, currency: CNY}}
logical_models:
  best: [acme/acme-large, kimi-k2.6]
"""


def odd(delta: Mapping[str, Any], **more: Any) -> bytes:
    return event({"id": "o1", "model": "acme-large-0711", "choices": [{"delta": delta, **more}]})


SPENT = {"tokens": {"in": 1000, "out": 200, "hit": 400, "thought": 50}}
ODD_ANSWER: Answer = [
    HEAD,
    chunk(odd({"role": "assistant", "internal": {"thoughts": "hm"}})),
    chunk(odd({"content": "Hello"})),
    chunk(odd({"content": " you"}, finish_reason="stop")),
    chunk(event({"id": "o1", "choices": [], "meta": {"spent": SPENT}})),
    chunk(b"data: [DONE]\n\n"),
    LAST_CHUNK,
]


def set_up(tmp_path: Path, yaml: str = "", **environ: str) -> ProviderSetup:
    (tmp_path / "config.yaml").write_text(yaml, encoding="utf-8")
    return set_up_providers(load_settings({"KODE_HOME": str(tmp_path), **environ}))


@pytest.fixture
async def clients() -> AsyncIterator[list[ChatClient]]:
    found: list[ChatClient] = []
    yield found
    for client in found:
        await client.aclose()


async def ask(client: ChatClient, model: str, **fields: Any) -> ModelAnswer:
    hello = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
    request = ModelRequest(model, "Be brief.", [hello], **fields)
    async with asyncio.timeout(HANG_CEILING):
        return await send_message(client, request)


async def test_a_host_with_odd_names_is_added_by_data_alone(
    tmp_path: Path, clients: list[ChatClient]
) -> None:  # A2 C3 C5
    async with RawHttpServer(ODD_ANSWER) as server:
        setup = set_up(tmp_path, ODD.format(url=server.url), ACME_KEY=KEY)
        assert setup.problems == []
        client = ChatClient(setup.registry, HttpClient)
        clients.append(client)
        answer = await ask(client, "acme/acme-large", max_tokens=9_000)
        (sent,) = server.requests
    assert answer.error is None
    assert [type(block) for block in answer.content] == [ThinkingBlock, TextBlock]
    thinking, text = answer.content
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.text == "hm"
    assert isinstance(text, TextBlock)
    assert text.text == "Hello you"
    assert answer.usage == Usage(
        input_tokens=1000,
        output_tokens=200,
        total_tokens=1200,
        cached_tokens=400,
        reasoning_tokens=50,
    )
    assert answer.cost is not None
    assert answer.cost.currency == "CNY"
    assert answer.cost.amount == pytest.approx((600 * 2 + 400 * 1 + 200 * 10) / 1e6)
    assert answer.cost_usd is None
    assert (answer.provider, answer.asked, answer.model) == (
        "acme",
        "acme/acme-large",
        "acme-large-0711",
    )
    assert "authorization" not in sent.headers
    assert sent.headers["x-acme-key"] == f"Token {KEY}"
    assert sent.headers["x-client"] == "kode"
    assert sent.json["max_tokens"] == 500
    assert "max_completion_tokens" not in sent.json
    assert (sent.json["model"], sent.json["temperature"]) == ("acme-large", 0.3)


async def test_a_logical_name_falls_from_one_provider_to_the_next(
    tmp_path: Path, clients: list[ChatClient]
) -> None:  # A2
    gone = refusal(404, "not_found", "no such model")
    offers = response(200, {"data": []})
    async with RawHttpServer(gone, offers) as acme, RawHttpServer(says("from kimi")) as kimi:
        environ = {"ACME_KEY": KEY, "KIMI_API_KEY": "k", "KIMI_BASE_URL": kimi.url}
        setup = set_up(tmp_path, ODD.format(url=acme.url), **environ)
        client = ChatClient(setup.registry, HttpClient)
        clients.append(client)
        answer = await ask(client, "best")
        assert (answer.provider, kimi.requests[0].json["model"]) == ("kimi", "kimi-k2.6")
        assert "acme-large" in answer.notices[0].message
        assert KEY not in repr(kimi.requests)
        # Without its key a provider of the list is passed over, and nothing is asked of it.
        setup = set_up(tmp_path, ODD.format(url=acme.url), **{**environ, "ACME_KEY": ""})
        client = ChatClient(setup.registry, HttpClient)
        clients.append(client)
        asked = len(acme.requests)
        assert (await ask(client, "best")).provider == "kimi"
        assert len(acme.requests) == asked


async def test_keys_come_from_the_users_env_file_too(tmp_path: Path) -> None:  # A11
    (tmp_path / ".env").write_text(f"ACME_KEY={KEY}\n", encoding="utf-8")
    setup = set_up(tmp_path, ODD.format(url="https://llm.example/v1"))
    assert setup.missing("acme/acme-large") is None
    assert setup.keys() == [KEY]
    assert KEY not in repr(setup)
    assert KEY not in repr(load_settings({"KODE_HOME": str(tmp_path)}))


def test_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    setup = set_up(tmp_path, ODD.format(url="https://llm.example/v1"))
    missing = setup.missing("acme/acme-large")
    assert missing is not None
    assert (missing.code, "ACME_KEY" in missing.message) == ("AuthRequired", True)
    assert "KIMI_API_KEY" in str(setup.missing("ide-chat"))
    assert "ANTHROPIC_API_KEY" in str(setup.missing("anthropic/claude-opus-5"))
    assert "KIMI_INTL_API_KEY" in str(setup.missing("kimi-intl/kimi-k2.6"))


def test_a_host_on_this_machine_needs_no_key(tmp_path: Path) -> None:
    yaml = "providers: {local: {base_url: 'http://localhost:11434/v1', models: [qwen]}}"
    setup = set_up(tmp_path, yaml)
    assert setup.missing("local/qwen") is None
    (target,) = setup.registry.targets("local/qwen")
    assert target.config.headers({"authorization": "Bearer ", "content-type": "x"}) == {
        "content-type": "x"
    }


def test_a_built_in_provider_is_changed_by_field_and_by_model() -> None:
    price = {"input": 6.5, "cached": 1.1, "output": 27, "currency": "CNY"}
    entry = {
        "models": [{"id": "kimi-k2.6", "price": price}, {"id": "kimi-k9", "thinking": "always"}]
    }
    kimi = read_providers({"kimi": entry}, BUILTIN_PROVIDERS)["kimi"]
    changed, before = kimi.model("kimi-k2.6"), KIMI.model("kimi-k2.6")
    assert changed.price is not None
    assert changed.price.currency == "CNY"
    assert (changed.context_window, changed.thinking) == (before.context_window, before.thinking)
    assert kimi.model("kimi-k9").dialect == "kimi"
    assert {model.id for model in kimi.models} == {m.id for m in KIMI.models} | {"kimi-k9"}
    assert kimi.base_url == KIMI.base_url


WRONG: list[tuple[Any, str]] = [
    ({"acme": 1}, "`providers.acme`: expected fields"),
    ({"acme": {}}, "`providers.acme.base_url` is missing"),
    ({"acme": {"base_url": 1}}, "`providers.acme.base_url`: expected `str`, got `int`"),
    ({"acme": {"base_url": "http://llm.example/v1"}}, "`providers.acme.base_url`"),
    ({"acme": {"base_url": "https://a.example", "colour": 1}}, "unknown field `colour`"),
    ({"acme": {"base_url": "https://a.example", "api_key": "x"}}, "name a variable"),
    ({"acme": {"base_url": "https://a.example", "api_key_env": "A B"}}, "acme.api_key_env[0]`"),
    ({"acme": {"base_url": "https://a.example", "dialect": "x"}}, "`providers.acme.dialect`"),
    ({"acme": {"base_url": "https://a.example", "models": 5}}, "`providers.acme.models`"),
    ({"acme": {"base_url": "https://a.example", "models": [{}]}}, "acme.models[0]`"),
    (
        {"acme": {"base_url": "https://a.example", "models": [{"id": "x", "price": {"input": 1}}]}},
        "`providers.acme.models[0].price`: object missing required field `cached`",
    ),
    (
        {"acme": {"base_url": "https://a.example", "models": [{"id": "x", "context_window": "9"}]}},
        "`providers.acme.models[0].context_window`: expected",
    ),
    ({"acme": {"base_url": "https://a.example", "names": {"usage": "a..b"}}}, "acme.names.usage`"),
    ({"A b": {"base_url": "https://a.example"}}, "`providers.A b.name`"),
    ({"acme": {"base_url": "https://a.example", "headers": {"x": "a\nb"}}}, "acme.headers"),
]


@pytest.mark.parametrize(("raw", "reported"), WRONG)
def test_wrong_fields_are_named_by_their_path(raw: Any, reported: str) -> None:
    with pytest.raises(KodeError) as caught:
        read_providers(raw, BUILTIN_PROVIDERS)
    assert caught.value.code == "ConfigInvalid"
    assert reported in caught.value.message


@pytest.mark.parametrize("raw", [{"x": []}, {"x": "kimi-k3"}, {"x": [1]}])
def test_wrong_lists_of_models(raw: Any) -> None:
    with pytest.raises(KodeError, match="logical_models"):
        read_logical_models(raw, LOGICAL_MODELS)


def test_nothing_is_asked_with_wrong_settings(tmp_path: Path) -> None:
    setup = set_up(tmp_path, "providers: {acme: {colour: red}}", KIMI_API_KEY="k")
    missing = setup.missing("ide-chat")
    assert missing is not None
    assert (missing.code, "providers.acme" in missing.message) == ("ConfigInvalid", True)


def test_the_doctor_tells_of_every_provider_the_user_named(tmp_path: Path) -> None:  # A11
    yaml = ODD.format(url="https://llm.example/v1")
    (tmp_path / "config.yaml").write_text(yaml, encoding="utf-8")

    def checks(**environ: str) -> Sequence[tuple[bool, str]]:
        loaded = load_settings({"KODE_HOME": str(tmp_path), **environ})
        report = examine(loaded)
        assert KEY not in repr(report)
        return [(c.ok, c.message) for c in report.checks if c.name == "key"]

    (kimi, acme) = checks(ACME_KEY=KEY)
    assert (kimi[0], "KIMI_API_KEY" in kimi[1]) == (False, True)
    assert acme == (True, "acme: A key for https://llm.example/v1 is set.")
    kimi, acme = checks(KIMI_API_KEY="k" * 30)
    assert kimi == (True, "kimi: A key for https://api.moonshot.cn/v1 is set.")
    assert (acme[0], "ACME_KEY" in acme[1]) == (False, True)


async def test_what_the_host_says_of_a_model_beats_the_table(
    tmp_path: Path, clients: list[ChatClient]
) -> None:  # A2
    offer = {"id": "kimi-k2.6", "context_length": 9_000, "supports_reasoning": False}
    bad = [{"id": 5}, "x", {"id": "kimi-k3", "context_length": "many", "supports_image_in": 1}]
    listed = response(200, {"data": [offer, *bad]})
    async with RawHttpServer(listed, says("Hi")) as server:
        setup = set_up(tmp_path, KIMI_API_KEY="k", KIMI_BASE_URL=server.url)
        client = ChatClient(setup.registry, HttpClient, retry=RetryPolicy(lambda: 0.0))
        clients.append(client)
        config = setup.registry.providers["kimi"]
        models = await client.endpoint(config).list_models()
        assert [model.id for model in models] == ["kimi-k2.6", "kimi-k3"]
        assert models[1].context_length is None
        await ask(client, "kimi-k2.6", max_tokens=50_000)
        assert server.requests[-1].json["max_completion_tokens"] < 9_000
        (described,) = client.models("kimi-k2.6")
        assert (described.thinking, described.images) == ("never", True)
        assert (described.returns_thinking, described.context_window) == (False, 9_000)
        returned = [model.returns_thinking for model in client.models("ide-chat")]
        assert returned == [True, False], "what the host does not list is passed over"
        assert client.models("anthropic/claude-opus-5")[0].returns_thinking
        assert not client.models("openai/another")[0].returns_thinking


@pytest.mark.parametrize(
    ("url", "more", "first_byte", "idle"),
    [
        ("http://127.0.0.1:8080/v1", {}, 600.0, 600.0),
        ("http://localhost:8080/v1", {}, 600.0, 600.0),
        ("https://192.168.1.7/v1", {}, 600.0, 600.0),
        ("https://box.local/v1", {}, 600.0, 600.0),
        ("http://127.0.0.1:8080/v1", {"KODE_HTTP_TIMEOUT_FIRST_BYTE": "7"}, 7.0, 600.0),
        ("https://llm.acme.example/v1", {}, 60.0, 120.0),
    ],
)
def test_a_host_at_home_has_ten_minutes(
    tmp_path: Path, url: str, more: Mapping[str, str], first_byte: float, idle: float
) -> None:
    (tmp_path / "config.yaml").write_text(f"providers: {{mine: {{base_url: '{url}'}}}}\n", "utf-8")
    found = set_up_providers(load_settings({"KODE_HOME": str(tmp_path), **more}))
    timeouts = found.registry.providers["mine"].timeouts
    assert (timeouts.first_byte, timeouts.idle) == (first_byte, idle)
