"""Answers of odd hosts are read whole: nothing of them is lost, doubled, or taken for more."""

import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    TextDelta,
    ThinkingSigned,
    ToolUseStarted,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.core.settings import load_settings
from kode_sidecar.infrastructure.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.event_decoder import EventDecoder
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder
from kode_sidecar.infrastructure.providers.openai_responses import ResponsesDecoder
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors
from kode_sidecar.servers.boot.provider_setup import set_up_providers


def read(decoder: EventDecoder, *events: dict[str, Any]) -> list[ModelEvent]:
    found: list[ModelEvent] = []
    for one in events:
        found += decoder.feed_many((json.dumps(one).encode(),))
    return found + decoder.finish()


def said(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def chunk(finish: str | None = None, answer_id: str = "a", **delta: object) -> dict[str, Any]:
    return {"id": answer_id, "choices": [{"delta": delta, "finish_reason": finish}]}


def test_a_whole_message_beside_an_empty_delta_counts() -> None:
    whole = chunk("stop", role="assistant", content="")
    whole["choices"][0]["message"] = {"role": "assistant", "content": "Hi"}
    assert said(read(ChatDecoder(), whole)) == "Hi"


def test_a_message_that_repeats_what_was_streamed_is_not_said_twice() -> None:
    last = chunk("stop", content="")
    last["choices"][0]["message"] = {"role": "assistant", "content": "Hi"}
    assert said(read(ChatDecoder(), chunk(role="assistant", content="Hi"), last)) == "Hi"


def test_an_id_that_changes_with_a_role_in_each_chunk_takes_nothing_back() -> None:
    pieces = [("a", "One "), ("a", "two "), ("b", "three "), ("b", "four")]
    events = read(
        ChatDecoder(),
        *(chunk(answer_id=of, role="assistant", content=text) for of, text in pieces),
        chunk("stop", "b", role="assistant"),
    )
    assert said(events) == "One two three four"
    assert not [event for event in events if isinstance(event, AttemptDropped)]


def reply(status: str, text: str, **more: object) -> dict[str, Any]:
    item = {
        "type": "message",
        "id": "m1",
        "content": [{"type": "output_text", "text": text}],
    }
    return {"id": "r1", "status": status, "output": [item], **more}


def responses(status: str, text: str, *deltas: str, **more: object) -> list[ModelEvent]:
    added = {"type": "response.output_item.added", "output_index": 0}
    grown = {"type": "response.output_text.delta", "output_index": 0, "item_id": "m1"}
    return read(
        ResponsesDecoder(),
        {"type": "response.created", "response": {"id": "r1"}},
        {**added, "item": {"type": "message", "id": "m1", "content": []}},
        *({**grown, "delta": delta} for delta in deltas),
        {"type": "response.completed", "response": reply(status, text, **more)},
    )


def test_a_closing_event_may_say_more_than_the_deltas() -> None:
    assert said(responses("completed", "Hello", "Hel")) == "Hello"
    assert said(responses("completed", "Hello", "Hel", "lo")) == "Hello"
    assert said(responses("completed", "Another", "Hel", "lo")) == "Hello"


def test_an_empty_answer_is_none() -> None:
    (failed,) = [one for one in responses("completed", "") if isinstance(one, ResponseFailed)]
    assert failed.error.code == "EmptyAnswer"


@pytest.mark.parametrize(
    ("details", "reason"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "content_filter")],
)
def test_an_end_that_is_called_completed_and_was_none(details: dict[str, str], reason: str) -> None:
    events = responses("incomplete", "Hel", "Hel", incomplete_details=details)
    (end,) = [event for event in events if isinstance(event, ResponseFinished)]
    assert end.reason == reason


def test_a_failure_that_is_called_completed() -> None:
    events = responses("failed", "Hel", "Hel", error={"code": "server_error", "message": "Boom"})
    (failed,) = [event for event in events if isinstance(event, ResponseFailed)]
    assert "Boom" in failed.error.message


def test_a_late_signature_signs_no_block_that_is_not_there() -> None:
    thinking = {"type": "thinking", "thinking": ""}
    late = {"type": "signature_delta", "signature": "late"}
    events = read(
        MessagesDecoder(),
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "A"}},
        {"type": "content_block_delta", "index": 0, "delta": late},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    signed = [event for event in events if isinstance(event, ThinkingSigned)]
    assert [event.signature for event in signed] == [""]


LEAK = '<tool_call>{"name": "find", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_a_call_without_an_id_of_its_own_gets_one_that_is_new(dialect: str) -> None:
    profile = ModelProfile("m", dialect=dialect)  # type: ignore[arg-type]
    taken: list[str] = []
    for _ in range(3):
        calls = tuple(ToolUseBlock(tool_use_id=one, name="find") for one in taken)
        before = Message(
            id="m", session_id="s", role="assistant", content=(TextBlock(text="x"), *calls)
        )
        find = ToolSpec("find", "Finds.", {"type": "object", "properties": {}})
        request = ModelRequest("m", "", [before], tools=[find])
        decoder = DIALECTS[profile.dialect].new_decoder(request, profile, ProviderErrors())
        events = read(decoder, *_leaking(dialect))
        taken += [event.tool_use_id for event in events if isinstance(event, ToolUseStarted)]
    assert len(set(taken)) == len(taken) == 3


def _leaking(dialect: str) -> list[dict[str, Any]]:
    match dialect:
        case "openai_chat":
            return [chunk("stop", role="assistant", content=LEAK)]
        case "openai_responses":
            return [{"type": "response.completed", "response": reply("completed", LEAK)}]
        case _:
            return [
                {
                    "type": "message",
                    "id": "m",
                    "content": [{"type": "text", "text": LEAK}],
                    "stop_reason": "end_turn",
                }
            ]


@pytest.mark.parametrize(
    ("entry", "takes"),
    [
        ("base_url: https://gateway.example/v1", False),
        ("base_url: https://gateway.example/v1\n    cache_key: true", True),
        ("base_url: https://api.openai.com/v1", True),
    ],
)
def test_the_key_of_the_cache_goes_where_it_is_known_to_be_taken(
    entry: str, takes: bool, tmp_path: Path
) -> None:
    config = f"providers:\n  box:\n    {entry}\n    dialect: openai_responses\n"
    (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    setup = set_up_providers(load_settings({"KODE_HOME": str(tmp_path)}))
    assert setup.problems == []
    model = setup.registry.targets("box/m")[0].model
    hello = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
    request = ModelRequest("m", "", [hello], cache_key="s1")
    body = json.loads(DIALECTS[model.dialect].encode_request(request, model).body)
    assert ("prompt_cache_key" in body) == takes


def test_a_host_without_a_loaded_model_is_no_wrong_address() -> None:
    body = json.dumps({"error": "No models loaded. Please load a model first."}).encode()
    error = ProviderErrors("localhost:1234").response(404, {}, body, "m")
    assert error.code == "ModelNotFound"
    assert "load a model" in error.message
