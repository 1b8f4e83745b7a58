"""Asks Git about a project, with nothing that the project could make it run.

Hooks, pagers, filters, external diffs, text converters, monitors and fetching are switched off: a
question about a project must not start one of its programs.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
from kode_sidecar.infrastructure.commands.programs import (
    command_environment,
    find_program,
    search_folders,
)

_LIMITS = CommandLimits(seconds=60.0, output_bytes=100_000_000)
_OFF: Mapping[str, str] = {
    "core.hooksPath": os.devnull,
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "protocol.allow": "never",
    "diff.external": "",
    "color.ui": "false",
}
_ENVIRONMENT: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_FILTER = re.compile(r"filter\.(?P<driver>.+)\.[^.]+", re.DOTALL)
_FILTER_OFF: Mapping[str, str] = {"clean": "", "smudge": "", "process": "", "required": "false"}

FindProgram = Callable[[str, Callable[[], str]], str]
"""Takes a program's name and a search function; returns its path."""


@dataclass(frozen=True)
class GitProgram:
    """Where Git comes from: `environ` is our own environment, `found` finds a program."""

    environ: Mapping[str, str]
    found: FindProgram

    def at(self, folder: Path, out_of: Sequence[Path]) -> "Git":
        """Return the Git of a folder; no program below `out_of` is taken for it.

        Raises KodeError `ToolFailed` if there is none.
        """
        path = next((text for name, text in self.environ.items() if name.upper() == "PATH"), "")
        folders = search_folders(path, out_of)
        program = self.found("git", lambda: str(find_program("git", folders, out_of)))
        searched = os.pathsep.join(map(str, folders))
        return Git(Path(program), folder, command_environment(self.environ, searched))


class Git:
    """Git in one folder. Read only: no command here writes, not even the index."""

    def __init__(self, program: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self._folder = folder
        self._environment = _with_settings({**environment, **_ENVIRONMENT}, _OFF)
        self._filters_off = False

    async def ask(self, *arguments: str) -> bytes:
        """Return what Git prints. Raises KodeError `ToolFailed` with what it complains about."""
        await self._switch_filters_off()
        code, output = await self._run(arguments)
        if code == 0:
            return output
        _, complaint = await self._run(arguments, errors=True)
        text = complaint.decode("utf-8", "replace").strip()[-500:]
        raise KodeError("ToolFailed", f"git {arguments[0]} failed: {text or f'exit code {code}'}")

    async def find(self, *arguments: str) -> str | None:
        """Return one line that Git prints, None where it finds nothing."""
        await self._switch_filters_off()
        code, output = await self._run(arguments)
        return output.decode("utf-8", "replace").strip() or None if code == 0 else None

    async def _switch_filters_off(self) -> None:
        """Blank each filter that some configuration names, before a command could run one."""
        if self._filters_off:
            return
        arguments = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
        _, output = await self._run(arguments)
        names = output.decode("utf-8", "surrogateescape").split("\0")
        drivers = {found["driver"] for name in names if (found := _FILTER.fullmatch(name))}
        off = {f"filter.{d}.{key}": value for d in drivers for key, value in _FILTER_OFF.items()}
        self._environment = _with_settings(self._environment, off)
        self._filters_off = True

    async def _run(self, arguments: Sequence[str], *, errors: bool = False) -> tuple[int, bytes]:
        wanted = ProgramRun(
            self._program, arguments, self._folder, self._environment, _LIMITS, errors=errors
        )
        end = await run_program(wanted)
        if end.ended != "exited":
            how = end.ended.replace("_", " ")
            raise KodeError("ToolFailed", f"git {arguments[0]} was ended: {how}. Ask for less.")
        return -1 if end.exit_code is None else end.exit_code, end.output


def _with_settings(environment: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with more settings of Git, which outrank those in files."""
    begin = int(environment["GIT_CONFIG_COUNT"])
    more = {"GIT_CONFIG_COUNT": str(begin + len(settings))}
    for number, (name, value) in enumerate(settings.items(), begin):
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**environment, **more}
