"""Wine: running Windows programs here, each in a prefix of ours.

Standard streams must be pipes: Wine gives a program no handle for a terminal or `/dev/null`.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from freeze.forwarder_dll import LIBRARY, forwarder_dll

HINT = (
    "Wine is not installed. On Debian and Ubuntu: apt install wine wine64 (64 bit is enough). "
    "On Windows itself use `py dev.py exe --folder --onefile --test`."
)

# Of whoever calls: nothing of it is for the Windows Python.
_FOREIGN = ("PYTHON", "PIP_", "VIRTUAL_ENV", "TMPDIR", "WINE")

_REST_SECONDS = 2.0


class WineError(Exception):
    """Wine is missing or failed; the message says what to do."""


class Wine:
    """A prefix, made when it is first used."""

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        program = shutil.which("wine")
        if program is None:
            raise WineError(HINT)
        self._program = program

    def make(self) -> None:
        """Make the prefix. Raises WineError."""
        self._prefix.mkdir(parents=True)
        code, said = self.listen(["wineboot", "--init"])
        system = self._prefix / "drive_c" / "windows" / "system32"
        if code != 0 or not system.is_dir():
            raise WineError(f"wineboot failed with code {code}: {said}")
        if not (system / LIBRARY).exists():
            (system / LIBRARY).write_bytes(forwarder_dll())

    def listen(self, command: Sequence[str | Path]) -> tuple[int, str]:
        """Run it in the prefix; its exit code and all it said."""
        done = subprocess.run(
            [self._program, *command],
            env=self._environment({}),
            input=b"",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def show(
        self, command: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str]
    ) -> int:
        """Run it in the prefix and pass on what it says as it comes; its exit code."""
        process = subprocess.Popen(
            [self._program, *command],
            cwd=cwd,
            env=self._environment(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        # Wine's own server may live on, and hold the pipe: its end is not waited for.
        shown = threading.Thread(target=_pass_on, args=(process.stdout,), daemon=True)
        shown.start()
        code = process.wait()
        shown.join(_REST_SECONDS)
        return code

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN)}
        ours = {"WINEPREFIX": str(self._prefix), "WINEARCH": "win64", "WINEDEBUG": "-all"}
        return {**kept, **ours, **more}


def _pass_on(output: IO[bytes]) -> None:
    for line in output:
        sys.stdout.write(line.decode("utf-8", "replace").replace("\r\n", "\n"))
        sys.stdout.flush()


def windows_path(path: Path) -> str:
    """How Windows programs in Wine know a file of this system."""
    return "Z:" + str(path).replace("/", "\\")
