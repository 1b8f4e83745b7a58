"""Every way a process must end, over a real process (W4). Gone means gone, children too."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import gone
from tests.support.program import SERVE
from tests.support.stdio_process import (
    StdioProcess,
    frame,
    initialize,
    notification,
    request,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
WINDOWS = pytest.mark.skipif(sys.platform != "win32", reason="job objects and consoles of Windows")


def started(process: StdioProcess, **params: Any) -> int:
    """Handshake, a child, a request that never ends. The child's id."""
    process.start(**params)
    process.send(request("forever", "test/forever"))
    return process.result("test/child")


def block(process: StdioProcess) -> None:
    """Block the loop for good; the answer before shows that it is about to happen."""
    process.send(request("before", "test/echo"), request("block", "test/block", {"seconds": 3600}))
    process.answer("before")


@pytest.mark.parametrize("blocked", [False, True])
def test_end_of_input(blocked: bool) -> None:
    with StdioProcess() as process:
        child = started(process)
        if blocked:
            block(process)
        process.close_stdin()
        assert process.wait() == 1
        assert gone(child)
        said = [message.get("method") for message in process.rest()]
        assert ("test/closing" in said) is not blocked


def test_what_was_sent_before_the_end_of_input_is_answered() -> None:
    with StdioProcess() as process:
        process.send(initialize(), *(request(n, "test/later", {"n": n}) for n in range(1, 500)))
        process.close_stdin()
        assert process.wait() == 1
        answers = [message["id"] for message in process.rest() if "id" in message]
        assert answers == list(range(500))


@pytest.mark.program
def test_shutdown_exit_and_end_of_input_at_once() -> None:
    with StdioProcess(SERVE) as process:
        process.send(initialize(), request(1, "shutdown"), notification("exit"))
        process.close_stdin()
        assert process.wait() == 0
        assert [m["id"] for m in process.rest() if "id" in m] == [0, 1]


@pytest.mark.program
def test_end_of_input_after_shutdown() -> None:
    with StdioProcess(SERVE) as process:
        process.send(initialize(), request(1, "shutdown"))
        process.close_stdin()
        assert process.wait() == 0


@pytest.mark.parametrize("shutdown", [False, True])
def test_exit(shutdown: bool) -> None:
    with StdioProcess() as process:
        child = started(process)
        if shutdown:
            process.call("shutdown")
        process.send(notification("exit"), request(5, "test/echo", {}))
        assert process.wait() == (0 if shutdown else 1)
        assert gone(child)
        rest = process.rest()
        assert not any(message.get("id") == 5 for message in rest)
        assert rest[-1]["method"] == "test/closing" or rest[-1]["id"] == "forever"


def test_exit_while_a_handler_blocks_the_loop() -> None:
    # the notification cannot even be read there: the editor then closes the pipe or dies
    with StdioProcess() as process:
        child = started(process)
        block(process)
        process.send(notification("exit"))
        process.close_stdin()
        assert process.wait() == 1
        assert gone(child)


@pytest.mark.parametrize("blocked", [False, True])
def test_a_client_that_closed_stdout(blocked: bool) -> None:
    with StdioProcess(reading=False) as process:
        process.send(initialize(), request(1, "test/child"))
        assert process.process.stdout is not None
        process.process.stdout.read(10)
        process.process.stdout.close()
        if blocked:
            process.send(request(2, "test/later"), request(3, "test/block", {"seconds": 3600}))
        else:
            process.send(request(2, "test/echo", {}))
        assert process.wait() == 1


@pytest.mark.parametrize("blocked", [False, True])
def test_the_editor_process_is_gone(blocked: bool) -> None:
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with StdioProcess() as process:
        child = started(process, processId=editor.pid)
        if blocked:
            block(process)
        assert process.process.poll() is None
        editor.communicate(b"\n")
        assert process.wait() == 1
        assert gone(child)


@pytest.mark.program
def test_an_editor_process_that_never_was() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with StdioProcess(SERVE) as process:
        process.start(processId=dead.pid)
        assert process.wait() == 1


@pytest.mark.program
@pytest.mark.parametrize("process_id", [0, -1, True, 1.5, "7", 2**40])
def test_nonsense_process_ids_are_ignored(process_id: Any) -> None:
    with StdioProcess(SERVE) as process:
        process.start(processId=process_id)
        assert process.ping(1) == 1
        process.call("shutdown")
        process.send(notification("exit"))
        assert process.wait() == 0


@POSIX
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_signals(name: str, blocked: bool) -> None:
    with StdioProcess() as process:
        child = started(process)
        if blocked:
            block(process)
        os.kill(process.process.pid, getattr(signal, name))
        assert process.wait() == 1
        assert gone(child)


@WINDOWS
def test_children_end_with_a_killed_process() -> None:
    with StdioProcess() as process:
        child = started(process)
        process.process.kill()
        assert gone(child)


@WINDOWS
def test_events_of_the_console_are_ignored() -> None:
    with StdioProcess(creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)) as process:
        child = started(process)
        try:
            os.kill(process.process.pid, getattr(signal, "CTRL_BREAK_EVENT", 0))
        except (OSError, SystemError):  # CPython tells Wine's refusal as the second
            pytest.skip("no console is here to send it")
        assert process.result("test/child") != child


@pytest.mark.program
@pytest.mark.parametrize(
    "end",
    [
        *("end of input", "exit", "a dead editor"),
        *(pytest.param(name, marks=POSIX) for name in ("SIGTERM", "SIGINT", "SIGHUP")),
    ],
)
def test_the_program_ends(end: str) -> None:
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with StdioProcess(SERVE) as process:
        process.start(processId=editor.pid)
        process.result("kode/session/new", {})
        match end:
            case "end of input":
                process.close_stdin()
            case "exit":
                process.send(notification("exit"))
            case "a dead editor":
                editor.kill()
                editor.wait()
            case _:
                os.kill(process.process.pid, getattr(signal, end))
        assert process.wait() == 1
        process.rest()
        assert process.stderr == b""
    editor.communicate()


@pytest.mark.parametrize("fails", ["load", "build"])
def test_a_start_that_fails_says_so(fails: str) -> None:
    with StdioProcess(env={"ECHO_FAILS": fails}) as process:
        process.send_raw(frame(initialize()))
        assert process.answer(0)["result"]
        assert process.wait() == 1
        process.rest()
        line = b"first could not be loaded" if fails == "load" else b"cannot start: no good"
        assert line in process.stderr
