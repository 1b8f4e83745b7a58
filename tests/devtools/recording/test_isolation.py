"""A process that plays a recording is held by one guard below everything else (W17)."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kode_sidecar.devtools.recording.isolation import player_environment
from kode_sidecar.infrastructure.workspace.ripgrep import find_ripgrep
from tests.support.program import ROOT

START = """\
import ctypes, os, socket, subprocess, sys
from pathlib import Path
from kode_sidecar.devtools.recording.isolation import isolate
touched, port, search = sys.argv[1], int(sys.argv[2]), sys.argv[3]
touch = [sys.executable, "-c", f"open({touched!r}, 'w')"]
address = ("127.0.0.1", port)
isolate(Path(search))
"""
PROGRAMS = [
    "subprocess.run(touch)",
    "subprocess.run([search, '--version'])",
    "subprocess.run([search, '--pre', *touch])",
    "subprocess.run([*touch, '--no-config'], executable=search)",
    "os.system(' '.join(touch))",
    "os.execv(touch[0], touch)",
]
if sys.platform != "win32":
    PROGRAMS += [
        "os.fork()",
        "os.posix_spawn(touch[0], touch, {})",
        "os.spawnv(os.P_WAIT, touch[0], touch)",
    ]
CONNECTIONS = [
    "socket.create_connection(address)",
    "socket.socket().connect(address)",
    "socket.socket().connect_ex(address)",
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', address)",
    "socket.getaddrinfo('localhost', port)",
    "socket.gethostbyname('localhost')",
    "socket.socket().bind(('127.0.0.1', 0))",
]


def isolated(code: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", f"{START}{code}", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("code", [*PROGRAMS, *CONNECTIONS])
def test_it_starts_no_program_and_connects_to_nothing(code: str, tmp_path: Path) -> None:
    search = find_ripgrep()
    assert search is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = str(listener.getsockname()[1])
        found = isolated(code, str(tmp_path / "touched"), port, str(search))
        assert found.returncode == 1
        assert "PermissionError: a process that plays a recording" in found.stderr
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert not (tmp_path / "touched").exists()


def test_its_own_search_runs_and_its_sockets_make_a_pair() -> None:
    code = "subprocess.run([search, '--no-config', '--version'], check=True); socket.socketpair()"
    found = isolated(code, "", "1", str(find_ripgrep()))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("ripgrep")


def test_it_knows_no_variable_of_the_players(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {
        "KODE_HOME",
        "HOME",
        "USERPROFILE",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "TEMP",
        "TMP",
        "TMPDIR",
    }
    of_the_player = {"TOKEN": "x", "HOME": "/home/me", "PATH": "/bin", "KODE_HOME": "/play"}
    found = isolated("print(*os.environ, os.path.expanduser('~'))", "", "1", "rg", **of_the_player)
    assert found.stdout.split()[-1] == "/play"
    kept = {name.upper() for name in found.stdout.split()[:-1] if not name.startswith("KODE_TEST_")}
    assert kept <= allowed
    for name in ("TOKEN", "AWS_PROFILE", "HTTPS_PROXY", "KIMI_API_KEY", "KODE_CONFIG", "PATH"):
        monkeypatch.setenv(name, "the player's")
    started = player_environment(Path("/play"))
    assert "the player's" not in started.values()
    homes = {started[name] for name in ("HOME", "USERPROFILE", "KODE_HOME")}
    assert homes == {str(Path("/play"))}
