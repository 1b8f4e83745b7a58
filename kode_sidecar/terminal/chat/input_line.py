"""The input line at the foot of the terminal: editing, history, completion, live text above it.

prompt_toolkit draws it below what is printed. Enter answers a waiting question, begins a turn or
steers the running one; prompts for later wait in `queue`.
"""

import asyncio
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output
from prompt_toolkit.output.color_depth import ColorDepth

from kode_sidecar.core.text.shown_text import clipped, columns
from kode_sidecar.terminal.chat.foot import STYLE, Foot
from kode_sidecar.terminal.chat.keyboard import Interrupts
from kode_sidecar.terminal.chat.pastes import Pastes
from kode_sidecar.terminal.chat.users_editor import edit_text
from kode_sidecar.terminal.chat.words import Words

FRAME_SECONDS = 0.125
_MOST_REMEMBERED = 20_000
_OURS = ("/", "!")
"""What begins a line that is for this program, and not said to a running turn."""


@dataclass
class Asking:
    """A question that waits for a line. `draft` is what was being typed before it."""

    question: str
    answer: "asyncio.Future[str | None]"
    draft: Document
    is_prompt: bool


class InputLine:
    """Use it with `async with`. The newest question gets the line.

    `steer` takes texts for the running turn; None if no turn runs. `queue` is for later turns,
    `told` are the texts that the running turn has not read yet. `live` returns what is drawn above
    the line, `status` what below it, for a number of columns (and rows). `echo` gets each answer,
    as the line itself does not stay; `print_rest` prints what waits for its frame.
    """

    def __init__(
        self,
        interrupts: Interrupts,
        words: Words,
        completer: Completer,
        history: History,
        *,
        source: Input,
        output: Output,
        color: bool,
    ) -> None:
        self.interactive = True
        self.reads = False
        self.edits = True
        self.queue: list[str] = []
        self.reported: list[str] = []
        self.steer: Callable[[str], None] | None = None
        self.live: Callable[[int, int], str] = _no_text
        self.status: Callable[[int], StyleAndTextTuples] = _no_parts
        self.echo: Callable[[str], None] = _nothing
        self.print_rest: Callable[[], None] = _nothing
        self.switch_mode: Callable[[], None] = _nothing
        self.pastes = Pastes(words)
        self.interrupts = interrupts
        self.words = words
        self._asked: list[Asking] = []
        self._away: list[str] | None = None
        self._left = False
        self._task: asyncio.Task[None] | None = None
        self._editing: asyncio.Task[None] | None = None
        self.buffer = Buffer(
            multiline=True,
            completer=completer,
            # Text typed before any question becomes a prompt.
            complete_while_typing=Condition(lambda: not self._asked or self.prompting),
            history=history,
        )
        self._output = output
        self._app: Application[None] = Application(
            layout=Foot(
                self.buffer, self._live, self._queued, self._prefix, self._hint, self._bar
            ).layout,
            key_bindings=self._keys(),
            style=STYLE,
            erase_when_done=True,
            input=source,
            output=output,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
        )

    async def __aenter__(self) -> "InputLine":
        started = asyncio.Event()
        self._task = asyncio.create_task(self._run(started))
        await started.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None and self._app.is_running:
            self._app.exit()
            await asyncio.wait([self._task])
        self.print_rest()

    @property
    def prompting(self) -> bool:
        """True if the line is a prompt, not the answer to a question."""
        return bool(self._asked) and self._asked[-1].is_prompt

    @property
    def draws(self) -> bool:
        """True if the line is drawn, so that other output must go above it."""
        return self._app.is_running

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        return self._output.get_size().columns

    async def prompt(self) -> str | None:
        """Return the next prompt; None if the user leaves. Raises Interrupted, Leaving."""
        text = self.queue.pop(0) if self.queue else None
        if text is None and self._left:
            return None
        text = text or await self._ask(self.words.prompt, is_prompt=True)
        if text is not None and text.startswith(_OURS):
            self.echo(self.words.prompt + text)
        return text

    def give_back(self) -> None:
        """Take the prompts for later back into the line, before what is typed there."""
        texts = [*self.queue, self.buffer.text]
        self.queue.clear()
        text = "\n".join(filter(None, texts))
        self.buffer.document = Document(text, len(text))

    async def reply(self, question: str) -> str | None:
        """Return the answer to a question, on one line. Raises Interrupted and Leaving."""
        answer = await self._ask(question, is_prompt=False)
        if answer is not None:
            answer = " ".join(answer.split("\n"))
            self.echo(question + answer)
        return answer

    async def _ask(self, question: str, *, is_prompt: bool) -> str | None:
        if self._task is None or self._task.done():
            return None
        with self._asking(question, is_prompt=is_prompt) as asking:
            return await self.interrupts.unless(asking.answer)

    @contextmanager
    def _asking(self, question: str, *, is_prompt: bool) -> Generator[Asking, None, None]:
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        asking = Asking(question, answer, self.buffer.document, is_prompt)
        if not is_prompt:
            self.buffer.reset()  # text typed before a question is no answer to it
        self.print_rest()
        self._asked.append(asking)
        self.invalidate()
        try:
            yield asking
        finally:
            self._asked.remove(asking)
            if not is_prompt:
                self.buffer.reset(asking.draft)
            self.invalidate()

    def enter(self, *, later: bool = False) -> None:
        """Take the line as an answer, a prompt, a text for the running turn, or for later."""
        text = self.pastes.expanded(self.buffer.text)
        asking = self._asked[-1] if self._asked else None
        if not text.strip() and (asking is None or asking.is_prompt):
            return
        if (asking is None or asking.is_prompt) and len(text) < _MOST_REMEMBERED:
            self.buffer.history.append_string(text)
        self.buffer.reset()
        if asking is not None and not asking.answer.done():
            asking.answer.set_result(text)
        elif self.steer is not None and not later and not text.startswith(_OURS):
            self.steer(text)
        else:
            self.queue.append(text)
        self.invalidate()

    def leave(self) -> None:
        """End the input: the waiting question gets no line, or else the next prompt.

        While a turn runs the key does nothing.
        """
        if self._asked and not self._asked[-1].answer.done():
            self._asked[-1].answer.set_result(None)
        elif self.steer is None:
            self._left = True

    def above(self, text: str) -> None:
        """Print whole lines above the input line; they then belong to the terminal."""
        if self._away is not None:
            self._away.append(text)
            return
        if self._app.is_running:
            self._app.renderer.erase()
        self._output.write_raw(text.replace("\n", "\r\n"))
        self._output.flush()
        self.invalidate()

    def write(self, escapes: str) -> None:
        """Send the terminal what it does not draw."""
        self._output.write_raw(escapes)
        self._output.flush()

    def invalidate(self) -> None:
        """Redraw soon."""
        if self._away is None:
            self._app.invalidate()

    async def edit(self, text: str, suffix: str) -> str | None:
        """Return a text after editing in the user's editor; None if that failed."""
        self._away = []
        try:
            edited = await edit_text(text, suffix, os.environ)
        finally:
            held, self._away = self._away, None
            self.above("".join(held))
        if edited is None:
            self.above(f"{self.words.no_editor}\n")
        return edited

    async def _edit_line(self) -> None:
        edited = await self.edit(self.pastes.expanded(self.buffer.text), ".md")
        if edited is not None:
            self.buffer.document = Document(edited)

    async def _run(self, started: asyncio.Event) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            with suppress(EOFError):  # hung up
                await self._app.run_async(pre_run=started.set, handle_sigint=False)
        finally:
            ticking.cancel()
            started.set()
            for asking in self._asked:
                if not asking.answer.done():
                    asking.answer.set_result(None)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(FRAME_SECONDS)
            if self.steer is not None:
                self.invalidate()

    def _live(self) -> ANSI | None:
        size = self._output.get_size()
        text = self.live(size.columns, size.rows)
        return ANSI("\n".join(text.split("\n")[-max(1, size.rows - 6) :])) if text else None

    def _bar(self) -> StyleAndTextTuples:
        return self.status(self.columns)

    def _queued(self) -> StyleAndTextTuples:
        named = [(self.words.reported, self.reported), (self.words.queued, self.queue)]
        lines = [f"{name}{' '.join(text.split())}" for name, texts in named for text in texts]
        shown = "\n".join(clipped(line, self.columns - 1) for line in lines)
        return [("class:queue", shown)] if shown else []

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        question = self._asked[-1].question if self._asked else self.words.prompt
        first = line == 0 and wrapped == 0
        return [("class:prompt", question if first else " " * min(columns(question), 6))]

    def _hint(self) -> str:
        if self._asked and not self._asked[-1].is_prompt:
            return ""
        hint = self.words.hint if self.steer is None else self.words.hint_running
        return clipped(hint, self.columns - columns(self.words.prompt) - 1)

    def _keys(self) -> KeyBindings:
        """Return the key bindings beyond readline's, which prompt_toolkit has."""
        empty = Condition(lambda: not self.buffer.text)
        chosen = Condition(self._has_chosen)
        queued = Condition(lambda: bool(self.queue))
        table: Sequence[tuple[Sequence[str], FilterOrBool, Callable[[], object]]] = (
            (("enter",), ~chosen, self._on_enter),
            (("enter",), chosen, self._on_chosen),
            (("escape", "enter"), True, self._newline),
            (("c-j",), True, self._newline),
            (("tab",), Condition(self._queues_line), lambda: self.enter(later=True)),
            (("up",), empty & queued, lambda: self.buffer.insert_text(self.queue.pop())),
            (("c-c",), True, self._on_ctrl_c),
            (("c-d",), empty, self.leave),
            (("c-l",), True, lambda: self._app.renderer.clear()),
            (("c-g",), True, self._on_edit),
            (("c-x", "c-e"), True, self._on_edit),
            (("s-tab",), ~Condition(self._has_menu), lambda: self.switch_mode()),
            (("c-o",), True, lambda: self._command("/output")),
        )
        keys = KeyBindings()
        for names, when, action in table:
            keys.add(*names, filter=when)(_without_event(action))

        def paste(event: KeyPressEvent) -> None:
            self.buffer.insert_text(self.pastes.taken(event.data))

        keys.add(Keys.BracketedPaste)(paste)
        return keys

    def _has_menu(self) -> bool:
        return self.buffer.complete_state is not None

    def _has_chosen(self) -> bool:
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None

    def _queues_line(self) -> bool:
        """Return whether Tab queues the line for later, as there is nothing to complete."""
        text = self.buffer.document.text_before_cursor
        named = text.startswith("/") or text.rpartition(" ")[2].startswith("@")
        return self.steer is not None and bool(text.strip()) and not named

    def _on_chosen(self) -> None:
        self.buffer.complete_state = None

    def _newline(self) -> None:
        self.buffer.newline(copy_margin=False)

    def _on_enter(self) -> None:
        document = self.buffer.document
        if document.text_before_cursor.endswith("\\") and not document.text_after_cursor:
            self.buffer.delete_before_cursor()
            self._newline()
        else:
            self.enter()

    def _on_ctrl_c(self) -> None:
        if self.buffer.text and self.prompting:
            self.buffer.reset()
        else:
            self.interrupts.arrived()

    def _command(self, text: str) -> None:
        """Give a command at once, or after the running turn; what is being typed stays."""
        if self.prompting and not self._asked[-1].answer.done():
            self._asked[-1].answer.set_result(text)
        else:
            self.queue.append(text)

    def _on_edit(self) -> None:
        self._editing = asyncio.create_task(self._edit_line())


def _without_event(action: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
    def handle(event: KeyPressEvent) -> None:
        del event
        action()

    return handle


def _no_text(*_: int) -> str:
    return ""


def _no_parts(*_: int) -> StyleAndTextTuples:
    return []


def _nothing(*_: object) -> None:
    """Do nothing."""
