"""Shows the conversation above the input line: complete blocks of Markdown, and the rest live.

A complete block is printed once and belongs to the terminal's scrollback; only the last block,
running tools and the wait for the model are redrawn.
"""

import asyncio
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from kode_sidecar.core.text.shown_text import (
    clipped,
    columns,
    one_line,
    visible,
)
from kode_sidecar.terminal.chat.commands import ChatCommands
from kode_sidecar.terminal.chat.completion import PromptCompleter
from kode_sidecar.terminal.chat.conversation import Face
from kode_sidecar.terminal.chat.history import PromptHistory
from kode_sidecar.terminal.chat.input_line import InputLine
from kode_sidecar.terminal.chat.keyboard import Interrupts
from kode_sidecar.terminal.chat.markdown import MarkdownStream, rendered, wrapped
from kode_sidecar.terminal.chat.servers import ChatServers
from kode_sidecar.terminal.chat.signals import Signals
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.labels import Labels
from kode_sidecar.terminal.client.terminal import (
    OUTPUT_LINES,
    Terminal,
    allows_color,
    plan_lines,
    short_arguments,
)
from kode_sidecar.terminal.client.windows_console import understands_escapes

if sys.platform == "win32":
    from kode_sidecar.terminal.chat.windows_terminal import (
        ConsoleInput,
        PlainConsoleInput,
        PlainConsoleOutput,
    )

_FRAME_SECONDS = 1 / 25
_THOUGHT_ROWS = 4
_OUTPUT_CHARS = 8_000
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Scrollback(io.StringIO):
    """A file whose whole lines are printed above the input line, one batch per frame."""

    def __init__(self, line: InputLine) -> None:
        super().__init__()
        self._line = line
        self._text = ""
        self._last = ""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, text: str, /) -> int:
        """Take text, to be printed with the next frame."""
        self._text += text
        if not self._line.draws:
            self.print()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.print)
        return len(text)

    def print(self) -> None:
        """Print the whole lines now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        *lines, self._text = self._text.split("\n")
        shown: list[str] = []
        for line in lines:
            if line or self._last:  # one empty line is enough
                shown.append(line + "\n")
            self._last = line
        if shown:
            self._line.above("".join(shown))


@dataclass
class Waiting:
    """What the turn is doing now. Times are those of `time.monotonic`."""

    since: float = 0.0
    said: str = ""
    until: float | None = None
    tools: dict[str, str] = field(default_factory=dict[str, str])
    scouts: dict[str, str] = field(default_factory=dict[str, str])
    output: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    plan: list[str] = field(default_factory=list[str])


class Screen(Terminal):
    """A `Terminal` that draws and redraws."""

    def __init__(
        self,
        line: InputLine,
        labels: Labels,
        words: Words,
        *,
        color: bool,
    ) -> None:
        self._scrollback = Scrollback(line)
        super().__init__(self._scrollback, labels, color=color)
        self._line, self._words, self._hued = line, words, color
        self._markdown = MarkdownStream()
        self._thought = ""
        self._waiting: Waiting | None = None
        self._status: Status | None = None
        self.signals = Signals(line.write, words)
        self._frame: asyncio.TimerHandle | None = None
        self._drawn: tuple[str, int, str] = ("", 0, "")
        line.live = self._live
        line.echo = lambda text: self.line(text, "dim")
        line.print_rest = self._scrollback.print

    def event(self, session: ClientSession, event: Json) -> None:
        """Show an event that is already folded."""
        self._follow(session, event)
        if self._status is not None:
            self._status.event(session, event)
        super().event(session, event)
        self.signals.event(event)
        self._line.invalidate()

    def _as_typed(self, text: str) -> str:
        """Return a prompt with the words that stand for long pastes."""
        return self._line.pastes.contracted(text)

    def _plan(self, items: Sequence[Json]) -> None:
        """Do nothing: the plan is drawn live, and printed when the turn ends."""

    def growth(self, session: ClientSession, block_id: str, added: str) -> None:
        """Show a delta; the output of a command below its line."""
        block = session.blocks[block_id]
        if block["type"] != "tool_result":
            super().growth(session, block_id, added)
        elif self._waiting is not None:
            lines = block["grown"][-_OUTPUT_CHARS:].rstrip("\n").split("\n")
            self._waiting.output[block_id] = lines[-OUTPUT_LINES:]
            self._line.invalidate()

    def show_status(self, status: "Status") -> None:
        """Show the status on the bottom line from now on."""
        self._status = status
        self._line.status = status.line

    def _follow(self, session: ClientSession, event: Json) -> None:
        """Update what the turn is doing."""
        kind = event["type"]
        if kind == "turn.started":
            self._waiting = Waiting(time.monotonic())
        if (now := self._waiting) is None:
            return
        if kind == "turn.completed":
            for step in now.plan:
                self.line(step)
            self._waiting = None
        elif kind == "plan.updated":
            now.plan = plan_lines(event["items"])
        elif kind == "model.waiting":
            delay = event.get("retryInMs")
            now.said = one_line(event["message"])
            now.until = None if delay is None else time.monotonic() + delay / 1000
        elif kind == "block.started" and event["block"]["type"] == "tool_result":
            use = session.tool_use(event["block"]["toolUseId"])
            title = one_line(use.get("title", ""))
            name, values = use.get("name", "?"), short_arguments(use.get("input") or {})
            is_run = use.get("kind") == "run"
            now.tools[event["blockId"]] = title if is_run else f"{name} {values}".strip()
        elif kind == "block.completed":
            now.tools.pop(event["blockId"], None)
            now.output.pop(event["blockId"], None)
        elif kind == "scout.updated":
            now.scouts.pop(event["scoutId"], None)
            if event["state"] in ("running", "reporting"):
                calls = event.get("toolCalls", 0)
                now.scouts[event["scoutId"]] = f"{one_line(event['title'])} · {calls}"
        if kind not in ("model.waiting", "tool.progress", "scout.updated"):
            now.said, now.until = "", None

    def _stream(self, block: Json, added: str) -> None:
        block_id: str = block["id"]
        if block_id != self._streaming:
            self._print_rest()
        self._streaming = block_id
        self._shown[block_id] = self._shown.get(block_id, 0) + len(added)
        if block["type"] == "thinking":
            self._thought += added
        else:
            self._markdown.feed(added)
        if self._waiting is not None:
            self._waiting.said, self._waiting.until = "", None
        if self._frame is None:
            loop = asyncio.get_running_loop()
            self._frame = loop.call_later(_FRAME_SECONDS, self._print_whole_blocks)

    def _rest(self, block: Json) -> None:
        shown = self._shown.get(block["id"], 0)
        if shown > len(block["text"]):
            self.line(self._labels.whole_again, "yellow")
            self._markdown.rest, self._thought, shown = "", "", 0
        self._stream(block, block["text"][shown:])
        self._shown.pop(block["id"], None)
        self._print_rest()

    def _dropped(self, block_id: str) -> None:
        self._markdown.rest = self._thought = ""
        super()._dropped(block_id)

    def _end_stream(self) -> None:
        """Do nothing: streaming text is drawn below everything that is printed."""

    def _print_whole_blocks(self) -> None:
        self._frame = None
        while whole := self._markdown.take():
            self.markdown(whole)
        self._line.invalidate()

    def _print_rest(self) -> None:
        self._streaming = ""
        if self._frame is not None:
            self._frame.cancel()
        self._print_whole_blocks()
        if self._thought.strip():
            thought = wrapped(visible(self._thought.strip()), self._line.columns - 2)
            more = len(thought) - _THOUGHT_ROWS
            shown = thought[:_THOUGHT_ROWS] if more > 1 else thought
            if more > 1:
                shown = [*shown, self._words.more_lines.format(count=more)]
            for number, text in enumerate(shown):
                self.line(f"{'  ' if number else '✻ '}{text}", "dim")
            self.line()
        if self._markdown.rest.strip():
            self.markdown(self._markdown.rest)
        self._markdown.rest = self._thought = ""

    def markdown(self, text: str) -> None:
        """Print whole blocks of Markdown."""
        if text := rendered(text, self._line.columns, color=self._hued):
            self._scrollback.write(text + "\n\n")
            self._scrollback.print()  # at once, because it is no longer drawn live

    def _live(self, width: int, rows: int) -> str:
        """Return what is drawn above the input line."""
        lines: list[str] = []
        if self._thought:
            tail = wrapped(visible(self._thought[-2_000:].strip()), width - 2)
            lines += [f"{_DIM}  {text}{_PLAIN}" for text in tail[-_THOUGHT_ROWS:]]
        if self._markdown.rest.strip():
            lines += [*self._block(width).split("\n"), ""]
        now = self._waiting
        if now is None:
            return "\n".join(lines)
        spin = _SPINNER[int(time.monotonic() * 8) % len(_SPINNER)]
        for block_id, text in (*now.tools.items(), *now.scouts.items()):
            lines.append(clipped(f"{spin} {text}", width - 1))
            for said in now.output.get(block_id, ()):
                lines.append(f"{_DIM}{clipped(f'  {visible(said)}', width - 1)}{_PLAIN}")
        lines.append(f"{_DIM}{clipped(f'{spin} {self._state(now)}', width - 1)}{_PLAIN}")
        lines += [clipped(f"  {step}", width - 1) for step in now.plan]
        return "\n".join(lines[-rows:])

    def _state(self, now: Waiting) -> str:
        seconds = int(time.monotonic() - now.since)
        if now.until is not None:
            left = max(0, round(now.until - time.monotonic()))
            return f"{self._words.retrying.format(seconds=left)} · {now.said}"
        return now.said or f"{self._words.working} · {seconds} s"

    def _block(self, width: int) -> str:
        """Return the growing block, rendered once for each text and width."""
        text = self._markdown.rest
        if self._drawn[:2] != (text, width):
            self._drawn = (text, width, rendered(text, width, color=self._hued))
        return self._drawn[2]


@dataclass
class Status:
    """The bottom line: the options of the next turn, and what was used."""

    words: Words
    now: Callable[[str], str]
    context: str = ""
    cost: str = ""
    budget: str = ""

    def event(self, session: ClientSession, event: Json) -> None:
        """Update what the turn and the session have used."""
        if event["type"] == "usage.updated":
            self.count(session)
        elif event["type"] == "budget.updated":
            use = max(event["uses"], key=lambda one: one["spent"] / one["limit"])
            spent = f"{use['spent']:.2f}" if use["limit"] >= 1 else f"{use['spent']:.4f}"
            reported = {"scope": self.words.budget_scopes[use["scope"]], "spent": spent}
            limit = f"{use['limit']:g} {event['currency']}"
            self.budget = self.words.budget.format(**reported, limit=limit)

    def count(self, session: ClientSession) -> None:
        """Take the totals of a session."""
        cost = session.cost
        self.cost = f"{cost['amount']:.4f} {cost['currency']}" if cost else ""

    def measured(self, session: ClientSession, inspected: Json) -> None:
        """Take the totals of a session, and how large its next request is."""
        self.count(session)
        window = inspected.get("window")
        self.context = ""
        if window:
            percent = 100 * inspected["tokens"] / window
            self.context = self.words.context.format(percent=f"{percent:.0f}")

    def line(self, width: int) -> StyleAndTextTuples:
        """Return the parts of the line that fit."""
        parts = [self.now("model"), self.now("mode"), self.context, self.cost, self.budget]
        text = ""
        for part in filter(None, parts):
            more = f"{text} · {part}" if text else part
            if columns(more) >= width:
                break
            text = more
        return [("class:status", one_line(text))] if text else []


def drawn_face(root: Path, interrupts: Interrupts, words: Words, labels: Labels) -> Face:
    """Return a face for the terminal of this process."""
    color = allows_color(sys.stdout, os.environ)
    history = PromptHistory()
    models: list[str] = []
    completer = PromptCompleter(root, words, lambda: models)
    source, output = _console(sys.stdin, sys.stdout)
    escapes = sys.platform != "win32" or understands_escapes(sys.stdout)
    line = InputLine(
        interrupts,
        words,
        completer,
        history,
        source=source,
        output=output,
        color=color,
    )
    screen = Screen(line, labels, words, color=color)

    def opened(commands: ChatCommands, servers: ChatServers, folder: Path) -> None:
        history.folder = folder
        completer.servers = servers
        commands.offered = models
        screen.signals.how = str(commands.settings.get("signals")) if escapes else "none"
        completer.verbs = commands.verbs
        line.switch_mode = lambda: commands.mode("next")
        screen.show_status(status)
        status.now = commands.now

    status = Status(words, lambda _: "")
    return Face(line, screen, words, interrupts, opened, status.measured)


def _console(source: TextIO, out: TextIO) -> tuple[Input, Output]:
    """Return where the line is typed and drawn."""
    if sys.platform != "win32":
        return create_input(source), _terminal(out)
    if understands_escapes(out):
        return ConsoleInput(), create_output(out)
    return PlainConsoleInput(), PlainConsoleOutput(out)


def _terminal(out: TextIO) -> Output:
    """Return an output that never asks a terminal for its cursor, as some never answer."""

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(out.fileno())
        except OSError:  # hung up
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    return Vt100_Output(out, size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False)
