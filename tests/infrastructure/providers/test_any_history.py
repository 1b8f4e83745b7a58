"""Whatever a crash, a fork or another vendor left behind: no host refuses what we send."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.builder import cut_window, normalize_messages_for_api
from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.profiles import DialectName, ModelProfile
from tests.support import anthropic_rules, kimi_rules, responses_rules

IDS = ["toolu_1", "functions.find:0", "find:0", "call|1 ü", "x" * 70, ""]
BLOCKS: list[Block] = [
    TextBlock(text="hello"),
    TextBlock(text=" \n"),
    ThinkingBlock(text="hm"),
    ThinkingBlock(text="", signature=""),
    ThinkingBlock(text="hm", signature="s1"),
    ThinkingBlock(text="", signature="hidden", redacted=True),
    ThinkingBlock(text="hm", opaque={"reasoning_item": {"type": "reasoning", "id": "rs_1"}}),
    ThinkingBlock(text="hm", opaque={"reasoning_details": []}),
    ResourceBlock(uri="file:///a"),
    ImageBlock(media_type="image/png", data="AA=="),
    *(ToolUseBlock(tool_use_id=name, name="find", input={"x": 1}) for name in IDS),
    ToolUseBlock(tool_use_id="toolu_1", name="find", invalid_input="{"),
    *(ToolResultBlock(tool_use_id=name) for name in [*IDS, "orphan"]),
]
HISTORIES = st.lists(
    st.builds(
        Message,
        id=st.just("m"),
        session_id=st.just("s"),
        role=st.sampled_from(["user", "assistant", "assistant", "tool"]),
        content=st.lists(st.sampled_from(BLOCKS), max_size=4).map(tuple),
        provider=st.sampled_from([None, "moonshot", "anthropic", "other"]),
        is_api_error_message=st.sampled_from([False, False, False, True]),
    ),
    max_size=10,
)
PROFILES: dict[DialectName, ModelProfile] = {
    "kimi": ModelProfile("kimi-k2.6", dialect="kimi", provider="moonshot", thinking="optional"),
    "openai_chat": ModelProfile("gpt-m", dialect="openai_chat", provider="other", images=True),
    "openai_responses": ModelProfile(
        "gpt-m", dialect="openai_responses", provider="other", images=True
    ),
    "anthropic_messages": ModelProfile(
        "claude-m", dialect="anthropic_messages", provider="anthropic", images=True
    ),
}
TOOL = ToolSpec("find", "", {"type": "object", "properties": {}})


def encoded(history: list[Message], profile: ModelProfile, **fields: Any) -> dict[str, Any]:
    request = ModelRequest("m", "Be brief.", history, **fields)
    return json.loads(DIALECTS[profile.dialect].encode_request(request, profile).body)


def refusals(body: dict[str, Any], profile: ModelProfile) -> list[str]:
    if profile.dialect == "anthropic_messages":
        return anthropic_rules.refusals(body)
    if profile.dialect == "openai_responses":
        return responses_rules.refusals(body)
    found = kimi_rules.refusals(body)
    # Reasoning is Kimi's wish alone.
    return [why for why in found if profile.dialect == "kimi" or "reasoning" not in why]


def test_every_dialect_is_tried() -> None:
    assert PROFILES.keys() == DIALECTS.keys() == set(get_args(DialectName))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
@given(stored=HISTORIES, limit=st.none() | st.integers(1, 12), offered=st.booleans())
def test_no_host_refuses_a_mended_history(  # C9
    profile: ModelProfile, stored: list[Message], limit: int | None, offered: bool
) -> None:
    question = Message(id="q", session_id="s", role="user", content=(TextBlock(text="Go on"),))
    history = normalize_messages_for_api([*cut_window(stored, limit), question])
    body = encoded(history, profile, tools=[TOOL] if offered else [])
    assert refusals(body, profile) == []


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
@given(stored=HISTORIES)
def test_a_growing_history_keeps_its_beginning(
    profile: ModelProfile, stored: list[Message]
) -> None:
    """What was sent before is sent again in the same words: hosts cache it by prefix."""
    history = normalize_messages_for_api(stored)
    whole = words(encoded(history, profile))
    for end, message in enumerate(history[1:], 1):
        if message.role == "assistant":
            assert is_prefix(words(encoded(history[:end], profile)), whole)


def words(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages; cache marks are none of the cached words."""
    messages = body["messages"] if "messages" in body else body["input"]
    for message in messages:
        if isinstance(message.get("content"), list):
            for block in message["content"]:
                block.pop("cache_control", None)
    return messages


def is_prefix(short: list[dict[str, Any]], whole: list[dict[str, Any]]) -> bool:
    """An answer that says nothing to this host leaves its neighbours as one message."""
    if short == whole[: len(short)]:
        return True
    *before, last = short
    other = whole[len(before)]
    same = before == whole[: len(before)] and last["role"] == other["role"]
    return same and other["content"][: len(last["content"])] == last["content"]


@pytest.mark.parametrize("name", ["kimi", "openai_chat"])
def test_own_ids_stay_verbatim_and_foreign_ones_are_made_safe(name: DialectName) -> None:
    profile = PROFILES[name]

    def ids(provider: str | None) -> list[str]:
        calls = tuple(ToolUseBlock(tool_use_id=one, name="find") for one in IDS[:5])
        answer = Message(id="m", session_id="s", role="assistant", content=calls, provider=provider)
        body = encoded(normalize_messages_for_api([answer]), profile)
        sent = next(one for one in body["messages"] if "tool_calls" in one)
        at = body["messages"].index(sent) + 1
        answered = [one["tool_call_id"] for one in body["messages"][at : at + 5]]
        assert answered == [call["id"] for call in sent["tool_calls"]]
        return answered

    assert ids(profile.provider) == IDS[:5]
    assert ids(None) == IDS[:5]
    assert ids("vendor") == ["toolu_1", "functions_find_0", "find_0", "call_1__", "x" * 40]
