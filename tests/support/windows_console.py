"""A console window of Windows with a program in it: keys are typed, what stands there is read.

A process has one console, so another one sits in the window beside the program (`main`). It takes
lines of JSON, each a text to type, and tells the rows of the window whenever they have changed.
"""

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

CTRL_C = "\x03"
_KEY_EVENT = 1
_LEFT_CTRL = 8
_KEYS = {"\r": 0x0D, "\b": 0x08, CTRL_C: ord("C"), "\x04": ord("D")}
_POLL_SECONDS = 0.05


def can_have_windows() -> bool:
    """Whether a console can be opened: Wine needs a display for it."""
    if sys.platform != "win32":
        return False
    return not hasattr(ctypes.windll.ntdll, "wine_get_version") or "DISPLAY" in os.environ


class ConsoleWindow:
    """The test's end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.display = ""

    def type(self, keys: str) -> None:
        """Press keys; Enter is a carriage return. All of them come at once, as a paste does."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(keys).encode() + b"\n")

    async def shows(self, *texts: str) -> None:
        """Wait until all texts stand in the window at once."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(HANG_SECONDS):
                while not all(text in self.display for text in texts):
                    answer = await self._process.stdout.readline()
                    assert answer, f"ended without {texts}:\n{self.display}"
                    self.display = "\n".join(json.loads(answer)).rstrip()
        except TimeoutError:
            raise AssertionError(f"never {texts}:\n{self.display}") from None

    async def left(self) -> int:
        """Wait until the program has ended; its exit code."""
        async with asyncio.timeout(HANG_SECONDS):
            return await self._process.wait()


@asynccontextmanager
async def in_window(run: Sequence[str], env: Mapping[str, str]) -> AsyncGenerator[ConsoleWindow]:
    """Any program in a window of its own; it is killed in the end."""
    assert sys.platform == "win32"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.windows_console", *run),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**env, "PYTHONPATH": str(ROOT)},
        creationflags=subprocess.CREATE_NEW_CONSOLE,
    )
    try:
        yield ConsoleWindow(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(HANG_SECONDS):
            await process.wait()


class _Place(ctypes.Structure):
    """COORD"""

    _fields_ = (("x", ctypes.c_int16), ("y", ctypes.c_int16))


class _Screen(ctypes.Structure):
    """CONSOLE_SCREEN_BUFFER_INFO"""

    _fields_ = (
        ("size", _Place),
        ("cursor", _Place),
        ("attributes", ctypes.c_uint16),
        ("left_top", _Place),
        ("right_bottom", _Place),
        ("largest", _Place),
    )


class _Key(ctypes.Structure):
    """INPUT_RECORD with a KEY_EVENT_RECORD in it"""

    _fields_ = (
        ("kind", ctypes.c_uint16),
        ("down", ctypes.c_int32),
        ("repeated", ctypes.c_uint16),
        ("key", ctypes.c_uint16),
        ("scan", ctypes.c_uint16),
        ("char", ctypes.c_uint16),
        ("state", ctypes.c_uint32),
    )


def _rows(console: ctypes.c_void_p) -> list[str]:
    assert sys.platform == "win32"
    kernel, screen, read = ctypes.windll.kernel32, _Screen(), ctypes.c_uint32()
    kernel.GetConsoleScreenBufferInfo(console, ctypes.byref(screen))
    row = ctypes.create_unicode_buffer(screen.size.x + 1)
    rows: list[str] = []
    for y in range(screen.left_top.y, screen.right_bottom.y + 1):
        place = _Place(0, y)
        kernel.ReadConsoleOutputCharacterW(console, row, screen.size.x, place, ctypes.byref(read))
        rows.append(ctypes.wstring_at(row, read.value).rstrip())
    return rows


def _type(console: ctypes.c_void_p, keys: str) -> None:
    assert sys.platform == "win32"
    records = (_Key * len(keys))()
    for record, char in zip(records, keys, strict=True):
        control = char < " " and char not in "\r\b"
        state = _LEFT_CTRL if control else 0
        key = _KEYS.get(char, 0)
        record.kind, record.down, record.repeated, record.key = _KEY_EVENT, 1, 1, key
        record.char, record.state = ord(char), state
    written = ctypes.c_uint32()
    ctypes.windll.kernel32.WriteConsoleInputW(console, records, len(keys), ctypes.byref(written))


def main(command: Sequence[str]) -> int:
    """The exit code of the program, which the end of standard input kills."""
    if sys.platform != "win32":
        return 2
    import msvcrt

    files = [os.open(name, os.O_RDWR) for name in ("CONIN$", "CONOUT$")]
    keys, screen = (ctypes.c_void_p(msvcrt.get_osfhandle(file)) for file in files)
    with subprocess.Popen(command, stdin=files[0], stdout=files[1], stderr=files[1]) as program:

        def type_lines() -> None:
            for line in sys.stdin:
                _type(keys, json.loads(line))
            program.kill()

        threading.Thread(target=type_lines, daemon=True).start()
        shown: list[str] = []
        while program.poll() is None:
            if (rows := _rows(screen)) != shown:
                shown = rows
                sys.stdout.write(json.dumps(rows) + "\n")
                sys.stdout.flush()
            time.sleep(_POLL_SECONDS)  # a console tells nobody that it has changed
    os._exit(program.returncode)  # the thread still reads


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
