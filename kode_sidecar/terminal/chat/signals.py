"""Signals to the terminal: its bell, a notification (OSC 9), what the program does (OSC 7501).

OSC 7501 is the program status protocol, revision 0.2 (superlogical.com, 2026-10-06).
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass

from kode_sidecar.core.text.shown_text import clipped, one_line
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.fold import Json

_BELL, _END = "\x07", "\x1b\\"
_MOST_COLUMNS = 200
_STATES = {"done": "done", "failed": "error", "blocked": "blocked"}
_KINDS = {"permission.requested": ":kind=permission", "ask.requested": ":kind=question"}


@dataclass
class Signals:
    """Sends a signal when the user is wanted; `how` is the setting `signals`."""

    write: Callable[[str], None]
    words: Words
    how: str = "none"

    def event(self, event: Json) -> None:
        """Send what an event means to somebody who looks elsewhere."""
        kind, attention = event["type"], event.get("attention")
        if attention is not None:
            said = event.get("title") or event.get("question") or ""
            said = event["error"]["message"] if attention == "failed" else said
            said = clipped(one_line(said or self.words.signals[attention]), _MOST_COLUMNS)
            self._status(f"{_STATES[attention]}{_KINDS.get(kind, '')}", said)
            if self.how != "none":
                self.write((f"\x1b]9;kode: {said}{_END}" if self.how == "all" else "") + _BELL)
        elif kind == "turn.started" or kind.endswith(".resolved"):
            self._status("working")
        elif kind == "turn.completed":
            self._status("idle")

    def _status(self, state: str, said: str = "") -> None:
        if self.how == "all":
            text = f":msg={base64.b64encode(said.encode()).decode()}" if said else ""
            self.write(f"\x1b]7501;state={state}:app=kode{text}{_END}")
