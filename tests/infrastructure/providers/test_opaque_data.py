"""What a host wants back with an answer: kept with its block, returned to it, to nobody else."""

import json
from typing import Any

import msgspec
import pytest

from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.core.domain.message import Message, TextBlock, ThinkingBlock, ToolUseBlock
from kode_sidecar.core.kernel import MessageAssembler
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.event_decoder import AnswerContext
from kode_sidecar.infrastructure.providers.known_providers import PRESETS
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder

Json = dict[str, Any]
HELLO = Message(id="u", session_id="s", role="user", content=(TextBlock(text="Hi"),))

# Gemini, thought signatures of the OpenAI-compatible endpoint: with the first of parallel calls.
SIGNED = {"google": {"thought_signature": "CsYB+seal=="}}
GEMINI: list[Json] = [
    {
        "tool_calls": [
            {
                "index": 0,
                "id": "function-call-1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path":"a"}'},
                "extra_content": SIGNED,
            }
        ]
    },
    {
        "tool_calls": [
            {
                "index": 1,
                "id": "function-call-2",
                "type": "function",
                "function": {"name": "list_files", "arguments": "{}"},
            }
        ]
    },
]
# OpenRouter, reasoning tokens: pieces of one detail, and one that is encrypted.
DETAILS: list[Json] = [
    {"type": "reasoning.text", "text": "Hm", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "text": ", so", "index": 0},
    {"type": "reasoning.text", "signature": "c2VhbA==", "index": 0, "text": ""},
    {"type": "reasoning.encrypted", "data": "eyJ4In0=", "id": "rs_1", "index": 1},
]
OPENROUTER: list[Json] = [
    *({"reasoning": one.get("text", ""), "reasoning_details": [one]} for one in DETAILS),
    {"content": "Hello"},
]
WHOLE: list[Json] = [
    {
        "type": "reasoning.text",
        "text": "Hm, so",
        "index": 0,
        "format": "anthropic-claude-v1",
        "signature": "c2VhbA==",
    },
    DETAILS[3],
]


def answered(deltas: list[Json], provider: str) -> Message:
    """The message that an answer of this host becomes, as it comes back from the disk."""
    ids = iter("abcdefgh")
    assembler = MessageAssembler(lambda: next(ids), "t", "m")
    decoder = ChatDecoder(AnswerContext(provider=provider))
    for fields in deltas:
        chunk = {"id": "x", "choices": [{"index": 0, "delta": fields}]}
        assembler.feed(decoder.feed_many((json.dumps(chunk).encode(),)))
    assembler.feed(
        decoder.feed_many((b'{"id":"x","choices":[{"delta":{},"finish_reason":"stop"}]}',))
    )
    assembler.feed([*decoder.feed_many((b"[DONE]",)), *decoder.finish()])
    assembler.finish()
    message = Message(
        id="m",
        session_id="s",
        role="assistant",
        content=tuple(assembler.blocks),
        provider=assembler.provider,
    )
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


def sent_to(provider: str, message: Message) -> Json:
    """That message in the next request to a host, made as a turn makes it."""
    model = PRESETS[provider].model("some-model")
    made = PromptContext("s", "m", "", returns_thinking=model.returns_thinking)
    request = made.request([HELLO, message, HELLO], (), "auto")
    body = json.loads(DIALECTS[model.dialect].encode_request(request, model).body)
    (found,) = [one for one in body["messages"] if one["role"] == "assistant"]
    return found


def test_signatures_of_thoughts_go_back_with_their_call() -> None:
    message = answered(GEMINI, "gemini")
    calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
    assert [call.opaque for call in calls] == [{"extra_content": SIGNED}, None]
    back = sent_to("gemini", message)["tool_calls"]
    assert [call.get("extra_content") for call in back] == [SIGNED, None]
    assert back[0]["function"] == {"name": "read_file", "arguments": '{"path":"a"}'}


def test_details_of_reasoning_go_back_whole() -> None:
    message = answered(OPENROUTER, "openrouter")
    (thought,) = [block for block in message.content if isinstance(block, ThinkingBlock)]
    assert (thought.text, thought.opaque) == ("Hm, so", {"reasoning_details": WHOLE})
    assert sent_to("openrouter", message) == {
        "role": "assistant",
        "content": "Hello",
        "reasoning_details": WHOLE,
    }


def test_reasoning_of_which_nothing_is_told_is_kept_all_the_same() -> None:
    message = answered([{"reasoning_details": [DETAILS[3]]}, {"content": "Hello"}], "openrouter")
    assert sent_to("openrouter", message)["reasoning_details"] == [DETAILS[3]]


@pytest.mark.parametrize(("deltas", "host"), [(GEMINI, "gemini"), (OPENROUTER, "openrouter")])
@pytest.mark.parametrize("other", ["deepseek", "qwen", "glm", "ollama"])
def test_another_host_gets_none_of_it(deltas: list[Json], host: str, other: str) -> None:
    sent = json.dumps(sent_to(other, answered(deltas, host)))
    assert "extra_content" not in sent
    assert "reasoning_details" not in sent
    assert "seal" not in sent


@pytest.mark.parametrize("dialect", ["kimi", "anthropic_messages"])
def test_nor_does_another_dialect(dialect: str) -> None:
    model = msgspec.structs.replace(PRESETS["qwen"].model("x"), dialect=dialect, thinking="always")
    for message in (answered(GEMINI, "gemini"), answered(OPENROUTER, "openrouter")):
        request = ModelRequest("m", "", [HELLO, message, HELLO])
        sent = DIALECTS[model.dialect].encode_request(request, model).body.decode()
        assert "extra_content" not in sent
        assert "reasoning_details" not in sent
