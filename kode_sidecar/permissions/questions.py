"""Questions that wait for the user: for how long, and once more for a client that comes back."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kode_sidecar.event_log.editor_port import ChoiceQuestion, PermissionQuestion

T = TypeVar("T")


class UserQuestions:
    """The open questions of all sessions. One stays open for `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._again: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def put(
        self,
        question: PermissionQuestion | ChoiceQuestion,
        ask: Callable[[], Coroutine[Any, Any, T]],
    ) -> T | None:
        """What `ask` returns; None if that took too long. Cancelling it takes the question back.

        The time counts from the first asking. Raises what `ask` raises.
        """
        try:
            async with asyncio.timeout(self.timeout):
                return await self._answer(question, ask)
        except TimeoutError:
            return None
        finally:
            self._again.pop(question.request_id, None)

    def repeater(self, session_id: str) -> Callable[[], None]:
        """What takes those of a session that are open now back, and asks them again."""
        of_session = [again for of, again in self._again.values() if of == session_id]

        def repeat() -> None:
            for again in of_session:
                if not again.done():
                    again.set_result(None)

        return repeat

    async def _answer(
        self,
        question: PermissionQuestion | ChoiceQuestion,
        ask: Callable[[], Coroutine[Any, Any, T]],
    ) -> T:
        while True:
            again: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._again[question.request_id] = question.session_id, again
            asking = asyncio.create_task(ask())
            try:
                await asyncio.wait((asking, again), return_when=asyncio.FIRST_COMPLETED)
            finally:
                asking.cancel()
                await asyncio.wait((asking,))
            if not asking.cancelled():
                return asking.result()
