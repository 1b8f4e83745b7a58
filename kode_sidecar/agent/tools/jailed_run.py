"""Run a command in the sandbox, and find files it changed that may run code later."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kode_sidecar.core.text.shown_text import cut_line
from kode_sidecar.infrastructure.commands.command import CommandEnd, ProgramRun, run_program
from kode_sidecar.infrastructure.commands.held_folders import alone_in, placeholders
from kode_sidecar.infrastructure.commands.jail import Jail, OpenFolders, jailed
from kode_sidecar.infrastructure.workspace.startup_files import changed_files, find_startup_files
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_MAX_NAMED = 20
_MAX_NAME_CHARS = 300


async def run_jailed(
    sandbox: Path,
    wanted: ProgramRun,
    jail: Jail,
    workspace: Workspace,
    search_path: Sequence[Path],
    on_output: Callable[[bytes], None],
) -> tuple[CommandEnd, str]:
    """Run a command; return its end and a warning about changed files, or "".

    `sandbox` is bubblewrap. Raises KodeError `ToolFailed` if it cannot be started.
    """
    roots = _outermost([root.real for root in workspace.roots])
    async with alone_in(roots):
        return await _run_alone(sandbox, wanted, jail, workspace, roots, search_path, on_output)


async def _run_alone(
    sandbox: Path,
    wanted: ProgramRun,
    jail: Jail,
    workspace: Workspace,
    roots: Sequence[Path],
    search_path: Sequence[Path],
    on_output: Callable[[bytes], None],
) -> tuple[CommandEnd, str]:
    before = await asyncio.to_thread(find_startup_files, roots)
    with placeholders(before.missing) as held:
        folders = OpenFolders(
            (*roots, *before.in_place), (*before.read_only, *held), before.sockets
        )
        command = [str(wanted.program), *wanted.arguments]
        made = jailed, sandbox, jail, command, wanted.folder, folders, search_path
        argv = await asyncio.to_thread(*made)
        run = replace(wanted, program=Path(argv[0]), arguments=argv[1:])
        end = await run_program(run, on_output)
    after = await asyncio.to_thread(find_startup_files, roots)
    changed = changed_files(before.states, after.states)
    named = [_quoted(workspace.display_path(one)) for one in changed[:_MAX_NAMED]]
    return end, _warning(named, len(changed) - len(named), cut=before.cut or after.cut)


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Return folders that lie in no other one: inner ones have the rules of the outermost."""
    return [
        one
        for one in dict.fromkeys(folders)
        if not any(one != other and one.is_relative_to(other) for other in folders)
    ]


def _quoted(name: str) -> str:
    """Quote a name chosen by a command, so that it cannot pose as other text."""
    quoted = json.dumps(cut_line(name, _MAX_NAME_CHARS), ensure_ascii=False)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in quoted)


def _warning(named: Sequence[str], more: int, *, cut: bool) -> str:
    said: list[str] = []
    if named:
        names = ", ".join(named) + (f" and {more} more" if more else "")
        said.append(f"changed while it ran, and can run code outside of the sandbox: {names}")
    if cut:
        said.append("too many files to look at all of them for such changes")
    return "; ".join(said)
