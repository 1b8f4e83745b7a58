"""Commands in the background of a session: started, read, waited for, stopped and listed.

They go on when a turn ends or is cancelled, and end with the session, with the process, or at
their limits. The model is notified of an end before its next step.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.tools.command_text import how_it_ended, shown_output
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.session import CommandState, CommandView
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program

MAX_RUNNING = 5
MAX_LISTED = 20
LIMIT_SECONDS = 3_600
START_SECONDS = 1.0
"""So long a start waits for an end, to report at once what cannot work."""
_CONTEXT_BYTES = 8_000
_TITLE_CHARS = 200

Keep = Callable[[bytes], Blob]
"""Stores a whole output for the user. Raises KodeError `Storage`."""


class BackgroundCommand:
    """One command, its output, and how far the model has read it."""

    def __init__(self, command_id: str, title: str, limits: CommandLimits, started_at: str) -> None:
        self.id = command_id
        self.title = title
        self.limits = limits
        self.started_at = started_at
        self.state: CommandState = "running"
        self.exit_code: int | None = None
        self.how = "runs"
        self.known = False
        """Whether the model knows how it ended."""
        self.kept: Blob | None = None
        self.task: asyncio.Task[None] | None = None
        self._began, self._seconds = time.monotonic(), 0.0
        self._output = bytearray()
        self._read = self._searched = 0
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:
        """What it is called for people and the model."""
        return f"{self.id} ({self.title})"

    def take(self, data: bytes) -> None:
        """Take the next piece of its output."""
        self._output += data
        self._changed.set()

    def end(self, state: CommandState, how: str, code: int | None, keep: Keep) -> None:
        """Note how it ended, and keep its whole output for the user."""
        self.state, self.how, self.exit_code = state, how, code
        self._seconds = time.monotonic() - self._began
        if self._output:
            with suppress(KodeError):  # a full disk: the model can still read it
                self.kept = keep(bytes(self._output))
        self._changed.set()

    async def wait(self, words: list[bytes]) -> bool:
        """Wait for its end, or until it writes one of `words`; whether it wrote one.

        What it wrote since the last wait counts, read or not: it may be ready before it is asked.
        """
        begin = self._searched
        while True:
            found = [(at, word) for word in words if (at := self._output.find(word, begin)) >= 0]
            if found:
                at, word = min(found)
                self._searched = at + len(word)
                return True
            if self.state != "running":
                return False
            # A word may come in two pieces.
            begin = max(begin, len(self._output) - max(map(len, words), default=0))
            self._changed.clear()
            await self._changed.wait()

    def report(self, *, whole_lines: bool = True) -> ToolOutcome:
        """Return what it wrote since the last report; an unended line waits for its end.

        A line is shown whole, so that a secret is found in it.
        """
        running = self.state == "running"
        until = len(self._output)
        if running and whole_lines:
            until = self._output.rfind(b"\n") + 1
        new = bytes(self._output[self._read : until])
        before = bytes(self._output[max(0, self._read - _CONTEXT_BYTES) : self._read])
        self._read = max(self._read, until)
        self.known = not running
        seconds = time.monotonic() - self._began if running else self._seconds
        kept = self.kept
        text = shown_output(new, kept.ref if kept else "", before) or "(no new output)"
        ok = self.state in ("running", "stopped") or self.exit_code == 0
        summary = without_controls(f"{self.name} {self.how}")
        return ToolOutcome(
            ok=ok,
            summary=summary,
            content=without_controls(f"[{summary} · {seconds:.1f} s]\n{text}"),
            data={"state": self.state, "exitCode": self.exit_code},
            polls=running,
            artifacts=(kept.ref,) if kept else (),
            whole=kept,
            error=None if ok else failure("ToolFailed", f"{summary}.", reason=self.state),
        )

    @property
    def view(self) -> CommandView:
        """The command as clients list it."""
        return CommandView(
            command_id=self.id,
            title=self.title,
            state=self.state,
            started_at=self.started_at,
            exit_code=self.exit_code,
        )


class BackgroundCommands:
    """The commands of one session. `emit` reports an end to the user; `now` is the time."""

    def __init__(self, now: Callable[[], str], emit: Callable[[Notice], object]) -> None:
        self._now = now
        self._emit = emit
        self._number = 0
        self._commands: dict[str, BackgroundCommand] = {}
        self._reported: list[BackgroundCommand] = []

    @property
    def views(self) -> tuple[CommandView, ...]:
        """All that run, and the newest that ended, in the order of their start."""
        return tuple(command.view for command in self._commands.values())

    def check_room(self) -> None:
        """Raise KodeError `Overloaded` if as many run as may."""
        running = [one.name for one in self._commands.values() if one.state == "running"]
        if len(running) >= MAX_RUNNING:
            text = f"{MAX_RUNNING} commands run in the background already: {', '.join(running)}."
            raise KodeError("Overloaded", f"{text} End one with `command_stop`.")

    async def start(self, wanted: ProgramRun, argv: list[str], keep: Keep) -> ToolOutcome:
        """Start a command; return what it has done in its first moment."""
        self.check_room()
        self._number += 1
        title = cut_line(without_controls(" ".join(argv)), _TITLE_CHARS)
        command = BackgroundCommand(f"c{self._number}", title, wanted.limits, self._now())
        self._commands[command.id] = command
        self._forget_oldest()
        command.task = asyncio.create_task(
            self._run(command, wanted, keep), name=f"command {command.id}"
        )
        try:
            await asyncio.wait([command.task], timeout=START_SECONDS)
        except asyncio.CancelledError:  # the model never learns its id
            command.task.cancel()
            raise
        return command.report()

    def find(self, command_id: str) -> BackgroundCommand:
        """Return a command by its id. Raises KodeError `NotFound`."""
        command = self._commands.get(command_id)
        if command is None:
            known = ", ".join(one.name for one in self._commands.values()) or "none"
            text = f"There is no background command {command_id!r}. There are: {known}."
            raise KodeError("NotFound", text)
        return command

    async def stop(self, command: BackgroundCommand) -> None:
        """End a command with all that it started."""
        if command.task is not None:
            command.task.cancel()
            await asyncio.wait([command.task])

    async def close(self) -> None:
        """End all of them."""
        tasks = [one.task for one in self._commands.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def unreported(self) -> str | None:
        """What the model does not know of their ends; nothing is taken."""
        ended = self._commands.values()
        self._reported = [one for one in ended if one.state != "running" and not one.known]
        lines = [f"- {one.name} {one.how}" for one in self._reported]
        head = "Background commands that ended (see `command_output`):"
        return "\n".join([head, *lines]) if lines else None

    def reported(self) -> None:
        """Note that the model got what `unreported` said last."""
        for command in self._reported:
            command.known = True
        self._reported = []

    async def _run(self, command: BackgroundCommand, wanted: ProgramRun, keep: Keep) -> None:
        try:
            end = await run_program(wanted, command.take)
        except asyncio.CancelledError:  # only `stop` and `close` cancel it
            command.known = True
            command.end("stopped", "was stopped", None, keep)
            return
        except KodeError as error:
            command.end("failed", f"failed: {error.message}", None, keep)
        else:
            how = how_it_ended(end, wanted.limits)
            command.end(end.ended, how, end.exit_code, keep)
        text = f"The background command {command.name} {command.how}."
        self._emit(Notice(code="CommandEnded", message=text))

    def _forget_oldest(self) -> None:
        ended = [one.id for one in self._commands.values() if one.state != "running"]
        for command_id in ended[: max(0, len(self._commands) - MAX_LISTED)]:
            del self._commands[command_id]


class CommandOutputParams(Struct, forbid_unknown_fields=True):
    """Read what a background command wrote since you last read it, and how it is."""

    id: Annotated[str, Meta(description='Such as "c1"')]


class CommandWaitParams(Struct, forbid_unknown_fields=True):
    """Wait until a background command ends or writes a text, then read it."""

    id: str
    until: Annotated[str, Meta(description="Text to wait for; `|` between several")] = ""
    seconds: Annotated[int, Meta(ge=1, le=600)] = 60


class CommandStopParams(Struct, forbid_unknown_fields=True):
    """End a background command with all that it started."""

    id: str


def command_output_tool(commands: BackgroundCommands) -> Tool:
    """Make the tool that reads."""

    async def run(params: CommandOutputParams, _call: ToolCall) -> ToolOutcome:
        return commands.find(params.id).report()

    return Tool("command_output", CommandOutputParams, run, kind="run", card=_card("Output of"))


def command_wait_tool(commands: BackgroundCommands) -> Tool:
    """Make the tool that waits."""

    async def run(params: CommandWaitParams, _call: ToolCall) -> ToolOutcome:
        command, found = commands.find(params.id), False
        words = [word.encode() for word in params.until.split("|") if word]
        with suppress(TimeoutError):
            async with asyncio.timeout(params.seconds):
                found = await command.wait(words)
        return command.report(whole_lines=not found)

    return Tool("command_wait", CommandWaitParams, run, kind="run", card=_card("Wait for"))


def command_stop_tool(commands: BackgroundCommands) -> Tool:
    """Make the tool that stops."""

    async def run(params: CommandStopParams, _call: ToolCall) -> ToolOutcome:
        command = commands.find(params.id)
        await commands.stop(command)
        return command.report()

    return Tool("command_stop", CommandStopParams, run, kind="run", card=_card("Stop"))


def _card(
    words: str,
) -> Callable[[CommandOutputParams | CommandWaitParams | CommandStopParams], CallCard]:
    return lambda params: CallCard(f"{words} {params.id}")
