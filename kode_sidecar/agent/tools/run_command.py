"""`run_command`: run one program, without a shell, in a workspace folder (off by default)."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.tools.background import LIMIT_SECONDS, BackgroundCommands
from kode_sidecar.agent.tools.command_text import LiveOutput, how_it_ended, shown_output
from kode_sidecar.agent.tools.governed import Subject
from kode_sidecar.agent.tools.jailed_run import run_jailed
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.domain.run_policy import RUN_COMMAND, command_path
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import (
    CommandEnd,
    CommandLimits,
    ProgramRun,
    run_program,
)
from kode_sidecar.infrastructure.commands.jail import Jail, bubblewrap
from kode_sidecar.infrastructure.commands.programs import (
    command_environment,
    find_program,
    own_program,
    search_folders,
)
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_SECONDS = 600
MAX_ARGUMENT_CHARS = 30_000


class RunCommandParams(Struct, forbid_unknown_fields=True):
    """Run one program and get its output and exit code.

    There is no shell (no pipes, redirections, globs, variables) and no input. All that the program
    started ends with it.
    """

    argv: Annotated[
        list[str],
        Meta(
            min_length=1,
            max_length=500,
            description='Program, by its name without a folder, and arguments: ["python", "-m", '
            '"pytest"]',
        ),
    ]
    cwd: Annotated[str, Meta(description="Folder to run in")] = "."
    timeout_seconds: (
        Annotated[int, Meta(ge=1, le=MAX_SECONDS, description="When to end it")] | None
    ) = None


class SessionCommandParams(RunCommandParams, forbid_unknown_fields=True):
    __doc__ = RunCommandParams.__doc__

    background: Annotated[
        bool,
        Meta(
            description="Do not wait for its end (servers, long builds): `find_tools` has "
            "`command_output`, `command_wait` and `command_stop`"
        ),
    ] = False


@dataclass(frozen=True)
class WantedCommand:
    """A command to be permitted: its arguments, the file of its program, its folder."""

    argv: Sequence[str]
    program: Path
    folder: Location


@dataclass(frozen=True)
class Unseen:
    """What a command does not see of the user's texts, because it reads the disk.

    `unsaved` are the paths of files whose open text is not saved, `waiting` is the number of
    undecided hunks by path.
    """

    unsaved: Sequence[str] = ()
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def words(self) -> str:
        """Both facts in a few words, empty if there are none."""
        hunks = sum(self.waiting.values())
        unsaved = f"{counted(len(self.unsaved), 'file')} not saved" if self.unsaved else ""
        waiting = f"{counted(hunks, 'hunk')} not decided" if hunks else ""
        return "; ".join(filter(None, (unsaved, waiting)))

    @property
    def notes(self) -> Sequence[str]:
        """Both facts for the model, a line each."""
        unsaved = (
            f"[NOTE: it ran on the files on disk. Not saved, so it saw an older text of: "
            f"{', '.join(self.unsaved)}]"
        )
        hunks = ", ".join(f"{path} ({count})" for path, count in self.waiting.items())
        waiting = f"[NOTE: it did not see the hunks that the user has not decided yet: {hunks}]"
        return [*([unsaved] if self.unsaved else ()), *([waiting] if self.waiting else ())]


def counted(count: int, word: str) -> str:
    """Return a number with its noun, such as `2 files`."""
    return f"{count} {word}" + ("" if count == 1 else "s")


async def _decided_before(_wanted: WantedCommand, _call: ToolCall) -> Unseen:
    """Permit everything, because a job's policy has decided already, and nothing is unsaved."""
    return Unseen()


TerminalRunner = Callable[[ProgramRun, ToolCall], Awaitable[CommandEnd | None]]
"""Runs a command where the user can watch, such as an editor's terminal; None: run it here."""


FindProgram = Callable[[str, Callable[[], str]], str]
"""Takes a program's name and a search function; returns its path, or where it was."""


async def no_terminal(_run: ProgramRun, _call: ToolCall) -> None:
    """Return None, so that the command runs here."""


@dataclass(frozen=True)
class CommandPlace:
    """Where commands run. `workspace` guards their folder; nothing below `sandbox` is a program.

    Without a `sandbox` nothing below the open folders is a program, except the files that
    `programs` gives by name. `environ` is our own environment; a command gets the allowed names
    and `more_names`. `keep` stores a whole output for the user. `permit` raises KodeError `Denied`
    for a forbidden command, and returns what the command will not see. With a `jail` a command runs
    there, never `in_terminal`. `found` finds a program. Without `background` each runs to its
    end.
    """

    workspace: Workspace
    sandbox: Path | None
    environ: Mapping[str, str]
    keep: Callable[[str, bytes], Blob]
    limits: CommandLimits = field(default_factory=CommandLimits)
    more_names: Sequence[str] = ()
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    permit: Callable[[WantedCommand, ToolCall], Awaitable[Unseen]] = _decided_before
    jail: Jail | None = None
    in_terminal: TerminalRunner = no_terminal
    found: FindProgram = lambda _, find: find()
    background: BackgroundCommands | None = None

    @property
    def no_programs_below(self) -> Sequence[Path]:
        """The folders where an agent could have put a program."""
        if self.sandbox is not None:
            return (self.sandbox,)
        return [root.path for root in self.workspace.roots]


def command_subject(params: RunCommandParams) -> Sequence[Subject]:
    """Return the command, word for word."""
    return (Subject(command_path(params.argv), shown=" ".join(params.argv)[:200]),)


def run_command_tool(place: CommandPlace) -> Tool:
    """Make the tool."""

    async def run(params: RunCommandParams, call: ToolCall) -> ToolOutcome:
        _check_arguments(params.argv)
        beside = place.background if _in_background(params) else None
        if beside is not None:
            beside.check_room()
        folder = place.workspace.locate(params.cwd)
        if not os.path.isdir(folder.real):
            raise KodeError("NotFound", f"There is no folder {folder.display} to run it in.")
        out_of = place.no_programs_below
        found = search_folders(_path_of(place.environ), out_of)
        program = await asyncio.to_thread(_program, place, params.argv[0], found)
        unseen = await place.permit(WantedCommand(params.argv, program, folder), call)
        started = time.monotonic()
        wanted = ProgramRun(
            program,
            params.argv[1:],
            folder.real,
            command_environment(
                place.environ,
                os.pathsep.join(map(str, found)),
                str(place.sandbox or ""),
                place.more_names,
            ),
            _limits(place.limits, params.timeout_seconds, LIMIT_SECONDS if beside else None),
        )
        if beside is not None:
            return await beside.start(wanted, params.argv, partial(place.keep, call.tool_use_id))
        end, warning = await _ran(wanted, place, found, call)
        seconds = time.monotonic() - started
        return _outcome(params, folder.display, end, seconds, warning, unseen, place, call)

    params = RunCommandParams if place.background is None else SessionCommandParams
    return Tool(RUN_COMMAND, params, run, kind="run", card=_card)


def _in_background(params: RunCommandParams) -> bool:
    return isinstance(params, SessionCommandParams) and params.background


async def _ran(
    wanted: ProgramRun, place: CommandPlace, search_path: Sequence[Path], call: ToolCall
) -> tuple[CommandEnd, str]:
    """Run a command elsewhere or here; return its end and a warning for the user, or ""."""
    end = await place.in_terminal(wanted, call) if place.jail is None else None
    if end is not None:
        return end, ""
    with LiveOutput(call.grow) as live:
        if place.jail is not None:
            sandbox = Path(place.found("bwrap", bubblewrap))
            jail = place.jail
            return await run_jailed(sandbox, wanted, jail, place.workspace, search_path, live)
        return await run_program(wanted, live), ""


def _program(place: CommandPlace, name: str, found: Sequence[Path]) -> Path:
    """Return the program's file from the settings, else the first on the search path."""
    return Path(place.found(name, lambda: str(_found(place, name, found))))


def _found(place: CommandPlace, name: str, found: Sequence[Path]) -> Path:
    own = place.programs.get(name)
    if own is not None and place.workspace.roots:
        program = own_program(own, place.workspace.roots[0].path)
        if program is not None:
            return program
    return find_program(name, found, place.no_programs_below)


def _card(params: RunCommandParams) -> CallCard:
    return CallCard(f"Run {' '.join(params.argv)}")


def _check_arguments(argv: Sequence[str]) -> None:
    if any("\0" in argument for argument in argv):
        raise KodeError("InvalidArguments", "An argument holds a NUL character.")
    if sum(map(len, argv)) > MAX_ARGUMENT_CHARS:
        raise KodeError(
            "InvalidArguments",
            f"The arguments have more than {MAX_ARGUMENT_CHARS:,} characters; write long input to "
            "a file and name that.",
        )


def _path_of(environ: Mapping[str, str]) -> str:
    return next((value for name, value in environ.items() if name.upper() == "PATH"), "")


def _limits(limits: CommandLimits, wanted: int | None, most: float | None = None) -> CommandLimits:
    """Return the limits of a call; it may ask for less time than configured, or than `most`."""
    most = limits.seconds if most is None else most
    seconds = most if wanted is None else min(float(wanted), most)
    return CommandLimits(seconds, limits.output_bytes)


def _outcome(
    params: RunCommandParams,
    folder: str,
    end: CommandEnd,
    seconds: float,
    warning: str,
    unseen: Unseen,
    place: CommandPlace,
    call: ToolCall,
) -> ToolOutcome:
    kept = place.keep(call.tool_use_id, end.output) if end.output else None
    text = shown_output(end.output, kept.ref if kept else "")
    name = without_controls(params.argv[0])
    how = how_it_ended(end, _limits(place.limits, params.timeout_seconds))
    head = f"[{name} {how} · {seconds:.1f} s · in {folder}]"
    ok = end.ended == "exited" and end.exit_code == 0
    remarks = "; ".join(filter(None, (warning, unseen.words)))
    summary = f"{name} {how}" + (f" ({remarks})" if remarks else "")
    head += f"\n[WARNING, for the user too: {warning}]" if warning else ""
    head = "\n".join((head, *unseen.notes))
    reason = end.ended if end.ended != "exited" else "exit_code"
    return ToolOutcome(
        ok=ok,
        summary=summary,
        content=without_controls(f"{head}\n{text or '(no output)'}"),
        unchanging=f"{summary}\n{text}",
        data={"exitCode": end.exit_code, "ended": end.ended, "outputBytes": len(end.output)},
        artifacts=(kept.ref,) if kept else (),
        whole=kept,
        error=None if ok else failure("ToolFailed", f"{summary}.", reason=reason),
    )
