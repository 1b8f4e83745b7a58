"""A one-file program unpacks itself: no way to end leaves a process or that folder behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kode_sidecar.servers.boot.unpacked import MARKER
from tests.support.processes import children, gone
from tests.support.program import BUILT, ONE_FILE, SERVE
from tests.support.stdio_process import HANG_SECONDS, StdioProcess, notification

pytestmark = pytest.mark.skipif(BUILT is None or not ONE_FILE, reason="no one-file is tested")
POSIX = sys.platform != "win32"
End = Callable[[StdioProcess], None]


def end_of_input(process: StdioProcess) -> None:
    process.close_stdin()


def exit_only(process: StdioProcess) -> None:
    process.send(notification("exit"))


def shutdown_and_exit(process: StdioProcess) -> None:
    process.call("shutdown")
    process.send(notification("exit"))


def signalled(name: str) -> End:
    return lambda process: os.kill(process.process.pid, getattr(signal, name))


WAYS: dict[str, End] = {
    "end of input": end_of_input,
    "exit": exit_only,
    "shutdown and exit": shutdown_and_exit,
}
if POSIX:  # elsewhere these are all TerminateProcess, and open files cannot be removed
    WAYS |= {name: signalled(name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL")}


def unpacked(folder: Path) -> list[Path]:
    return list(folder.glob("_MEI*"))


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files, with a space and Chinese in its name."""
    folder = tmp_path / "临时 files"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMPDIR", "TEMP", "TMP"):
            patch.setenv(name, str(folder))
        yield folder


def vanishes(folder: Path) -> bool:
    deadline = time.monotonic() + HANG_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not folder.exists()


@pytest.mark.parametrize("loaded", [True, False], ids=["serving", "starting"])
@pytest.mark.parametrize("end", WAYS.values(), ids=WAYS)
def test_no_process_and_no_folder(temporary: Path, end: End, loaded: bool) -> None:  # W4 E5
    with StdioProcess(SERVE) as process:
        process.start()
        if loaded:
            process.result("kode/session/new", {})
        (folder,) = unpacked(temporary)
        second = children(process.process.pid) if POSIX else []
        end(process)
        process.wait()
        assert all(gone(pid) for pid in second)
        assert vanishes(folder)


@pytest.mark.skipif(not POSIX, reason="open files cannot be removed there")
def test_the_first_process_is_killed_before_initialize(temporary: Path) -> None:
    with StdioProcess(SERVE) as process:
        assert process.call("kode/ping")["error"]["code"] == -32002
        (folder,) = unpacked(temporary)
        (second,) = children(process.process.pid)
        process.process.kill()
        assert gone(second)
        assert vanishes(folder)


def test_a_parent_that_is_killed(temporary: Path) -> None:
    """The editor: it holds the only ends of our pipes, and dies without closing anything."""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1)\n"
        "child.stdin.write(b'Content-Length: 2\\r\\n\\r\\n{}'); child.stdin.flush()\n"
        "child.stdout.read(1); print(child.pid, flush=True); child.wait()\n"
    )
    command = [sys.executable, "-c", code, *SERVE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as editor:
        assert editor.stdout is not None
        first = int(editor.stdout.readline())
        (folder,) = unpacked(temporary)
        editor.kill()
    assert gone(first)
    assert vanishes(folder)


def test_what_a_killed_pair_left_goes_with_the_next_start(temporary: Path) -> None:
    def left(name: str, age: float) -> Path:
        marker = temporary / name / "kode_sidecar" / MARKER
        marker.parent.mkdir(parents=True)
        marker.write_text("{}")
        os.utime(temporary / name, (time.time() - age,) * 2)
        return marker

    old, young, held = left("_MEIold", 7200), left("_MEIyoung", 0), left("_MEIheld", 7200)
    foreign = temporary / "_MEIforeign"
    foreign.mkdir()
    os.utime(foreign, (time.time() - 7200,) * 2)
    with held.open() as file:
        if POSIX:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_SH)
        with StdioProcess(SERVE) as process:
            process.start()
            assert vanishes(old.parents[1])
            process.close_stdin()
            process.wait()
        assert young.exists()
        assert held.exists()
        assert foreign.is_dir()
