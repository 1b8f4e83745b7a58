"""The editor of the whole world: it hears the stream, and its user is asked questions."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.protocol.questions import AskParams, AskResult
from simulation.edit_desk import Desk


@dataclass
class UserDesk(Desk):
    """`asked` are the questions that wait for the user."""

    hears: Callable[["UserDesk", Sequence[Event]], None] = field(kw_only=True)
    hears_delta: Callable[["UserDesk", Any], None] = field(kw_only=True)
    asked: list["asyncio.Future[AskResult]"] = field(
        default_factory=list["asyncio.Future[AskResult]"]
    )

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """See `EditorPort`."""
        self.hears(self, events)

    def publish_delta(self, delta: BlockDelta) -> None:
        """See `EditorPort`."""
        self.hears_delta(self, delta)

    async def ask_choice(self, question: AskParams) -> AskResult:
        """It waits for a step of the story."""
        answer: asyncio.Future[AskResult] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        try:
            return await answer
        finally:
            self.asked.remove(answer)

    def reply(self, choice: str) -> None:
        """The user chooses, where something is asked."""
        waiting = next((one for one in self.asked if not one.done()), None)
        if waiting is not None:
            waiting.set_result(AskResult((choice,)))
