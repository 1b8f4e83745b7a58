"""The output of a command as text: as it grows for the user, and at its end for the model."""

import codecs
import hashlib
import locale
import re
from collections.abc import Callable

from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import ESCAPE_SEQUENCES, plain_lines, without_controls
from kode_sidecar.core.timer_context import TimerContext
from kode_sidecar.infrastructure.commands.command import CommandEnd, CommandLimits

EVERY_SECONDS = 0.1
SELDOM_SECONDS = 1.0
_OFTEN_CHARS = 256 * 1024
_MOST_AT_ONCE = 4_000
MAX_SHOWN_CHARS = 30_000
_HEAD_CHARS = 8_000
_UNENDED = re.compile(r"(?:\r|\x1b[^\x07]{0,64})\Z")


class LiveOutput(TimerContext):
    """Shows the output of a running command as it grows; leaving the `with` block stops it.

    `grow` gets each piece of text once. Of a flood it gets the newest part, with a line that says
    how much is left out: the whole of it is stored when the command ends. A line that overwrites
    itself, as progress bars do, is shown when it ends.
    """

    def __init__(self, grow: Callable[[str], None]) -> None:
        self._grow = grow
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._waiting = ""
        self._in_line = False
        self._shown = 0

    def __call__(self, output: bytes) -> None:
        """Take the next piece of output."""
        self._waiting += self._decode(output)
        if self._timer is None and output:
            often = self._shown < _OFTEN_CHARS
            self._call_later(EVERY_SECONDS if often else SELDOM_SECONDS, self._show)

    def _show(self) -> None:
        self._timer = None
        text, self._waiting = self._take()
        left_out = len(text) - _MOST_AT_ONCE
        if left_out > 0:
            text = f"\n[{left_out:,} characters left out here]\n{text[left_out:]}"
        text = without_controls(text)
        if text:
            self._shown += len(text)
            self._in_line = not text.endswith("\n")
            self._grow(text)

    def _take(self) -> tuple[str, str]:
        """Return what can be shown by now, and what must wait for the rest of its line."""
        ended, newline, rest = self._waiting.replace("\r\n", "\n").rpartition("\n")
        if "\r" in rest or _UNENDED.search(rest):
            shown, rest = "", rest  # it may be overwritten
        else:
            shown, rest = rest, ""
        lines = ESCAPE_SEQUENCES.sub("", ended).split("\n")
        if self._in_line and "\r" in lines[0]:
            lines.insert(0, "")  # the beginning is shown already
        text = "\n".join(line.rpartition("\r")[2] for line in lines) + newline
        return text + ESCAPE_SEQUENCES.sub("", shown), rest


def how_it_ended(end: CommandEnd, limits: CommandLimits) -> str:
    """Return how a command ended, to follow its name."""
    match end.ended:
        case "timed_out":
            return f"was ended after {limits.seconds:g} s"
        case "too_much_output":
            return f"was ended after {limits.output_bytes:,} bytes of output"
        case "exited":
            code = end.exit_code or 0
            return f"was ended by signal {-code}" if code < 0 else f"exited with {code}"


def shown_output(output: bytes, kept: str = "", before: bytes = b"") -> str:
    """Return what the model reads of an output: text with LF line ends, or why it is not shown.

    `kept` is where the user has all of it, `before` what came just before it: a secret may have
    begun there.
    """
    whole = f"; all {len(output):,} bytes are kept for the user as {kept}" if kept else ""
    if b"\0" in output:
        sha = hashlib.sha256(output).hexdigest()
        return f"[binary output, SHA-256 {sha}{whole}]"
    text = _text(output)
    secret = find_secret(f"{_text(before)}{text}" if before else text)
    if secret:
        return f"[the output is not shown: it holds {secret}{whole}]"
    left_out = len(text) - MAX_SHOWN_CHARS
    if left_out <= 0:
        return text
    middle = f"\n[{left_out:,} characters cut here{whole}]\n"
    return text[:_HEAD_CHARS] + middle + text[_HEAD_CHARS - MAX_SHOWN_CHARS :]


def _text(output: bytes) -> str:
    for encoding in ("utf-8", locale.getencoding()):
        try:
            # Not final: the end may be missing because the program was killed.
            text = codecs.getincrementaldecoder(encoding)().decode(output)
        except (UnicodeDecodeError, LookupError):
            continue
        return plain_lines(text)
    return plain_lines(output.decode("utf-8", "backslashreplace"))
