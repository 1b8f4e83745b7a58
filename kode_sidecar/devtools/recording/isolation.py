"""A process that plays a recording starts no program, opens no connection, reads no variable.

Whoever wrote the recording may mean harm, and playing it answers everything from it. What still
tries to get out, by a fault of ours, is refused here, in one place below all the others. The one
program that runs is the bundled ripgrep, without its configuration, over the files laid out.
"""

import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# What an interpreter and a search need. All else is the player's own, and none of a recording's.
_KEPT_VARIABLES = frozenset({"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "TMPDIR"})
_HOME = "KODE_HOME"
# The interpreter that is started, a program built from one, and faults that a test puts in.
_STARTING = ("PYTHON", "LD_LIBRARY_PATH", "KODE_TEST_")
_FAULTS = ("KODE_TEST_",)

_STARTED = frozenset({"subprocess.Popen", "_winapi.CreateProcess"})
_PROGRAMS = frozenset(
    {
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("os.startfile", "os.startfile/2", "pty.spawn", "webbrowser.open"),
    }
)
_CONNECTIONS = frozenset(
    {
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"),
        "socket.getnameinfo",
    }
)

_SOCKET_FILE = socket.socket.__init__.__code__.co_filename


def player_environment(home: Path) -> dict[str, str]:
    """Return the environment to start a player with: a fixed list, and `home` as every home."""
    kept = {name: text for name, text in os.environ.items() if _is_kept(name.upper(), _STARTING)}
    return {**kept, **dict.fromkeys((_HOME, "HOME", "USERPROFILE"), str(home))}


def isolate(search: Path | None = None) -> None:
    """Refuse programs but `search`, and connections, from here on; forget the variables.

    It cannot be undone in this process. What is refused raises PermissionError.
    """
    for name in [*os.environ]:
        if not _is_kept(name.upper(), (_HOME, *_FAULTS)):
            del os.environ[name]
    if _HOME in os.environ:  # without these the system would say where the player is at home
        os.environ["HOME"] = os.environ["USERPROFILE"] = os.environ[_HOME]
    sys.addaudithook(_refusing(search))


def no_connection(what: object) -> PermissionError:
    """Return the error for a connection that is not made."""
    return PermissionError(f"a process that plays a recording connects to nothing: {what}")


def _refusing(search: Path | None) -> Callable[[str, tuple[Any, ...]], None]:
    allowed = None if search is None else (str(search), "--no-config")

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTED:
            if allowed is None or not _begins(arguments[1], allowed):
                raise _no_program(arguments[1])
        elif event in _PROGRAMS:
            raise _no_program(event)
        elif event in _CONNECTIONS and not _makes_a_pair():
            raise no_connection(event)

    return refuse


def _begins(line: str | Sequence[str], allowed: tuple[str, str]) -> bool:
    """Return whether a command line, on Windows one text, begins with these words."""
    if isinstance(line, str):
        return line.startswith(f"{subprocess.list2cmdline(allowed)} ")
    return tuple(line[:2]) == allowed


def _makes_a_pair() -> bool:
    """Return whether the `socket` module connects two sockets of its own, as on Windows."""
    frame = inspect.currentframe()
    for _ in range(2):  # past this function and the hook
        frame = frame and frame.f_back
    if frame is None:
        return False
    code = frame.f_code
    return code.co_filename == _SOCKET_FILE and code.co_name.endswith("socketpair")


def _no_program(what: object) -> PermissionError:
    return PermissionError(f"a process that plays a recording starts no program: {what}")


def _is_kept(name: str, beginnings: tuple[str, ...]) -> bool:
    return name in _KEPT_VARIABLES or name.startswith(beginnings)
