"""`!command`: runs it in the user's own shell, shows it, and notes its output for the model."""

import locale
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import fence_of, plain_lines
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal

_LIMITS = CommandLimits(seconds=86_400.0)
_NOTE_CHARS = 30_000
_HEAD_CHARS = 8_000


def own_command(prompt: str) -> str:
    """Return the command of a prompt `!command`; empty if it is none, such as a Markdown image."""
    text = prompt.strip()
    return text[1:].strip() if text.startswith("!") and text[1:2] not in ("!", "[", "=") else ""


@dataclass
class OwnCommands:
    """Runs the user's commands in the folder `root`; the next prompt takes what they printed."""

    terminal: Terminal
    words: Words
    root: Path = field(default_factory=Path)
    _notes: list[str] = field(default_factory=list[str])
    _lines: list[str] = field(default_factory=list[str])
    _rest: bytes = b""

    async def run(self, command: str) -> None:
        """Run a command to its end; whoever cancels this ends it, with all that it has started."""
        self._lines.clear()
        self._rest, ended = b"", self.words.own_stopped
        try:
            end = await run_program(self._program(command), self._take)
            if end.exit_code is not None:
                ended = self.words.own_ended.format(code=end.exit_code)
        except KodeError as error:
            ended = error.message
        finally:
            self._take(b"\n" if self._rest else b"")
            self.terminal.line(f"! {ended}", "dim")
            self._notes.append(self._note(command, ended))

    def notes(self) -> list[Json]:
        """Return what ran since the last prompt, as blocks of the next one."""
        notes, self._notes = self._notes, []
        return [{"type": "text", "text": note} for note in notes]

    def _program(self, command: str) -> ProgramRun:
        windows = sys.platform == "win32"
        shell = os.environ.get("COMSPEC", "cmd.exe") if windows else "/bin/sh"
        arguments = ["/d", "/c", command] if windows else ["-c", command]
        return ProgramRun(Path(shell), arguments, self.root, os.environ, _LIMITS)

    def _take(self, output: bytes) -> None:
        """Show the whole lines of what has come."""
        *lines, self._rest = (self._rest + output).split(b"\n")
        for line in lines:
            text = plain_lines(_decoded(line))
            self._lines.append(text)
            self.terminal.line(f"  {text}", "dim")

    def _note(self, command: str, ended: str) -> str:
        text = "\n".join(self._lines)
        head = self.words.own_note.format(command=command, ended=ended)
        if secret := find_secret(text):
            warning = self.words.own_secret.format(what=secret)
            self.terminal.line(f"⚠ {warning}", "yellow")
            return f"{head} {warning}"
        left_out = len(text) - _NOTE_CHARS
        if left_out > 0:
            text = f"{text[:_HEAD_CHARS]}\n[… {left_out:,} …]\n{text[_HEAD_CHARS - _NOTE_CHARS :]}"
        fence = fence_of(text)
        return f"{head}\n{fence}\n{text}\n{fence}"


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(locale.getencoding(), "replace")
