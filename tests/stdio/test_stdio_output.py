"""Output under pressure over a real process: an unread client, stderr, strays (W2, W3)."""

import sys

import pytest

from tests.support.program import SERVE
from tests.support.stdio_process import (
    StdioProcess,
    frame,
    initialize,
    notification,
    ping,
    request,
)

MEGABYTE = 1 << 20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_client_that_stops_reading_loses_nothing_and_costs_little() -> None:
    # W2: 200,000 deltas unread, pings meanwhile answered once it reads again
    with StdioProcess(reading=False) as process:
        process.send(initialize(), request(1, "test/memory"))
        process.send(request(2, "test/deltas", {"count": 200_000, "blocks": 2, "stubborn": True}))
        process.send(*(request(n, "test/echo", {"n": n}) for n in range(100, 300)))
        process.send(request(3, "test/memory"))
        process.start_reading()
        texts: dict[str, int] = {}
        answers: list[int] = []
        deltas = 0
        while (message := process.next()).get("method") != "test/done":
            if "id" in message:
                answers.append(message["id"])
                assert "error" not in message
                if message["id"] == 1:
                    before = message["result"]
                if message["id"] == 3:
                    after = message["result"]
            for delta in message.get("params", {}).get("deltas", []):
                deltas += 1
                assert delta["at"] == texts.get(delta["blockId"], 0)
                texts[delta["blockId"]] = delta["at"] + len(delta["add"])
        assert [texts["b0"], texts["b1"]] == message["params"]["at"] == [4_000_000, 4_000_000]
        assert process.answer(2)["result"]["at"] == [4_000_000, 4_000_000]
        assert answers == [0, 1, *range(100, 300), 3]
        assert deltas < 5_000  # merged
        assert after - before < 20 * MEGABYTE


def test_cancel_and_shutdown_reach_a_process_nobody_reads_from() -> None:
    # W2: the reader, cancel and exit go on
    with StdioProcess(reading=False) as process:
        process.send(initialize(), request(1, "test/deltas", {"count": 10**9}))
        process.send(*(request(n, "test/echo", {"x": "x" * 1000}) for n in range(1_000, 3_000)))
        process.send(notification("$/cancelRequest", {"id": 1}), request(2, "shutdown"))
        process.start_reading()
        assert process.answer(1)["error"]["code"] == -32800
        assert process.answer(2)["result"] is None
        process.send(notification("exit"))
        assert process.wait() == 0
        replies = [m["id"] for m in process.rest() if "id" in m and "method" not in m]
        assert replies == [0, *range(1_000, 3_000)]


def test_exit_of_a_process_nobody_reads_from() -> None:
    # W2, W4
    with StdioProcess(reading=False) as process:
        process.send(initialize(), request(1, "test/deltas", {"count": 10**9}))
        process.send(*(request(n, "test/echo", {"x": "x" * 1000}) for n in range(1_000, 2_000)))
        process.send(notification("exit"))
        assert process.wait() == 1


@pytest.mark.program
def test_a_client_that_leaves_too_much_unread() -> None:
    # beyond the hard limit the process cancels all and exits 1
    with StdioProcess(SERVE, reading=False) as process:
        process.send(initialize())
        big = frame(ping(1, "x" * (4 * MEGABYTE)))
        try:
            for _ in range(30):
                process.send_raw(big)
        except OSError:
            pass  # it is gone already
        assert process.wait() == 1


def test_stderr_that_is_not_drained() -> None:
    # W2
    with StdioProcess(reading=False) as process:
        process.send(
            initialize(), *(request(n, "test/stderr", {"size": 100_000}) for n in range(1, 50))
        )
        process.send(request("end", "shutdown"), notification("exit"))
        assert process.wait() == 0
        process.start_reading()
        assert [m["id"] for m in process.rest() if "id" in m] == [0, *range(1, 50), "end"]


def test_stray_output_goes_to_stderr() -> None:
    # W3: print, a raw write to descriptor 1, and a child that inherits both streams
    with StdioProcess() as process:
        process.start()
        assert process.result("test/print") is None
        assert process.result("test/echo") == {}
        process.call("shutdown")
        process.send(notification("exit"))
        assert process.wait() == 0
        process.rest()
        for stray in (b"stray print", b"stray write", b"child speaks", b"EOFError"):
            assert stray in process.stderr
            assert stray not in process.raw


def test_control_characters_do_not_reach_a_terminal() -> None:
    # W13
    with StdioProcess() as process:
        process.start()
        process.result("test/log", {"text": "a\x1b[31mred\x07\x9b字\tb"})
        process.call("shutdown")
        process.send(notification("exit"))
        process.wait()
        process.rest()
        assert "a[31mred字\tb" in process.stderr.decode()
