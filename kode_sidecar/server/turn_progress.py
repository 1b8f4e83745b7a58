"""Turns as work-done progress (LSP 3.17 "Work Done Progress"), for clients that show it."""

import asyncio
from typing import Any

from kode_sidecar.domain.agent_event import (
    BlockCompleted,
    Event,
    ModelWaiting,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.domain.message import ToolResultBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.server.connection import Connection
from kode_sidecar.workspace.shown_text import cut_line, without_controls

TITLE = "kode"
MAX_MESSAGE_CHARS = 120


class TurnProgress:
    """One progress for each turn; its token is the turn's id.

    The client is asked for it first, and it begins when the client has agreed; its end comes
    before `turn.completed` (O2). Where the turn is over by then it ends as it begins: a client
    keeps a token that it agreed to until it hears the end of it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._begun: dict[str, bool] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def follow(self, event: Event) -> None:
        """Say what an event means for the progress of its turn."""
        if isinstance(event, TurnStarted):
            self._begun[event.turn_id] = False
            task = asyncio.create_task(self._begin(event.turn_id))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif isinstance(event, TurnCompleted):
            if self._begun.pop(event.turn_id, False):
                self._tell(event.turn_id, {"kind": "end"})
        elif not self._begun.get(event.turn_id, False):
            return
        elif isinstance(event, BlockCompleted) and isinstance(event.block, ToolResultBlock):
            self._report(event.turn_id, event.block.summary)
        elif isinstance(event, ModelWaiting):
            self._report(event.turn_id, event.message)

    async def _begin(self, turn_id: str) -> None:
        if turn_id not in self._begun:
            return  # over before anybody was asked
        try:
            await self._connection.request(
                "window/workDoneProgress/create", {"token": turn_id}, Any
            )
        except KodeError:
            self._begun.pop(turn_id, None)
            return
        self._tell(turn_id, {"kind": "begin", "title": TITLE, "cancellable": True})
        if turn_id in self._begun:
            self._begun[turn_id] = True
        else:
            self._tell(turn_id, {"kind": "end"})

    def _report(self, turn_id: str, text: str) -> None:
        message = cut_line(without_controls(text), MAX_MESSAGE_CHARS)
        self._tell(turn_id, {"kind": "report", "message": message})

    def _tell(self, turn_id: str, value: dict[str, Any]) -> None:
        self._connection.notify("$/progress", {"token": turn_id, "value": value})
