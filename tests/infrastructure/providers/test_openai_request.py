"""Requests to OpenAI-compatible hosts that are not Moonshot's: nothing that some of them refuse."""

import json
from typing import Any

from kode_sidecar.core.domain.message import Message, TextBlock, ThinkingBlock, ToolUseBlock
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile

DIALECT = DIALECTS["openai_chat"]
PLAIN = ModelProfile("llama", dialect="openai_chat", sampling=True)
THINKS = ModelProfile("deep", dialect="openai_chat", thinking="always")
SCHEMA = {"$defs": {"P": {"type": "string"}}, "properties": {"p": {"$ref": "#/$defs/P"}}}
PLAIN_SCHEMA = {"type": "object", "properties": {"p": {"type": "string"}}}
HI = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))


def body(profile: ModelProfile, *messages: Message, **fields: Any) -> dict[str, Any]:
    request = ModelRequest("m", "Be brief.", messages, **fields)
    return json.loads(DIALECT.encode_request(request, profile).body)


def test_a_whole_request() -> None:
    found = body(PLAIN, HI, tools=[ToolSpec("find", "", SCHEMA)], max_tokens=9, cache_key="s1")
    assert found == {
        "model": "llama",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "find",
                    "description": "",
                    "parameters": PLAIN_SCHEMA,
                },
            }
        ],
        "tool_choice": "auto",
        "temperature": 0.3,
        "top_p": 0.95,
        "max_tokens": 9,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_reasoning_goes_only_where_it_is_wanted() -> None:
    call = ToolUseBlock(tool_use_id="a", name="find")
    thought = Message(
        id="m", session_id="s", role="assistant", content=(ThinkingBlock(text="Hm"), call)
    )
    foreign = Message(id="m", session_id="s", role="assistant", content=(call,))
    assert [m.get("reasoning_content") for m in body(THINKS, HI, thought, foreign)["messages"]] == [
        None,
        None,
        "Hm",
        "",
    ]
    assert all("reasoning_content" not in m for m in body(PLAIN, HI, thought)["messages"])


def test_half_a_character_takes_nothing_else_along() -> None:
    half = Message(id="m", session_id="s", role="user", content=(TextBlock(text="a\ud83d"),))
    found = body(PLAIN, half, tools=[ToolSpec("find", "b\ud83d", SCHEMA)])
    assert found["messages"][1]["content"] == "a?"
    assert found["tools"][0]["function"]["description"] == "b?"
    assert found["tools"][0]["function"]["parameters"] == PLAIN_SCHEMA
