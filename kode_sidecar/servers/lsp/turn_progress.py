"""Shows turns and scouts as work-done progress (LSP 3.17 "Work Done Progress")."""

import asyncio
from typing import Any

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    Event,
    ModelWaiting,
    ScoutUpdated,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.core.domain.message import ToolResultBlock
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.connection import Connection

TITLE = "kode"
MAX_MESSAGE_CHARS = 120


class TurnProgress:
    """Shows one progress for each turn and each scout, to clients that support it.

    The token is the id of the turn or scout. The client is asked to create it; the progress begins
    once the client has agreed, and ends before the event that reports the end (O2). If the turn has
    ended before the client agreed, begin and end are both sent: a client keeps a token until its
    end.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._begun: dict[str, bool] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def follow(self, event: Event) -> None:
        """Update the progress that an event belongs to."""
        if isinstance(event, TurnStarted):
            self._open(event.turn_id, TITLE, cancellable=True)
        elif isinstance(event, TurnCompleted):
            self._end(event.turn_id)
        elif isinstance(event, ScoutUpdated):
            self._follow_scout(event)
        elif isinstance(event, BlockCompleted) and isinstance(event.block, ToolResultBlock):
            self._report(event.turn_id, event.block.summary)
        elif isinstance(event, ModelWaiting):
            self._report(event.turn_id, event.message)

    def _follow_scout(self, event: ScoutUpdated) -> None:
        if event.state not in ("running", "reporting"):
            self._end(event.scout_id)
        elif event.scout_id in self._begun:
            seconds = event.elapsed_ms // 1000
            self._report(event.scout_id, f"{event.tool_calls} calls, {seconds} s")
        else:
            title = cut_line(without_controls(event.title), MAX_MESSAGE_CHARS)
            # A scout is cancelled with its turn only.
            self._open(event.scout_id, f"{TITLE}: {title}", cancellable=False)

    def _open(self, token: str, title: str, *, cancellable: bool) -> None:
        self._begun[token] = False
        begin = {"kind": "begin", "title": title, "cancellable": cancellable}
        task = asyncio.create_task(self._begin(token, begin))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _begin(self, token: str, begin: dict[str, Any]) -> None:
        if token not in self._begun:
            return  # it ended before the client was asked
        try:
            await self._connection.request("window/workDoneProgress/create", {"token": token}, Any)
        except KodeError:
            return  # it stays in `_begun` as False, so that the client is not asked again
        self._notify(token, begin)
        if token in self._begun:
            self._begun[token] = True
        else:
            self._notify(token, {"kind": "end"})

    def _report(self, token: str, text: str) -> None:
        if self._begun.get(token, False):
            message = cut_line(without_controls(text), MAX_MESSAGE_CHARS)
            self._notify(token, {"kind": "report", "message": message})

    def _end(self, token: str) -> None:
        if self._begun.pop(token, False):
            self._notify(token, {"kind": "end"})

    def _notify(self, token: str, value: dict[str, Any]) -> None:
        self._connection.notify("$/progress", {"token": token, "value": value})
