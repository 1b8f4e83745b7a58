"""The golden frames: one for each message, event and error, read and written without loss."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kode_sidecar import __version__
from kode_sidecar.core.protocol.handshake import initialize_result
from kode_sidecar.core.protocol.method import Method
from kode_sidecar.errors import ERRORS
from tests.support.protocol_files import (
    EVENT_TYPES,
    EXAMPLES,
    canonical,
    events_in,
    example_names,
    read_example,
    recoded,
    recoded_initialize,
)

NAMES = example_names()


def test_every_part_of_the_wire_has_its_example_and_no_other() -> None:
    found = {path.name.removesuffix(".json") for path in EXAMPLES.glob("*.json")}
    assert sorted(NAMES.keys() - found) == [], "missing in protocol/examples"
    assert sorted(found - NAMES.keys()) == [], "belongs to nothing in the table"


@pytest.mark.parametrize("name", NAMES)
def test_decoding_and_encoding_is_the_identity(name: str) -> None:
    frame = read_example(name)
    if name.endswith(".initialize"):
        again = recoded_initialize(frame)
    else:
        method = NAMES[name]
        again = recoded(frame, method.result if isinstance(method, Method) else None)
    assert canonical(again) == canonical(frame)
    written = json.dumps(frame, indent=2, ensure_ascii=False) + "\n"
    assert (EXAMPLES / f"{name}.json").read_bytes() == written.encode()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("error.")])
def test_an_example_is_what_its_name_says(name: str) -> None:
    frame, meant = read_example(name), NAMES[name]
    assert frame["jsonrpc"] == "2.0"
    kind = name.split(".")[0]
    assert ("id" in frame) == (kind in ("request", "response"))
    assert ("result" in frame) == (kind == "response")
    if kind == "event":
        assert [event["type"] for event in events_in(frame)] == [meant]
    elif isinstance(meant, Method) and kind != "response":
        assert frame["method"] == meant.name


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_shown_as_it_reaches_the_editor(code: str) -> None:
    frame = read_example(f"error.{code}")
    rpc_code, category, _ = ERRORS[code]
    if "error" in frame:
        error = frame["error"]
        assert error["code"] == rpc_code
        assert error["message"] == error["data"]["message"]
        assert (error["data"]["code"], error["data"]["category"]) == (code, category)
        return
    if "result" in frame:  # what became of a run
        error = frame["result"]["run"]["error"]
        assert (error["code"], error["category"]) == (code, category)
        return
    (event,) = events_in(frame)
    if event["type"] == "turn.completed":
        reason = "budget" if code == "BudgetReached" else "error"
        assert (event["stopReason"], event["error"]["code"]) == (reason, code)
        assert event["error"]["category"] == category
    else:  # what only the model is told: a failed tool result
        assert event["block"]["type"] == "tool_result"
        assert event["block"]["isError"] is True


def test_the_handshake_in_the_examples_is_the_real_one() -> None:
    answered: Any = initialize_result(read_example("request.initialize")["params"], __version__)
    shown = read_example("response.initialize")["result"]
    for result in (answered, shown):
        kode = result["capabilities"]["experimental"]["kode"]
        kode |= {"server": None, "schemaSha256": None}
        result["serverInfo"] = None
    assert shown == answered


def values(value: Any) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from values(part)


def test_the_examples_show_every_type_and_more_than_ascii() -> None:
    seen = [value for name in NAMES for value in values(read_example(name))]
    types = {value["type"] for value in seen if isinstance(value, dict) and "type" in value}
    blocks = {"text", "thinking", "image", "resource", "tool_use", "tool_result"}
    assert types >= blocks | set(EVENT_TYPES)
    texts = "".join(value for value in seen if isinstance(value, str))
    assert any("\u4e00" <= char <= "\u9fff" for char in texts)
    assert any(ord(char) > 0xFFFF for char in texts)
