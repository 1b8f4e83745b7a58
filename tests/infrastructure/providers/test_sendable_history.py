"""The last gate before a request, each rule in each dialect."""

import base64
import json
import re
from typing import Any, cast

import pytest

from kode_sidecar.agent.context.builder import normalize_messages_for_api
from kode_sidecar.agent.context.left_out import leaves_out
from kode_sidecar.core.domain.error_info import UNNAMED, ErrorInfo, refused_content
from kode_sidecar.core.domain.message import (
    REFUSED,
    Block,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.core.kernel.message_assembler import parse_arguments
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.leaked_calls import known_name
from kode_sidecar.infrastructure.providers.profiles import ModelProfile

NARROWEST = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{2,63}")
NAMES = (
    *("functions.read_file:0", "read_file<|channel|>commentary", "browser.tabs.open", "$READ"),
    *("读文件", "x" * 80, "read file", "", "7up", "-x", "é", "two\nlines", "\ud83d"),
)
HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 ",
}
UNTAKEN = {
    "image/tiff": b"II*\0abc",
    "image/bmp": b"BM\x36\0\0\0\0\0\0\0",
    "image/heic": b"\0\0\0\x18ftypheic",
    "image/svg+xml": b"<svg xmlns='x'/>",
}


@pytest.fixture(params=list(DIALECTS))
def profile(request: pytest.FixtureRequest) -> ModelProfile:
    return ModelProfile("m", dialect=request.param, thinking="always", images=True)


def message(role: Role, *blocks: Block, **more: Any) -> Message:
    return Message(id="m", session_id="s", role=role, content=blocks, **more)


def sent(profile: ModelProfile, *messages: Message) -> Any:
    request = ModelRequest("m", "", messages)
    return json.loads(DIALECTS[profile.dialect].encode_request(request, profile).body)


def every(value: Any, key: str) -> list[Any]:
    """Return all values of a key, at any depth."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        own = [fields[key]] if key in fields else []
        return own + [one for child in fields.values() for one in every(child, key)]
    items = cast(list[Any], value) if isinstance(value, list) else []
    return [one for child in items for one in every(child, key)]


def image(head: bytes, called: str, size: int = 0) -> ImageBlock:
    return ImageBlock(media_type=called, data=base64.b64encode(head + bytes(size)).decode())


def pictures(body: Any) -> list[str]:
    """Return what a request calls its pictures."""
    found: list[str] = []
    for one in every(body, "image_url"):
        url = str(cast(dict[str, Any], one)["url"] if isinstance(one, dict) else one)
        found.append(url[5 : url.index(";")])
    return found + every(body, "media_type")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_goes_back_as_every_host_takes_it(name: str, profile: ModelProfile) -> None:
    call = message("assistant", ToolUseBlock(tool_use_id="c1", name=name))
    result = message("tool", ToolResultBlock(tool_use_id="c1", content=(TextBlock(text="no"),)))
    found = every(sent(profile, message("user", TextBlock(text="x")), call, result), "name")
    assert found
    assert all(NARROWEST.fullmatch(one) for one in found)
    assert call.calls[0].name == name


@pytest.mark.parametrize("name", ["read_file", "mcp__a__b-c", "_x1"])
def test_a_legal_name_stays(name: str, profile: ModelProfile) -> None:
    call = message("assistant", ToolUseBlock(tool_use_id="c1", name=name))
    assert name in every(sent(profile, message("user", TextBlock(text="x")), call), "name")


@pytest.mark.parametrize("kind", HEADS)
def test_a_picture_is_called_what_it_is(kind: str, profile: ModelProfile) -> None:
    called = image(HEADS[kind], "image/png" if kind != "image/png" else "image/jpeg")
    assert pictures(sent(profile, message("user", called))) == [kind]


@pytest.mark.parametrize("kind", UNTAKEN)
def test_a_picture_that_no_host_takes_is_named_instead(kind: str, profile: ModelProfile) -> None:
    for called in (kind, "image/png"):
        body = sent(profile, message("user", image(UNTAKEN[kind], called)))
        assert pictures(body) == []
        assert kind in json.dumps(body)


def test_pictures_do_not_pile_up(profile: ModelProfile) -> None:
    """And the start of a request changes once for many pictures, not with each of them."""
    rows = [message("user", image(HEADS["image/png"], "image/png", at)) for at in range(60)]
    for count in range(1, len(rows) + 1):
        assert 1 <= len(pictures(sent(profile, *rows[:count]))) <= 20
    large = [message("user", image(HEADS["image/png"], "image/png", 4_000_000)) for _ in range(8)]
    assert len(json.dumps(sent(profile, *large))) < 22_000_000
    assert pictures(sent(profile, message("user", image(HEADS["image/png"], "x", 9_000_000)))) == []


def test_a_refused_prompt_is_left_out_when_the_user_goes_on(profile: ModelProfile) -> None:
    history = [
        message("user", TextBlock(text="hello")),
        message("assistant", ToolUseBlock(tool_use_id="c1", name="read_file")),
        message("tool", ToolResultBlock(tool_use_id="c1", content=(TextBlock(text="RISKY"),))),
        message("assistant", meta={REFUSED: "ContentFiltered"}, is_api_error_message=True),
        message("user", TextBlock(text="RISKY, too")),
        message("assistant", meta={REFUSED: "ContentFiltered"}, is_api_error_message=True),
    ]
    again = json.dumps(sent(profile, *normalize_messages_for_api(history)))
    assert "RISKY, too" in again  # nothing newer was asked: the same is asked again
    history.append(message("user", TextBlock(text="something else")))
    body = json.dumps(sent(profile, *normalize_messages_for_api(history)))
    assert "RISKY" not in body
    assert "hello" in body
    assert "something else" in body


def test_one_refusal_without_a_reason_loses_no_word() -> None:
    refused = message("assistant", meta={REFUSED: UNNAMED}, is_api_error_message=True)
    history = [message("user", TextBlock(text="first")), refused]
    history.append(message("user", TextBlock(text="second")))
    assert "first" in str(normalize_messages_for_api(history))
    assert not leaves_out(history)
    history += [refused, message("user", TextBlock(text="third"))]
    sent_now = str(normalize_messages_for_api(history))
    assert "first" not in sent_now
    assert "second" not in sent_now
    assert "third" in sent_now
    assert leaves_out(history)
    history += [message("assistant", TextBlock(text="yes")), message("user", TextBlock(text="4th"))]
    assert not leaves_out(history)


@pytest.mark.parametrize(
    ("status", "code", "said", "refused"),
    [
        (400, "Provider", "messages[1].image: Could not process image", "Provider"),
        (400, "Provider", "flagged as violating our usage policy", "Provider"),
        (400, "Provider", "not today", UNNAMED),
        (413, "TooLarge", "too large", "TooLarge"),
        (None, "TooLarge", "The answer does not end", None),  # the answer, not the request
        (400, "ContentFiltered", "high risk", "ContentFiltered"),
        (500, "Provider", "image server down", None),
        (429, "RateLimited", "slow down", None),
    ],
)
def test_what_a_refusal_is_about(
    status: int | None, code: str, said: str, refused: str | None
) -> None:
    error = ErrorInfo(
        code=code, message=said, category="provider", retryable=False, http_status=status
    )
    assert refused_content(error) == refused


def test_moonshot_gets_a_blank_where_there_was_no_reasoning() -> None:
    call = message("assistant", ToolUseBlock(tool_use_id="c1", name="read_file"))
    kimi = ModelProfile("m", dialect="kimi", thinking="always")
    other = ModelProfile("m", dialect="openai_chat", thinking="always")
    assert sent(kimi, call)["messages"][0]["reasoning_content"] == " "
    assert sent(other, call)["messages"][0]["reasoning_content"] == ""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("functions.read_file:0", "read_file"),
        ("functions.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("read_file<|channel|>commentary", "read_file"),
        (" read_file ", "read_file"),
        ("Read_File", "read_file"),
        ("readFile", "read_file"),
        ("read file", "read_file"),
        ("read_file()", "read_file"),
        ("read_files", "read_files"),
        ("browser.tabs.open", "browser.tabs.open"),
        ("", ""),
    ],
)
def test_a_wrapped_name_is_the_tool_that_it_means(written: str, meant: str) -> None:
    assert known_name(written, frozenset({"read_file", "mcp__a__b"})) == meant


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a":1}{"a":1}', {"a": 1}),
        ('"{\\"a\\":1}"', {"a": 1}),
        ('```json\n{"a":1}\n```', {"a": 1}),
        ('{"a":1}{"a":2}', None),
        ('{"a":1} and more', None),
        ("[1]", None),
        ("", {}),
    ],
)
def test_arguments_in_a_wrapping_are_read(text: str, arguments: object) -> None:
    assert parse_arguments(text) == arguments
