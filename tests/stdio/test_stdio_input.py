"""Input that a client should not send, and floods of it, over a real process (W1, W4, W5)."""

import json
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from tests.stdio.test_stdio_handshake import BAD_BODIES, check_error_data
from tests.support.program import SERVE
from tests.support.stdio_process import StdioProcess, frame, notification, ping, request

OPEN = {"uri": "file:///a.py", "languageId": "python", "version": 1, "text": "x"}


@pytest.mark.program
def test_bad_bodies_are_answered_and_the_rest_goes_on() -> None:
    # W1
    with StdioProcess(SERVE) as process:
        process.start()
        for body, code in BAD_BODIES:
            process.send_raw(encode_frame(body))
            response = process.answer(None)
            assert response["error"]["code"] == code, body[:60]
            check_error_data(response)
        assert process.ping({"a": 1}) == {"a": 1}
        assert b"Traceback" not in process.stderr


@pytest.mark.program
def test_header_forms() -> None:
    # W1: case, blanks, unknown headers
    with StdioProcess(SERVE) as process:
        process.start()
        forms = [
            b"content-length:%d",
            b"CONTENT-LENGTH:   %d",
            b"X-Y: z\r\nContent-length: %d\r\nQ:",
        ]
        for n, header in enumerate(forms):
            body = json.dumps(ping(n, n)).encode()
            process.send_raw(header % len(body) + b"\r\n\r\n" + body)
            assert process.answer(n)["result"] == {"echo": n}


@pytest.mark.program
@pytest.mark.parametrize(
    "garbage",
    [
        b"Content-Length: 1000000000000000000\r\n\r\n",
        b"Content-Length: x\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n{}",
        b"no header at all\n",
        b"X: " + b"x" * 9000,
    ],
)
def test_lost_framing_is_answered_and_ends_the_process(garbage: bytes) -> None:
    # W1: -32700 with id null after the answers to what came before, exit 1
    with StdioProcess(SERVE) as process:
        process.start()
        process.send_raw(frame(request(1, "kode/session/new", {})) + garbage)
        assert process.answer(1)["result"]["seq"] == 0
        assert process.answer(None)["error"]["code"] == -32700
        assert process.wait() == 1


def test_ids() -> None:
    # W1, W5: 1 and "1" differ; a duplicate in flight is refused; reuse afterwards is fine
    with StdioProcess() as process:
        process.start()
        process.send(
            request(1, "test/forever"),
            request("1", "test/echo", {"s": True}),
            request(1, "test/echo", {}),
            request(-(2**70), "test/echo", {}),
            request("字\n", "test/echo", {}),
        )
        assert process.answer("1")["result"] == {"s": True}
        assert process.answer(1)["error"]["code"] == -32600
        assert process.answer(-(2**70))["result"] == {}
        assert process.answer("字\n")["result"] == {}
        process.send(notification("$/cancelRequest", {"id": "1"}))
        process.send(notification("$/cancelRequest", {"id": 1}))
        assert process.answer(1)["error"]["code"] == -32800
        process.send(request(1, "test/echo", {"again": 1}))
        assert process.answer(1)["result"] == {"again": 1}


@pytest.mark.program
def test_params() -> None:
    with StdioProcess(SERVE) as process:
        process.start()
        assert process.result("kode/ping") == {"echo": None}
        process.send({"jsonrpc": "2.0", "id": 5, "method": "kode/ping", "params": None})
        assert process.answer(5)["result"] == {"echo": None}
        error = process.call("kode/ping", [1, 2])["error"]
        assert error["code"] == -32602
        wrong = {"sessionId": "s", "input": [{"type": "text"}]}
        error = process.call("kode/turn/start", wrong)["error"]
        assert error["code"] == -32602
        assert error["data"]["details"] == {"path": "$.input[0].text"}
        assert "$.input[0].text" in error["message"]
        # keys that trip pygls up are just data here
        tricky = {"jsonrpc": "1", "type_name": 1, "class": {"jsonrpc": "2.0", "id": 1}, "a-b": 2}
        assert process.ping(tricky) == tricky


@pytest.mark.program
def test_lone_surrogates() -> None:
    with StdioProcess(SERVE) as process:
        process.start()
        echo = rb'"\udc00\ud83d\ude00"'
        body = rb'{"jsonrpc":"2.0","id":1,"method":"kode/ping","params":{"echo":%b}}' % echo
        process.send_raw(encode_frame(body))
        assert process.answer(1)["result"] == {"echo": "\ufffd😀"}


def test_lone_surrogates_of_ours() -> None:
    with StdioProcess() as process:
        process.start()
        assert process.result("test/surrogate") == {"text": "a\ufffdb"}


@pytest.mark.program
def test_life_cycle() -> None:
    # W4
    with StdioProcess(SERVE) as process:
        process.start()
        assert process.call("initialize", {"capabilities": {}})["error"]["code"] == -32600
        process.send(request(1, "kode/session/new", {}), request(2, "shutdown"))
        assert process.answer(1)["result"]["seq"] == 0
        assert process.answer(2)["result"] is None
        for method in ("kode/ping", "shutdown", "initialize", "nope", "workspace/executeCommand"):
            assert process.call(method, {})["error"]["code"] == -32600
        process.send(notification("exit"))
        assert process.wait() == 0


def test_handlers_that_fail() -> None:
    # W5: a short code, no traceback, path or key on the wire; the log has it all
    with StdioProcess() as process:
        process.start()
        for method in ("test/raise", "test/raiseLater", "test/unencodable"):
            error = process.call(method)["error"]
            assert error["code"] == -32603
            assert error["data"]["code"] == "InternalError"
            for secret in ("sk-12345", "/etc/passwd", "Traceback", ".py", "ValueError"):
                assert secret not in json.dumps(error)
        error = process.call("test/refuse")["error"]
        assert error == {
            "code": -33003,
            "message": "a turn is running: cancel it first",
            "data": {
                "code": "TurnActive",
                "message": "a turn is running: cancel it first",
                "category": "engine",
                "retryable": True,
                "details": {"a": 1},
            },
        }
        assert process.result("test/echo") == {}
        process.call("shutdown")
        process.send(notification("exit"))
        assert process.wait() == 0
        process.rest()
        assert b"Traceback" in process.stderr
        assert b"test/raise failed (e1)" in process.stderr


@pytest.mark.program
def test_unknown_methods() -> None:
    with StdioProcess(SERVE) as process:
        process.start()
        synced = "textDocument/didOpen"
        for method in ("nope", "$/nope", "textDocument/hover", synced, "initialized"):
            response = process.call(method, {})
            assert response["error"]["code"] == -32601
            check_error_data(response)
        process.send(notification("$/nope", {}), notification("nope"), notification("kode/ping"))
        assert process.ping(1) == 1


@pytest.mark.program
def test_names_that_begin_with_an_underscore_are_the_clients_own() -> None:
    own = {"_meta": {"mine": 1}, "_mine": 5, "delivery": {"_mine": 6}}
    misspelled = {"capabilites": {}}
    with StdioProcess(SERVE) as process:
        process.start(initializationOptions={"kode": own | misspelled})
        logged = process.next()
        process.send(notification("_mine/happened", {"_meta": 1}))
        assert process.call("_mine/ask", {})["error"]["code"] == -32601
        assert process.call("kode/session/list", {"_meta": {"mine": 1}})["result"]
        process.close_stdin()
        process.rest()
    assert logged["method"] == "window/logMessage"
    assert ".kode.capabilites` is not known here" in logged["params"]["message"]
    assert b"_mine" not in process.stderr
    assert b"_meta" not in process.stderr


def test_broken_document_sync_is_told() -> None:
    with StdioProcess() as process:
        process.start()
        refused = {"textDocument": OPEN | {"uri": "file:///refused"}, "contentChanges": []}
        process.send(
            notification("textDocument/didOpen", {"textDocument": OPEN}),
            notification("textDocument/didOpen", {"textDocument": OPEN | {"text": 5}}),
            notification("textDocument/didChange", {"textDocument": {"uri": "file:///b"}}),
            notification("textDocument/didChange", refused),
            notification("textDocument/didClose", {"textDocument": {}}),
            notification("textDocument/didSave", [1]),
            notification("test/mark", [1]),
        )
        body = b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"a":"\xff"}}'
        process.send_raw(encode_frame(body))
        assert process.answer(None)["error"]["code"] == -32700
        broken = ["file:///a.py", "file:///b", "file:///refused", None, None, None]
        assert process.result("test/broken") == broken
        assert process.result("test/marks") == [["textDocument/didOpen", "file:///a.py"]]


@pytest.mark.program
def test_pipelined_requests_all_get_their_replies() -> None:
    # W5: 2,000 requests, sync and async, good and bad, in one go
    with StdioProcess(SERVE) as process:
        process.start()
        kinds: list[tuple[str, Any, int | None]] = [
            ("kode/ping", {}, None),
            ("kode/turn/start", {"sessionId": "nobody", "input": []}, -33001),
            ("kode/turn/cancel", {"sessionId": "nobody"}, -33001),
            ("nope", {}, -32601),
            ("kode/turn/start", {"input": 5}, -32602),
        ]
        sent = [request(n, kinds[n % 5][0], kinds[n % 5][1] | {"echo": n}) for n in range(2_000)]
        process.send(*sent)
        got: dict[int, Any] = {}
        while len(got) < 2_000:
            message = process.next()
            if "method" not in message:
                assert message["id"] not in got
                got[message["id"]] = message
        for n in range(2_000):
            assert got[n].get("error", {}).get("code") == kinds[n % 5][2]
            if n % 5 == 0:
                assert got[n]["result"] == {"echo": n}


@pytest.mark.program
def test_a_flood_of_unknown_notifications() -> None:
    # 20,000 of them leave the server as it was
    with StdioProcess(SERVE) as process:
        process.start()
        flood = b"".join(
            frame(notification("$/unknown" if n % 2 else "unknown/thing", {"n": n}))
            for n in range(20_000)
        )
        process.send_raw(flood + frame(ping(1, "x")))
        assert process.answer(1)["result"] == {"echo": "x"}


@pytest.mark.program
def test_a_body_of_many_megabytes() -> None:
    with StdioProcess(SERVE) as process:
        process.start()
        text = "x字" * 4_000_000
        assert process.ping(text) == text
