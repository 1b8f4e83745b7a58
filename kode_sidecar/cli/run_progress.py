"""What a run does, shown to somebody at a terminal."""

from typing import TextIO

from kode_sidecar.domain.agent_event import BlockDelta
from kode_sidecar.domain.run import RunEvent
from kode_sidecar.text.shown_text import without_controls

_SHOWN = ("step.started", "skill.enabled", "workspace.imported", "deliverable.checked")
_MARKS = {
    "tool.completed": "+",
    "tool.failed": "!",
    "tool.refused": "x",
    "path.refused": "x",
    "error.recorded": "!",
}


class Progress:
    """Takes the events of a run. Without `shown` it says nothing."""

    def __init__(self, screen: TextIO, *, shown: bool) -> None:
        self._screen = screen
        self._shown = shown
        self._in_text = False

    def __call__(self, event: RunEvent | BlockDelta) -> None:
        """Show an event, or text that grows; `headless_run.contracts.Watch`."""
        if not self._shown:
            return
        if isinstance(event, BlockDelta):
            self._in_text = True
            self._screen.write(without_controls(event.add))
        elif event.type in _SHOWN or event.type in _MARKS:
            mark = _MARKS.get(event.type, "-")
            start = "\n" if self._in_text else ""
            self._in_text = False
            self._screen.write(f"{start}{mark} {event.summary}\n")
        self._screen.flush()
