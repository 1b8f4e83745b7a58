"""Whatever a client sends while a turn runs: it gets its stated answer, and the turn goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import MAX_BODY_BYTES, MAX_HEADER_BYTES, encode_frame
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.terminal.client.connection import Call, ConnectionLost, RpcError
from kode_sidecar.terminal.client.handshake import Handshake
from tests.stdio.test_stdio_handshake import BAD_BODIES, check_error_data
from tests.support.fsync_gate import FsyncGate, with_faults
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.stdio_process import frame, notification, request
from tests.support.stream_rules import breaches

pytestmark = pytest.mark.program
needs_faults = pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")

SERVED = [method.name for method in METHODS if method.direction == "client_to_server"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"a = 1\n")
    return folder


@asynccontextmanager
async def running_turn(project: Path, **options: Any) -> AsyncIterator[tuple[World, SessionFold]]:
    """A turn held in mid-stream; afterwards it goes on to its end as if nothing had happened."""
    responses = [answer(text("one "), hold("gate"), text("two 😀"))]
    async with sidecar(responses, roots=[project], **options) as world:
        session = await world.session()
        turn_id = await world.start(session, "count")
        await reached(world, "gate")
        yield world, session
        world.model.release("gate")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert [m.text for m in session.messages.values()] == ["count", "one two 😀"]
        assert session.anomalies == []


async def reached(world: World, gate: str) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        await world.model.reached(gate)


async def ended(world: World) -> int | None:
    """Read all it said; the exit code."""
    with pytest.raises(ConnectionLost):
        await world.watch.until(lambda: None, HANG_SECONDS)
    return await world.client.process.wait(HANG_SECONDS)


async def answers(world: World) -> list[dict[str, Any]]:
    """Every response so far, and of all that was sent to a handler without an await."""
    await world.client.request("kode/ping", {}, HANG_SECONDS)
    said = [frame.message() for frame in world.client.frames if frame.direction == "in"]
    return [message for message in said if "method" not in message]


async def errors_without_id(world: World) -> list[int]:
    """The codes of all responses with id null."""
    refused = [response for response in await answers(world) if response["id"] is None]
    for response in refused:
        check_error_data(response)
    return [response["error"]["code"] for response in refused]


async def answer_to(world: World, request_id: Any) -> dict[str, Any]:
    """The one response to a request that was sent as bytes."""
    found = [
        response
        for response in await answers(world)
        if response["id"] == request_id and type(response["id"]) is type(request_id)
    ]
    assert len(found) == 1, (request_id, found)
    return found[0]


async def refusal(world: World, method: str, params: Any) -> int:
    """The code of an error answer."""
    with pytest.raises(RpcError) as caught:
        await world.client.request(method, params, HANG_SECONDS)
    assert caught.value.data["message"] == caught.value.message
    return caught.value.code


async def test_bad_bodies_are_answered_with_id_null(project: Path) -> None:  # W1
    async with running_turn(project) as (world, _):
        for body, _ in BAD_BODIES:
            world.client.send_raw(encode_frame(body))
        assert await errors_without_id(world) == [code for _, code in BAD_BODIES]


async def test_header_forms(project: Path) -> None:  # W1
    forms = [
        b"content-length:%d",
        b"CONTENT-LENGTH:   %d  ",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d",
        b"X-Y:\r\nContent-length: %d\r\nQ: 1",
    ]
    async with running_turn(project) as (world, _):
        for number, header in enumerate(forms):
            body = json.dumps(request(f"h{number}", "kode/ping", {"echo": "字"})).encode()
            for byte in header % len(body) + b"\r\n\r\n" + body:  # one by one
                world.client.send_raw(bytes([byte]))
        for number in range(len(forms)):
            assert (await answer_to(world, f"h{number}"))["result"] == {"echo": "字"}


@pytest.mark.parametrize(
    "garbage",
    [
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"Content-Length: minus one\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n{}",
        b"X: " + b"x" * MAX_HEADER_BYTES,
    ],
    ids=["too long", "no number", "no length", "no end"],
)
async def test_lost_framing_ends_the_process(project: Path, garbage: bytes) -> None:  # W1
    responses = [answer(text("one "), hold("gate"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.start(session, "count")
        await reached(world, "gate")
        world.client.send_raw(frame(request("before", "kode/ping", {"echo": 1})) + garbage)
        assert await ended(world) == 1
        said = [frame.message() for frame in world.client.frames if frame.direction == "in"]
        last = [m for m in said if "method" not in m][-2:]
        assert (last[0]["id"], last[0]["result"]) == ("before", {"echo": 1})
        assert (last[1]["id"], last[1]["error"]["code"]) == (None, -32700)
        assert world.journal(session)[-1]["stopReason"] == "cancelled"
        assert "lost the frame boundary" in world.client.process.stderr_tail


@needs_faults
async def test_ids_in_flight(project: Path) -> None:  # W1 W5
    # 1 and "1" are two requests, the same id twice is not, and later it is free again.
    async with (
        FsyncGate() as gate,
        running_turn(project, environment=gate.environment) as (world, _),
    ):
        gate.shut()
        world.client.send_raw(
            frame(request("s", "kode/session/new", {}))
            + frame(request("s", "kode/ping", {"echo": "refused"}))
            + frame(request(-(2**70), "kode/ping", {"echo": 1}))
            + frame(request("字\n", "kode/ping", {"echo": 2}))
            + frame(request(10**6, "kode/ping", {"echo": 3}))
            + frame(request("1000000", "kode/ping", {"echo": 4}))
        )
        await gate.held()
        for number, request_id in enumerate((-(2**70), "字\n", 10**6, "1000000"), 1):
            assert (await answer_to(world, request_id))["result"] == {"echo": number}
        gate.open()
        await world.session()
        world.client.send_raw(frame(request("s", "kode/ping", {"echo": "again"})))
        refused, created, again = [r for r in await answers(world) if r["id"] == "s"]
        assert refused["error"]["code"] == -32600
        assert "sessionId" in created["result"]
        assert again["result"] == {"echo": "again"}


async def test_a_lone_surrogate_becomes_a_replacement_character(project: Path) -> None:  # W1
    body = rb'{"jsonrpc":"2.0","id":"x","method":"kode/ping","params":{"echo":"\udc00 \u5b57"}}'
    responses = [answer(tool_call("read_file", {"path": "app.py"})), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        world.client.send_raw(encode_frame(body))
        assert (await answer_to(world, "x"))["result"] == {"echo": "\ufffd 字"}
        buffer = world.editor.open(project / "app.py")
        world.editor.type(buffer, 0, "b = '\ud800'\n")
        session = await world.session()
        await world.turn(session, "half \udc00 😀")
        reported = world.asked()["messages"]
        assert next(m for m in reported if m["role"] == "user")["content"] == "half \ufffd 😀"
        assert "b = '\ufffd'" in reported[-1]["content"]
        assert world.messages(session)[0]["content"][0]["text"] == "half \ufffd 😀"


async def test_sync_that_cannot_be_read_marks_the_document(project: Path) -> None:  # W1
    read = answer(tool_call("read_file", {"path": "app.py"}))
    responses = [read, answer(text("ok"))] * 3
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        buffer = world.editor.open(project / "app.py", "unsaved = 1\n")
        broken = b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"a":"\xff"}}'
        world.client.send_raw(encode_frame(broken))
        assert await errors_without_id(world) == [-32700]
        await world.turn(session, "read")
        assert "unknown" in world.asked()["messages"][-1]["content"]
        assert "unsaved = 1" not in world.asked()["messages"][-1]["content"]
        world.editor.type(buffer, 0, "x")  # a change of a text that is not known
        await world.turn(session, "read")
        assert "unknown" in world.asked()["messages"][-1]["content"]
        world.editor.manners.style = "whole"
        world.editor.type(buffer, 0, "y")
        await world.turn(session, "read")
        assert "yxunsaved = 1" in world.asked()["messages"][-1]["content"]


async def test_requests_out_of_the_life_cycle(project: Path) -> None:  # W4
    responses = [answer(text("one "), hold("gate"), text("two"))]
    async with sidecar(responses, initialize=False) as world:
        for method in (*SERVED, "shutdown", "workspace/executeCommand", "nope"):
            assert await refusal(world, method, {}) == -32002
        world.client.notify("textDocument/didOpen", {})
        await world.client.initialize(Handshake(roots=[project]))
        assert await refusal(world, "initialize", Handshake().params()) == -32600
        session = await world.session()
        await world.start(session, "count")
        await reached(world, "gate")
        assert await world.client.request("shutdown", None, HANG_SECONDS) is None
        for method in (*SERVED, "shutdown", "initialize", "workspace/executeCommand", "nope"):
            assert await refusal(world, method, {}) == -32600
        world.client.notify("exit")
        assert await ended(world) == 0
        assert [turn.stop_reason for turn in session.turns.values()] == ["cancelled"]
        assert breaches(world.client.frames) == []


async def test_a_root_that_is_no_uri_is_told(project: Path) -> None:
    async with sidecar(initialize=False) as world:
        params = {"capabilities": {}, "rootUri": str(project)}
        await world.client.request("initialize", params, HANG_SECONDS)
        report = await world.client.request("kode/doctor", None, HANG_SECONDS)
        assert report["roots"] == []
        assert await world.client.close(HANG_SECONDS) == 0
        reported = f"the folder {project} is not opened: this is no file URI"
        assert reported in world.client.process.stderr_tail


async def test_bad_params_name_their_place(project: Path) -> None:  # W5
    bad: dict[str, tuple[Any, str]] = {
        "kode/session/new": ({"mode": 5}, "$.mode"),
        "kode/turn/start": ({"sessionId": "s", "input": [{"type": "text"}]}, "$.input[0].text"),
        "kode/turn/cancel": ({}, "$.sessionId"),
        "kode/turn/steer": ({"sessionId": "s", "turnId": None, "input": []}, "$.turnId"),
        "kode/changeSet/get": ({"changeSetId": []}, "$.changeSetId"),
        "kode/changeSet/decide": ({"changeSetId": "c", "rest": "all"}, "$.rest"),
        "kode/ping": ([1, 2], "$"),
        "kode/doctor": ("now", "$"),
    }
    async with running_turn(project) as (world, _):
        for name, (params, path) in bad.items():
            with pytest.raises(RpcError) as caught:
                await world.client.request(name, params, HANG_SECONDS)
            assert caught.value.code == -32602, name
            assert caught.value.data["details"]["path"] == path
            assert path in caught.value.message
        for name in set(SERVED) - bad.keys():  # -32601 for what only a later server does
            assert await refusal(world, name, 5) in (-32602, -32601)
        for name in ("nope", "$/nope", "kode/nope", "textDocument/hover", "kode/event"):
            assert await refusal(world, name, {}) == -32601


@needs_faults
async def test_a_handler_that_fails_tells_nothing(project: Path) -> None:  # W5
    secret = f"sk-very-secret in {project}"
    environment = with_faults(KODE_TEST_BROKEN_UUID=secret)
    async with sidecar(roots=[project], environment=environment) as world:
        calls = [world.client.start("kode/session/new", {}) for _ in range(3)]
        for number, call in enumerate(calls, 1):
            with pytest.raises(RpcError) as caught:
                await call.answer
            error = caught.value
            assert (error.code, error.data["code"]) == (-32603, "InternalError")
            assert error.data["details"] == {"incident": f"e{number}"}
            for leak in ("sk-very", str(project), "Traceback", ".py", "ValueError"):
                assert leak not in error.message + json.dumps(error.data)
        assert await world.client.request("kode/ping", {"echo": 1}, HANG_SECONDS) == {"echo": 1}
        assert await world.client.close(HANG_SECONDS) == 0
        assert "kode/session/new failed (e3)" in world.client.process.stderr_tail


async def test_keys_that_look_like_messages_are_just_data(project: Path) -> None:  # W5
    trap = {"jsonrpc": "2.0", "id": 1, "method": "exit", "result": {"jsonrpc": "1"}, "class": 1}
    responses = [answer(tool_call("list_files", {"directory": ".", **trap})), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        echo = await world.client.request("kode/ping", {"echo": trap}, HANG_SECONDS)
        assert echo == {"echo": trap}
        command = {"command": "kode.doctor", "arguments": [trap], "params": trap}
        assert await world.client.request("workspace/executeCommand", command, HANG_SECONDS)
        session = await world.session(meta=trap)
        reported = {"koding": True, "kodingContext": json.dumps(trap)}
        turn = await world.turn(session, json.dumps(trap), meta=trap, options=reported)
        assert turn.stop_reason == "end_turn"
        assert world.messages(session)[1]["meta"]["options"] == reported


async def test_two_thousand_requests_get_two_thousand_answers(
    project: Path, rng: Random
) -> None:  # W5
    kinds: list[tuple[str, Any, int | None]] = [
        ("kode/ping", {"echo": "字"}, None),
        ("kode/ping", None, None),
        ("kode/ping", [1], -32602),
        ("kode/turn/cancel", {"sessionId": 1}, -32602),
        ("kode/turn/start", {"sessionId": "no", "input": []}, -33001),
        ("kode/changeSet/get", {"changeSetId": "no"}, -33024),
        ("kode/unknown", {}, -32601),
        ("$/unknown", {}, -32601),
        ("initialize", {}, -32600),
        ("workspace/executeCommand", {"command": "nope"}, -32602),
    ]
    async with running_turn(project) as (world, _):
        sent: list[tuple[Call, Any, int | None]] = []
        for _ in range(2_000):
            method, params, code = rng.choice(kinds)
            sent.append((world.client.start(method, params), params, code))
        async with asyncio.timeout(HANG_SECONDS):
            await asyncio.wait([call.answer for call, _, _ in sent])
        for call, params, code in sent:
            error = call.answer.exception()
            if code is None:
                assert call.answer.result() == {"echo": (params or {}).get("echo")}
            else:
                assert isinstance(error, RpcError), (call, error)
                assert error.code == code, (call.method, error)
        assert breaches(world.client.frames) == []


async def test_a_flood_of_unknown_notifications(project: Path) -> None:  # W5
    names = ("$/unknown", "unknown/thing", "kode/event", "textDocument/didFold", "kode/ping")
    flood = [frame(notification(names[n % 5], {"n": n})) for n in range(20_000)]
    async with running_turn(project) as (world, _):
        world.client.send_raw(b"".join(flood))
        echo = await world.client.request("kode/ping", {"echo": "here"}, HANG_SECONDS)
        assert echo == {"echo": "here"}
        assert "Traceback" not in world.client.process.stderr_tail


async def test_a_body_of_many_megabytes(project: Path) -> None:  # W1
    big = "x字" * 2_000_000
    async with running_turn(project) as (world, _):
        assert await world.client.request("kode/ping", {"echo": big}, HANG_SECONDS) == {"echo": big}


async def test_mangled_messages_leave_the_process_as_it_was(
    project: Path, rng: Random
) -> None:  # W1 W5
    def mangled(body: bytes) -> bytes:
        data = bytearray(body)
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    data[place:place] = bytes([rng.randrange(256)])
                case 1:
                    del data[place : place + rng.randint(1, 8)]
                case 2:
                    data[place:place] = rng.choice([b"null", b'"', b"{", b"[[", b"\xff", b"1e999"])
                case _:
                    other = rng.randrange(len(data) + 1)
                    data[place:place] = data[other : other + 12]
        return bytes(data)

    async with running_turn(project) as (world, session):
        where = {"sessionId": "no", "turnId": "no"}
        item = {"uri": (project / "app.py").as_uri(), "languageId": "p", "version": 1, "text": "a"}
        models = [
            request("f", "kode/turn/start", {**where, "input": [{"type": "text", "text": "x"}]}),
            request("f", "kode/changeSet/decide", {"changeSetId": "c", "decisions": []}),
            request("f", "workspace/executeCommand", {"command": "kode.doctor"}),
            notification("textDocument/didOpen", {"textDocument": item}),
            notification("textDocument/didChange", {"textDocument": item, "contentChanges": []}),
            notification("$/cancelRequest", {"id": 1}),
            {"jsonrpc": "2.0", "id": "k1", "result": {"applied": True}},
        ]
        bodies = [json.dumps(model, ensure_ascii=False).encode() for model in models]
        for _ in range(1_000):
            world.client.send_raw(encode_frame(mangled(rng.choice(bodies))))
        echo = await world.client.request("kode/ping", {"echo": "here"}, HANG_SECONDS)
        assert echo == {"echo": "here"}
        assert session.active_turn is not None
        assert " failed (e" not in world.client.process.stderr_tail
