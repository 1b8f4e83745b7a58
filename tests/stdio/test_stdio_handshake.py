"""Before `initialize`: a real process, answered before anything heavy is imported."""

import subprocess
import sys
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from tests.support.program import ROOT, SERVE
from tests.support.stdio_process import (
    ECHO_APP,
    StdioProcess,
    frame,
    initialize,
    notification,
    ping,
    request,
)

BAD_BODIES: list[tuple[bytes, int]] = [
    (b"", -32700),
    (b"{", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"x",}', -32700),
    (b'{"a":"\xff"}', -32700),
    (b'{"a":NaN}', -32700),
    (b"\xef\xbb\xbf{}", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}", -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', -32600),
    (b"[]", -32600),
    (b"5", -32600),
    (b'"x"', -32600),
    (b"null", -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":9}', -32600),
]
"""Bodies in a good frame, and the code of their answer, which has id null (W1)."""


def check_error_data(response: Any) -> None:
    error = response["error"]
    assert {"code", "message", "category", "retryable"} <= error["data"].keys()
    assert error["data"]["message"] == error["message"]


@pytest.mark.program
def test_bad_bodies_are_answered_and_the_rest_goes_on() -> None:
    # W1
    with StdioProcess(SERVE) as process:
        for body, code in BAD_BODIES:
            process.send_raw(encode_frame(body))
            response = process.next()
            assert (response["id"], response["error"]["code"]) == (None, code), body[:60]
            check_error_data(response)
        process.send_raw(encode_frame(b'{"id":3,"method":"x"}'))
        assert process.answer(3)["error"]["code"] == -32600
        process.send_raw(encode_frame(b'{"jsonrpc":"2.0","id":"m","method":7}'))
        assert process.answer("m")["error"]["code"] == -32600
        assert process.start()["serverInfo"]["name"] == "kode-sidecar"


def test_requests_before_initialize() -> None:
    # W4: -32002, notifications are dropped
    with StdioProcess() as process:
        process.send(
            request(1, "kode/ping", {}),
            notification("textDocument/didOpen", {}),
            notification("$/cancelRequest", {"id": 1}),
            {"jsonrpc": "2.0", "id": "k9", "result": None},
            request("1", "shutdown"),
        )
        for request_id in (1, "1"):
            response = process.next()
            assert (response["id"], response["error"]["code"]) == (request_id, -32002)
            check_error_data(response)
        process.start()
        assert process.result("test/marks") == []


@pytest.mark.program
def test_a_refused_initialize_may_be_followed_by_a_good_one() -> None:
    with StdioProcess(SERVE) as process:

        def attempt(**options: Any) -> Any:
            process.send(initialize(initializationOptions={"kode": options}))
            return process.answer(0)["error"]

        error = attempt(protocolVersions=["99.0"])
        assert error["code"] == -33022
        assert error["data"]["supportedVersions"] == ["1.0", "0.9"]
        assert error["data"]["details"] == {"supportedVersions": ["1.0", "0.9"]}
        error = attempt(settings={"apiKey": "sk-very-secret"})
        assert error["code"] == -33020
        assert "apiKey" in error["message"]
        assert "sk-very-secret" not in str(error)
        process.send(request(0, "initialize", [1]))
        assert process.answer(0)["error"]["code"] == -32602
        process.send(request(0, "initialize"))
        assert "capabilities" in process.answer(0)["result"]
        assert process.ping({"a": 1}) == {"a": 1}


@pytest.mark.program
@pytest.mark.parametrize("size", [1, 3])
def test_a_trickled_handshake(size: int) -> None:
    with StdioProcess(SERVE) as process:
        stream = frame(initialize()) + frame(ping(1, "字😀"))
        for start in range(0, len(stream), size):
            process.send_raw(stream[start : start + size])
        assert "result" in process.answer(0)
        assert process.answer(1)["result"] == {"echo": "字😀"}


@pytest.mark.program
def test_messages_glued_to_initialize_are_not_lost() -> None:
    with StdioProcess(SERVE) as process:
        process.send(initialize(), *(ping(n, n) for n in range(1, 50)))
        assert process.next()["id"] == 0
        assert [process.answer(n)["result"]["echo"] for n in range(1, 50)] == list(range(1, 50))


@pytest.mark.program
@pytest.mark.parametrize(
    "ending", [frame(notification("exit")), b"", b"Content-Length: x\r\n\r\n", b"nonsense\n"]
)
def test_ends_with_code_1(ending: bytes) -> None:
    # W1, W4: `exit`, end of input and lost framing before `initialize`
    with StdioProcess(SERVE) as process:
        process.send_raw(frame(request(1, "early")) + ending)
        if not ending:
            process.close_stdin()
        assert process.wait() == 1
        said = process.rest()
        assert said[0]["error"]["code"] == -32002
        if b"exit" not in ending and ending:
            assert (said[1]["id"], said[1]["error"]["code"]) == (None, -32700)
            assert b"kode-sidecar: lost the frame boundary" in process.stderr


@pytest.mark.program
def test_a_client_that_does_not_read_yet() -> None:
    # W2: 20,000 refusals fit no pipe; the reader goes on and all are written in the end
    with StdioProcess(SERVE, reading=False) as process:
        process.send(*(request(n, "early") for n in range(1, 20_001)))
        process.send(initialize(), ping("last", "x"))
        process.start_reading()
        ids = [process.next()["id"] for _ in range(20_001)]
        assert ids == [*range(1, 20_001), 0]
        assert process.answer("last")["result"] == {"echo": "x"}


@pytest.mark.program
def test_end_of_input_while_the_client_does_not_read() -> None:
    # W4
    with StdioProcess(SERVE, reading=False) as process:
        process.send(*(request(n, "early") for n in range(5_000)))
        process.close_stdin()
        assert process.wait() == 1


def test_nothing_heavy_is_imported_before_the_answer() -> None:
    script = (
        "import sys\n"
        "from kode_sidecar.servers.boot import stdio_handshake\n"
        "heavy = {'asyncio', 'msgspec', 'typing', 'dataclasses', 'threading', 'pygls', 'httpx'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
def test_strays_of_a_process_started_without_stderr() -> None:
    with StdioProcess(["sh", "-c", 'exec "$@" 2>&-', "sh", *ECHO_APP]) as process:
        process.start()
        assert process.result("test/print") is None
        assert process.result("test/echo", {"a": 1}) == {"a": 1}


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
def test_a_program_started_with_closed_streams() -> None:
    with StdioProcess(["sh", "-c", 'exec "$@" 2>&-', "sh", *SERVE]) as process:
        process.start()
        assert process.ping(1) == 1
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *SERVE],
        cwd=ROOT,
        capture_output=True,
        env={"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


def test_a_session_waits_for_no_engine() -> None:
    """What answers `kode/session/new` is imported before the answer, what runs turns after it."""
    script = (
        "import sys, kode_sidecar.servers.boot.app\n"
        "late = ('kode_sidecar.core.kernel', 'kode_sidecar.agent.turns',"
        " 'kode_sidecar.agent.context.fitting')\n"
        "sys.exit(' '.join(name for name in late if name in sys.modules) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
