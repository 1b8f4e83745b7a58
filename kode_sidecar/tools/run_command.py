"""`run_command`: one program, without a shell, inside the sandbox (off by default)."""

import asyncio
import codecs
import hashlib
import locale
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.commands.command import CommandEnd, CommandLimits, run_program
from kode_sidecar.commands.programs import command_environment, find_program, search_folders
from kode_sidecar.domain.error_info import failure
from kode_sidecar.domain.run_policy import RUN_COMMAND, command_path
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.tools.governed import Subject
from kode_sidecar.workspace.credentials import find_secret
from kode_sidecar.workspace.workspace import Workspace

MAX_SECONDS = 600
MAX_SHOWN_CHARS = 30_000
MAX_ARGUMENT_CHARS = 30_000
_HEAD_CHARS = 8_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


class RunCommandParams(Struct, forbid_unknown_fields=True):
    """Run one program and get its output and exit code.

    There is no shell: no pipes, redirections, globs or variables; each entry of `argv` reaches the
    program as it is. There is no input either. Everything the program started is ended with it.
    """

    argv: Annotated[
        list[str],
        Meta(
            min_length=1,
            max_length=500,
            description='Program and arguments, e.g. ["python", "-m", "pytest", "-x"]. The program '
            "by its plain name, without a folder.",
        ),
    ]
    cwd: Annotated[str, Meta(description='Folder to run it in; "." is the project')] = "."
    timeout_seconds: (
        Annotated[int, Meta(ge=1, le=MAX_SECONDS, description="When to end it")] | None
    ) = None


@dataclass(frozen=True)
class CommandPlace:
    """Where commands run. `workspace` guards their folder; nothing below `sandbox` is a program.

    `environ` is our own environment, of which a command gets the allowed names and `more_names`.
    `keep` stores a whole output and returns the name under which the user finds it.
    """

    workspace: Workspace
    sandbox: Path
    environ: Mapping[str, str]
    keep: Callable[[str, bytes], str]
    limits: CommandLimits = field(default_factory=CommandLimits)
    more_names: Sequence[str] = ()


def command_subject(params: RunCommandParams) -> Sequence[Subject]:
    """Return the command, word for word."""
    return (Subject(command_path(params.argv), shown=" ".join(params.argv)[:200]),)


def run_command_tool(place: CommandPlace) -> Tool:
    """Make the tool."""

    async def run(params: RunCommandParams, call: ToolCall) -> ToolOutcome:
        _check_arguments(params.argv)
        folder = place.workspace.locate(params.cwd)
        if not os.path.isdir(folder.real):
            raise KodeError("NotFound", f"There is no folder {folder.display} to run it in.")
        found = search_folders(_path_of(place.environ), [place.sandbox])
        program = await asyncio.to_thread(find_program, params.argv[0], found, [place.sandbox])
        started = time.monotonic()
        end = await run_program(
            program,
            params.argv[1:],
            folder=folder.real,
            environment=command_environment(
                place.environ,
                os.pathsep.join(map(str, found)),
                str(place.sandbox),
                place.more_names,
            ),
            limits=_limits(place.limits, params.timeout_seconds),
        )
        seconds = time.monotonic() - started
        return _outcome(params, folder.display, end, seconds, place, call)

    return Tool(RUN_COMMAND, RunCommandParams, run)


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


def _limits(limits: CommandLimits, wanted: int | None) -> CommandLimits:
    """Return the limits of a call, which may ask for less time than is configured, never more."""
    seconds = limits.seconds if wanted is None else min(float(wanted), limits.seconds)
    return CommandLimits(seconds, limits.output_bytes)


def _outcome(
    params: RunCommandParams,
    folder: str,
    end: CommandEnd,
    seconds: float,
    place: CommandPlace,
    call: ToolCall,
) -> ToolOutcome:
    text = _shown(end.output)
    artifacts: tuple[str, ...] = ()
    if len(text) > MAX_SHOWN_CHARS or "\0" in text or find_secret(text):
        artifacts = (place.keep(call.tool_use_id, end.output),)
        text = _cut(text, end.output, artifacts[0])
    name = without_controls(params.argv[0])
    how = _how(end, _limits(place.limits, params.timeout_seconds))
    head = f"[{name} {how} · {seconds:.1f} s · in {folder}]"
    ok = end.ended == "exited" and end.exit_code == 0
    summary = f"{name} {how}"
    reason = end.ended if end.ended != "exited" else "exit_code"
    return ToolOutcome(
        ok=ok,
        summary=summary,
        content=without_controls(f"{head}\n{text or '(no output)'}"),
        data={"exitCode": end.exit_code, "ended": end.ended, "outputBytes": len(end.output)},
        artifacts=artifacts,
        error=None if ok else failure("ToolFailed", f"{summary}.", reason=reason),
    )


def _how(end: CommandEnd, limits: CommandLimits) -> str:
    match end.ended:
        case "timed_out":
            return f"was ended after {limits.seconds:g} s"
        case "too_much_output":
            return f"was ended after {limits.output_bytes:,} bytes of output"
        case "exited":
            code = end.exit_code or 0
            return f"was ended by signal {-code}" if code < 0 else f"exited with {code}"


def _shown(output: bytes) -> str:
    """Return the output as text with LF line ends; a NUL in it says that it is no text."""
    if b"\0" in output:
        return "\0"
    for encoding in ("utf-8", locale.getencoding()):
        try:
            # Not final: the end may be missing because the program was killed.
            text = codecs.getincrementaldecoder(encoding)().decode(output)
        except (UnicodeDecodeError, LookupError):
            continue
        return _plain(text)
    return _plain(output.decode("utf-8", "backslashreplace"))


def _plain(text: str) -> str:
    """Return a text without colours; of a line written over and over, the last state."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).rstrip("\n")


def _cut(text: str, output: bytes, kept: str) -> str:
    whole = f"all {len(output):,} bytes are kept for the user as {kept}"
    if "\0" in text:
        sha = hashlib.sha256(output).hexdigest()
        return f"[binary output, SHA-256 {sha}; {whole}]"
    secret = find_secret(text)
    if secret:
        return f"[the output is not shown: it holds {secret}; {whole}]"
    tail = MAX_SHOWN_CHARS - _HEAD_CHARS
    left_out = len(text) - MAX_SHOWN_CHARS
    middle = f"\n[{left_out:,} characters cut here; {whole}]\n"
    return text[:_HEAD_CHARS] + middle + text[-tail:]
