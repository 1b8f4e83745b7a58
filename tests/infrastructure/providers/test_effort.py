"""How hard a model thinks: the fields that ask for it, and the user's word over the table."""

import json
from typing import Any

import pytest

from kode_sidecar.core.domain.event_parts import EFFORTS, Effort
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.known_providers import BUILTIN_PROVIDERS, PRESETS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_config import read_providers

HELLO = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
KIMI = BUILTIN_PROVIDERS["kimi"]
CLAUDE = BUILTIN_PROVIDERS["anthropic"]


def asked(model: ModelProfile, effort: Effort | None) -> tuple[dict[str, Any], list[str]]:
    """The body, and the notices of what was not sent as it was wished."""
    request = ModelRequest("m", "", [HELLO], sampling=Sampling(None, None), effort=effort)
    encoded = DIALECTS[model.dialect].encode_request(request, model)
    return json.loads(encoded.body), [one.code for one in encoded.notices]


def test_models_of_today_are_asked_in_their_own_words() -> None:
    assert asked(KIMI.model("kimi-k3.1-pro"), "low")[0]["reasoning_effort"] == "low"
    assert asked(KIMI.model("kimi-k2.6"), "off")[0]["thinking"] == {"type": "disabled"}
    assert asked(PRESETS["qwen"].model("qwen-plus"), "off")[0]["enable_thinking"] is False
    assert asked(PRESETS["openrouter"].model("x/y"), "max")[0]["reasoning"] == {"effort": "xhigh"}
    assert asked(PRESETS["glm"].model("glm-4.6"), "high")[0]["thinking"] == {"type": "enabled"}
    sent = asked(CLAUDE.model("claude-opus-5"), "medium")[0]
    assert (sent["thinking"], sent["output_config"]) == ({"type": "adaptive"}, {"effort": "medium"})


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_and_thinking_never_go_together(effort: Effort) -> None:
    for model in KIMI.models:
        sent = asked(KIMI.model(model.id), effort)[0]
        assert not {"thinking", "reasoning_effort"} <= sent.keys(), model.id


def test_the_nearest_effort_is_asked_for_and_told() -> None:
    k3 = KIMI.model("kimi-k3")
    sent, notices = asked(k3, "medium")
    assert (sent["reasoning_effort"], notices) == ("high", ["EffortChanged"])
    assert asked(k3, "off")[0]["reasoning_effort"] == "low"
    # One that always thinks as it likes is asked as before.
    always = KIMI.model("kimi-k2.7-code")
    assert asked(always, "high") == (asked(always, None)[0], ["EffortChanged"])
    assert asked(k3, None)[1] == []


def test_efforts_of_the_users_own() -> None:
    acme: dict[str, Any] = {
        "base_url": "https://llm.example/v1",
        "efforts": {"low": {"depth": 1}, "max": {"depth": 9}},
        "models": [{"id": "slow", "effort": "max"}, "quick"],
    }
    read = read_providers({"acme": acme}, {})["acme"]
    assert asked(read.model("slow"), None)[0]["depth"] == 9
    assert asked(read.model("slow"), "low")[0]["depth"] == 1
    assert "depth" not in asked(read.model("quick"), None)[0]
    acme["efforts"] = {"low": {"messages": []}}
    with pytest.raises(KodeError, match=r"acme\.efforts\.low.*messages"):
        read_providers({"acme": acme}, {})
