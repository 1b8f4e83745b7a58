"""Requests as Moonshot accepts them."""

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
from kode_sidecar.infrastructure.providers.known_providers import KIMI
from kode_sidecar.infrastructure.providers.profiles import ModelProfile

encode_request = DIALECTS["kimi"].encode_request

THINKS = KIMI.model("kimi-k2.6")
PLAIN = ModelProfile("kimi-old", sampling=True, context_window=262_144)
TOOL = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {}}})


def message(role: Role, *blocks: Block, error: bool = False) -> Message:
    return Message(id="m", session_id="s", role=role, content=blocks, is_api_error_message=error)


def text(words: str) -> TextBlock:
    return TextBlock(text=words)


def body(profile: ModelProfile = THINKS, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"model": "ide-chat", "system": "", "messages": (), **fields}
    return json.loads(encode_request(ModelRequest(**given), profile).body)


def messages(*given: Message, profile: ModelProfile = THINKS) -> list[dict[str, Any]]:
    return body(profile, messages=given)["messages"]


def test_a_whole_request() -> None:
    found = body(
        system="Be brief.",
        messages=[message("user", text("Hi"))],
        tools=[TOOL],
        cache_key="s1",
        max_tokens=1_000,
    )
    assert found == {
        "model": "kimi-k2.6",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Reads.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "tool_choice": "auto",
        "max_completion_tokens": 1_000,
        "prompt_cache_key": "s1",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_equal_requests_have_equal_bytes() -> None:
    request = ModelRequest("m", "s", [message("user", text("Hi"))], tools=[TOOL], cache_key="k")
    assert encode_request(request, THINKS).body == encode_request(request, THINKS).body


def test_sampling_is_sent_where_the_model_takes_it() -> None:  # A13
    found = body(PLAIN)
    assert (found["temperature"], found["top_p"]) == (0.3, 0.95)
    assert not {"temperature", "top_p"} & body(THINKS).keys()
    assert not {"temperature", "top_p"} & body(PLAIN, sampling=Sampling(None, None)).keys()


def test_a_dropped_wish_is_told() -> None:  # A13
    def codes(profile: ModelProfile, **fields: Any) -> list[str]:
        request = ModelRequest("m", "", (), **fields)
        return [notice.code for notice in encode_request(request, profile).notices]

    assert codes(THINKS) == ["SamplingDropped"]
    assert codes(PLAIN) == []
    assert codes(PLAIN, sampling=Sampling(1.5)) == ["SamplingDropped"]
    assert codes(THINKS, sampling=Sampling(chosen=False)) == [], "a default is no wish"
    strange = ModelProfile("who-knows", dialect="openai_chat")
    words = [
        encode_request(ModelRequest("m", "", (), sampling=Sampling(1.5)), one).notices[0].message
        for one in (THINKS, PLAIN, strange)
    ]
    assert words[0].startswith("kimi-k2.6 chooses this itself, so it was not sent: temperature 1.5")
    assert words[1].startswith("kimi-old is not asked for more than 1, which its host refuses")
    assert words[2].startswith("who-knows is not known to take this, so it was not sent")
    free: dict[str, Any] = {"sampling": Sampling(None, None)}
    assert codes(THINKS, **free) == []
    assert codes(THINKS, **free, tools=[TOOL], tool_choice="required") == ["ToolChoiceDropped"]
    assert codes(KIMI.model("kimi-k3"), **free, tools=[TOOL], tool_choice="required") == []


@pytest.mark.parametrize(
    ("profile", "wish", "sent", "last_role"),
    [
        (THINKS, "auto", "auto", "user"),
        (THINKS, "none", "none", "user"),
        (THINKS, "required", "auto", "system"),
        (KIMI.model("kimi-k3"), "required", "required", "user"),
    ],
)
def test_tool_choice(profile: ModelProfile, wish: str, sent: str, last_role: str) -> None:
    hello = [message("user", text("Hi"))]
    found = body(profile, messages=hello, tools=[TOOL], tool_choice=wish)
    assert found["tool_choice"] == sent
    assert found["messages"][-1]["role"] == last_role
    assert "tool_choice" not in body(profile, messages=hello, tool_choice=wish)


def test_the_budget_fits_into_the_window() -> None:
    small = ModelProfile("kimi-small", context_window=20_000)
    hello = [message("user", text("x" * 40_000))]
    assert body(small, messages=hello, max_tokens=50_000)["max_completion_tokens"] < 10_000
    assert body(small, messages=hello, max_tokens=10)["max_completion_tokens"] == 10
    huge = [message("user", text("x" * 400_000))]
    assert body(small, messages=huge, max_tokens=50_000)["max_completion_tokens"] == 4_096
    counted = body(small, messages=huge, max_tokens=50_000, prompt_tokens=11_000)
    assert counted["max_completion_tokens"] == 9_000, "who has counted knows better"
    unknown = ModelProfile("kimi-unknown")
    assert body(unknown, messages=huge, max_tokens=50_000)["max_completion_tokens"] == 50_000
    picture = [message("user", ImageBlock(media_type="image/png", data="A" * 4_000_000))]
    assert body(THINKS, messages=picture, max_tokens=50_000)["max_completion_tokens"] == 50_000


CALL = ToolUseBlock(tool_use_id="functions.read_file:0", name="read_file", input={"path": "ä"})
SENT_CALL = {
    "id": "functions.read_file:0",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path":"ä"}'},
}


def test_a_call_and_its_result() -> None:
    result = ToolResultBlock(tool_use_id=CALL.tool_use_id, content=(text("1 x"), text("2 y")))
    assert messages(message("assistant", text("I look."), CALL), message("tool", result)) == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": " ",
            "tool_calls": [SENT_CALL],
        },
        {"role": "tool", "tool_call_id": "functions.read_file:0", "content": "1 x\n\n2 y"},
    ]


def test_blank_content_is_left_out_beside_calls() -> None:
    found = messages(message("assistant", text(" \n"), CALL), profile=PLAIN)
    assert found == [{"role": "assistant", "tool_calls": [SENT_CALL]}]


def test_broken_arguments_go_back_empty() -> None:  # W10
    broken = ToolUseBlock(tool_use_id="a", name="read_file", invalid_input='{"pa')
    (found,) = messages(message("assistant", broken))
    assert found["tool_calls"][0]["function"]["arguments"] == "{}"


def test_reasoning_goes_back_to_models_that_think() -> None:
    thought = message("assistant", ThinkingBlock(text="Hm"), text("Hi"))
    empty = message("assistant", ThinkingBlock(text=""), text("Hi"))
    none = message("assistant", text("Hi"))
    assert [found.get("reasoning_content") for found in messages(thought, empty, none)] == [
        "Hm",
        "",
        None,
    ]
    for other in (PLAIN, KIMI.model("qwen3-coder")):
        assert all("reasoning_content" not in found for found in messages(thought, profile=other))


def test_messages_that_say_nothing_or_failed_are_left_out() -> None:  # C8
    found = messages(
        message("user", text("Hi")),
        message("assistant", ThinkingBlock(text="Hm")),
        message("assistant", text(" ")),
        message("assistant", text("401"), error=True),
        message("user", text("\n")),
        message("user"),
    )
    assert found == [{"role": "user", "content": "Hi"}]


def test_a_result_always_has_content() -> None:
    image = ImageBlock(media_type="image/png", data="AA==")
    results = [
        ToolResultBlock(tool_use_id="a"),
        ToolResultBlock(tool_use_id="b", summary="Nothing found"),
        ToolResultBlock(tool_use_id="c", content=(image,)),
    ]
    *found, seen = messages(message("tool", *results))
    assert [one["content"] for one in found] == [
        "(no output)",
        "Nothing found",
        "[An image, image/png: it follows the results.]",
    ]
    url = {"url": "data:image/png;base64,AA=="}
    assert seen == {"role": "user", "content": [{"type": "image_url", "image_url": url}]}
    *_, blind = messages(message("tool", *results), profile=replace(THINKS, images=False))
    assert (blind["role"], "reads text only" in blind["content"]) == ("tool", True)


def test_images() -> None:  # C2
    image = ImageBlock(media_type="image/png", data="AA==")
    (seen,) = messages(message("user", text("What is this?"), image))
    assert seen["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "text", "text": "What is this?"},
    ]
    (reported,) = messages(message("user", text("What?"), image), profile=PLAIN)
    assert reported["content"] == ("What?\n\n[An image, image/png: kimi-old reads text only.]")


RESOURCES = [
    (
        ResourceBlock(uri="file:///c%3A/x/%E4%BD%A0.py", text="a = 1\n", language_id="python"),
        "Attached: c:/x/你.py\n```python\na = 1\n```",
    ),
    (
        ResourceBlock(uri="file:///x/a.md", text="```\ncode\n```", start_line=3, end_line=5),
        "Attached: /x/a.md, lines 3-5\n````\n```\ncode\n```\n````",
    ),
    (
        ResourceBlock(uri="untitled:Untitled-1", text=""),
        "Attached: untitled:Untitled-1\n```\n\n```",
    ),
    (ResourceBlock(uri="file:///x/b.py"), "Attached: /x/b.py"),
]


@pytest.mark.parametrize(("block", "shown"), RESOURCES)
def test_resources(block: ResourceBlock, shown: str) -> None:  # C2
    (found,) = messages(message("user", block, text("Explain.")))
    assert found["content"] == f"{shown}\n\nExplain."


def test_half_a_character_does_not_stop_the_request() -> None:
    (found,) = messages(message("user", text("a\ud83c 你")))
    assert found["content"] == "a? 你"


@pytest.mark.parametrize(
    ("model_id", "thinking"),
    [
        ("kimi-k9", "optional"),
        ("moonshotai/kimi-k2.6", "optional"),
        ("qwen3-coder", "never"),
    ],
)
def test_unknown_models_are_asked_with_care(model_id: str, thinking: str) -> None:
    assert KIMI.model(model_id).thinking == thinking
    assert not KIMI.model(model_id).sampling
