"""Messages on disk: snake_case, whole, and readable however they were written."""

import json

import msgspec
import pytest
from hypothesis import given

from kode_sidecar.core.domain.message import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message
from tests.support.message_strategies import messages


@given(messages)
def test_every_message_comes_back_as_it_was(message: Message) -> None:  # A7
    line = encode_message(message)
    assert b"\n" not in line
    assert decode_message(line) == message


def test_our_names_are_snake_case_and_theirs_are_kept() -> None:  # A7
    call = ToolUseBlock(
        id="b1", tool_use_id="call:0", name="read_file", input={"startLine": 1, "toolUseId": "x"}
    )
    image = ImageBlock(media_type="image/png", data="aGk=")
    result = ToolResultBlock(id="b2", tool_use_id="call:0", content=(image,), is_error=True)
    message = Message(
        id="m",
        session_id="s",
        role="assistant",
        content=(call, result),
        meta={"turnId": "t", "nested": {"isError": 1}},
        usage=Usage(input_tokens=3, cached_tokens=1),
        cost_usd=0.5,
        duration_ms=7,
        response_id="r",
        is_api_error_message=True,
    )
    record = json.loads(encode_message(message))
    assert len(record.pop("crc")) == 8
    assert record == {
        "id": "m",
        "conversation_id": "s",
        "role": "assistant",
        "content": [
            {
                "type": "tool_use",
                "id": "b1",
                "tool_use_id": "call:0",
                "name": "read_file",
                "input": {"startLine": 1, "toolUseId": "x"},
                "kind": "other",
                "title": "",
                "locations": [],
            },
            {
                "type": "tool_result",
                "id": "b2",
                "tool_use_id": "call:0",
                "content": [{"type": "image", "media_type": "image/png", "data": "aGk="}],
                "is_error": True,
                "status": "ok",
                "summary": "",
            },
        ],
        "parent_id": None,
        "depth": 0,
        "version": 1,
        "created_at": "",
        "meta": {"turnId": "t", "nested": {"isError": 1}},
        "usage": {
            "input_tokens": 3,
            "output_tokens": 0,
            "total_tokens": 0,
            "cached_tokens": 1,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
        },
        "cost_usd": 0.5,
        "duration_ms": 7,
        "response_id": "r",
        "is_api_error_message": True,
    }


def test_plain_strings_and_tool_result_messages_are_read() -> None:  # A7
    plain = {"id": "m", "conversation_id": "s", "role": "tool_result", "content": "found", "x": 1}
    message = decode_message(json.dumps(plain).encode())
    assert (message.role, message.content) == ("tool", (TextBlock(text="found"),))

    sparse = {"id": "m", "conversation_id": "s", "role": "user", "content": None, "meta": None}
    assert decode_message(json.dumps(sparse).encode()).content == ()

    mixed = {
        "id": "m",
        "conversation_id": "s",
        "role": "tool",
        "content": ["hi", {"type": "tool_result", "tool_use_id": "c", "content": "out"}],
    }
    assert decode_message(json.dumps(mixed).encode()).content == (
        TextBlock(text="hi"),
        ToolResultBlock(tool_use_id="c", content=(TextBlock(text="out"),)),
    )


def test_what_is_no_message_is_refused() -> None:
    for record in (
        {"id": "m", "conversation_id": "s", "role": "robot", "content": ""},
        {"id": "m", "role": "user", "content": ""},
        {"id": "m", "conversation_id": "s", "role": "user", "content": 5},
        {"id": "m", "conversation_id": "s", "role": "user", "content": [{"type": "smell"}]},
    ):
        with pytest.raises(msgspec.DecodeError):
            decode_message(json.dumps(record).encode())


def test_lone_surrogates_cannot_break_a_record() -> None:
    call = ToolUseBlock(tool_use_id="c", name="n", input={"q": "\ud83d"})
    message = Message(
        id="m", session_id="s", role="assistant", content=(TextBlock(text="a\udc80"), call)
    )
    back = decode_message(encode_message(message))
    assert back.content[0] == TextBlock(text="a\ufffd")
    assert back.content[1] == ToolUseBlock(tool_use_id="c", name="n", input={"q": "\ufffd"})
