"""Requests as Anthropic's Messages API accepts them."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolSpec
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from tests.support.anthropic_rules import refusals

CLAUDE = ModelProfile("claude-m", dialect="anthropic_messages", provider="anthropic", images=True)
DIALECT = DIALECTS["anthropic_messages"]
TOOL = ToolSpec("find", "Finds.", {"properties": {"x": {"type": "integer"}}})


def message(role: Role, *blocks: Block | str, provider: str | None = "anthropic") -> Message:
    content = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in blocks)
    return Message(
        id="m",
        session_id="s",
        role=role,
        content=content,
        provider=provider if role == "assistant" else None,
    )


def call(tool_use_id: str, **given: Any) -> ToolUseBlock:
    return ToolUseBlock(tool_use_id=tool_use_id, name="find", input=given)


def result(tool_use_id: str, *content: TextBlock | ImageBlock, **fields: Any) -> ToolResultBlock:
    return ToolResultBlock(tool_use_id=tool_use_id, content=content, **fields)


def body(*messages: Message, profile: ModelProfile = CLAUDE, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"sampling": Sampling(None, None), **fields}
    request = ModelRequest("m", given.pop("system", ""), messages, **given)
    return json.loads(DIALECT.encode_request(request, profile).body)


def sent(*messages: Message, profile: ModelProfile = CLAUDE) -> list[dict[str, Any]]:
    """The messages without their cache marks."""
    found = body(*messages, profile=profile)
    assert refusals(found) == []
    for one in found["messages"]:
        for block in one["content"]:
            block.pop("cache_control", None)
    return found["messages"]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


HI = message("user", "Hi")


def test_a_whole_request() -> None:
    found = body(HI, system="Be brief.", tools=[TOOL], max_tokens=1_000)
    cached = {"type": "ephemeral"}
    assert found == {
        "model": "claude-m",
        "messages": [{"role": "user", "content": [{**text("Hi"), "cache_control": cached}]}],
        "system": [{**text("Be brief."), "cache_control": cached}],
        "tools": [
            {
                "name": "find",
                "description": "Finds.",
                "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
            }
        ],
        "tool_choice": {"type": "auto"},
        "max_tokens": 1_000,
        "stream": True,
    }
    assert refusals(found) == []


def test_path_and_headers() -> None:
    assert DIALECT.path == "/messages"
    assert DIALECT.headers("key") == {
        "x-api-key": "key",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
    }


def test_equal_requests_have_equal_bytes() -> None:
    request = ModelRequest("m", "s", [HI], tools=[TOOL], cache_key="k")
    once, again = (DIALECT.encode_request(request, CLAUDE).body for _ in range(2))
    assert once == again


@pytest.mark.parametrize(
    ("profile", "wish", "tokens"),
    [
        (CLAUDE, None, 8_192),
        (ModelProfile("m", max_output=64_000), None, 64_000),
        (ModelProfile("m", max_output=4_000), 5_000, 4_000),
        (ModelProfile("m", context_window=5_000), 5_000, 4_975),
    ],
)
def test_max_tokens_is_always_there(profile: ModelProfile, wish: int | None, tokens: int) -> None:
    assert body(HI, profile=profile, max_tokens=wish)["max_tokens"] == pytest.approx(tokens, abs=20)


def test_a_picture_takes_no_room_from_the_answer_by_its_bytes() -> None:
    picture = ImageBlock(media_type="image/png", data="A" * 4_000_000)
    shot = result("call_1", picture)
    asked = [message("user", picture), message("assistant", call("call_1")), message("tool", shot)]
    profile = replace(CLAUDE, context_window=200_000, max_output=64_000)
    assert body(*asked, profile=profile)["max_tokens"] == 64_000
    assert body(*asked, profile=profile, prompt_tokens=150_000)["max_tokens"] == 50_000


@pytest.mark.parametrize(
    ("wish", "forced", "choice", "notices"),
    [
        ("auto", False, "auto", []),
        ("none", False, "none", []),
        ("required", True, "any", []),
        ("required", False, "auto", ["ToolChoiceDropped"]),
    ],
)
def test_tool_choice(wish: Any, forced: bool, choice: str, notices: list[str]) -> None:  # A13
    profile = ModelProfile("m", forced_tools=forced)
    request = ModelRequest(
        "m", "", [HI], tools=[TOOL], tool_choice=wish, sampling=Sampling(None, None)
    )
    encoded = DIALECT.encode_request(request, profile)
    found = json.loads(encoded.body)
    assert found["tool_choice"] == {"type": choice}
    assert [notice.code for notice in encoded.notices] == notices
    assert len(found["messages"][-1]["content"]) == 1 + len(notices)
    assert refusals(found) == []


def test_sampling_is_sent_where_the_model_takes_it() -> None:  # A13
    free = ModelProfile("m", sampling=True)
    both = body(HI, profile=free, sampling=Sampling(0.3, 0.95))
    assert (both["temperature"], "top_p" in both) == (0.3, False)
    assert body(HI, profile=free, sampling=Sampling(None, 0.95))["top_p"] == 0.95
    assert not {"temperature", "top_p"} & body(HI, sampling=Sampling(0.3, 0.9)).keys()


def test_thinking_goes_back_in_place_while_tools_run() -> None:  # C2
    answer = message(
        "assistant",
        ThinkingBlock(text="Let me", signature="s1"),
        ThinkingBlock(text="", signature="hidden", redacted=True),
        "I look.",
        call("toolu_1", x=1),
    )
    assert sent(HI, answer, message("tool", result("toolu_1")))[1]["content"] == [
        {"type": "thinking", "thinking": "Let me", "signature": "s1"},
        {"type": "redacted_thinking", "data": "hidden"},
        text("I look."),
        {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"x": 1}},
    ]


@pytest.mark.parametrize("provider", ["moonshot", None])
def test_thinking_of_another_vendor_stays_behind(provider: str | None) -> None:
    sealed = ThinkingBlock(text="Hm", signature="s1")
    answer = message("assistant", sealed, call("toolu_1"), provider=provider)
    blocks = sent(HI, answer, message("tool", result("toolu_1")))[1]["content"]
    assert [block["type"] for block in blocks] == ["tool_use"]


def test_thinking_that_was_cut_off_has_no_seal_and_stays_behind() -> None:
    cut = message("assistant", ThinkingBlock(text="Hm"), "Well")
    assert sent(HI, cut, HI)[1]["content"] == [text("Well")]
    only = message("assistant", ThinkingBlock(text="Hm", signature="s1"))
    assert sent(HI, only, HI) == [{"role": "user", "content": [text("Hi"), text("Hi")]}]


def test_all_results_of_a_turn_are_in_one_message_and_first() -> None:  # C9
    found = sent(
        HI,
        message("assistant", call("toolu_1"), call("toolu_2")),
        message("tool", result("toolu_1", TextBlock(text="1")), result("toolu_2", is_error=True)),
        message("user", "And quickly."),
    )
    assert found[2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("1")]},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [text("(no output)")],
                    "is_error": True,
                },
                text("And quickly."),
            ],
        }
    ]


def test_ids_are_made_fit_and_unique() -> None:
    found = sent(
        HI,
        message("assistant", call("functions.find:0"), call("toolu_1"), provider="moonshot"),
        message("tool", result("functions.find:0"), result("toolu_1")),
        message("assistant", call("functions.find:0"), call("toolu_1"), call("toolu_1")),
        message("tool", result("functions.find:0"), result("toolu_1"), result("toolu_1")),
    )
    ids = [block["id"] for one in found for block in one["content"] if block["type"] == "tool_use"]
    assert ids == [
        "functions_find_0",
        "toolu_1",
        "functions_find_0_2",
        "toolu_1_2",
        "toolu_1_3",
    ]


def test_what_the_host_refuses_is_mended() -> None:
    broken = ToolUseBlock(tool_use_id="toolu_1", name="a b", invalid_input='{"x')
    found = sent(message("assistant", " \n", broken), message("tool", result("toolu_1")))
    assert [one["role"] for one in found] == ["user", "assistant", "user"]
    assert found[1]["content"] == [
        {"type": "tool_use", "id": "toolu_1", "name": "a_b", "input": {}}
    ]


def test_errors_are_left_out() -> None:  # C8
    error = Message(
        id="e",
        session_id="s",
        role="assistant",
        content=(TextBlock(text="401"),),
        is_api_error_message=True,
    )
    assert sent(HI, error) == [{"role": "user", "content": [text("Hi")]}]


def test_images_and_resources() -> None:  # C2
    image = ImageBlock(media_type="image/png", data="AA==")
    shown = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
    }
    asked = message("user", image, ResourceBlock(uri="file:///x/b.py"), "What?")
    assert sent(asked)[0]["content"] == [shown, text("Attached: /x/b.py"), text("What?")]
    seen = message("tool", result("toolu_1", image))
    assert sent(HI, message("assistant", call("toolu_1")), seen)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [shown]}
    ]
    (reported,) = sent(message("user", image), profile=ModelProfile("blind"))
    assert reported["content"] == [text("[An image, image/png: blind reads text only.]")]


def test_a_history_with_calls_needs_tools() -> None:
    found = body(HI, message("assistant", call("toolu_1")), message("tool", result("toolu_1")))
    assert [tool["name"] for tool in found["tools"]] == ["find"]
    assert found["tool_choice"] == {"type": "none"}
    assert refusals(found) == []


def test_the_cache_is_marked_at_the_last_two_questions() -> None:
    turns = [HI, message("assistant", "a"), HI, message("assistant", "b"), HI]
    found = body(*turns, system="s")
    marked = ["cache_control" in one["content"][-1] for one in found["messages"]]
    assert marked == [False, False, True, False, True]
    assert "cache_control" in found["system"][0]
