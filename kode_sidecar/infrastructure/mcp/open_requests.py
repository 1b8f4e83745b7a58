"""The requests to a server that have no answer yet: each gets one, or an error, and at once.

Progress prolongs the time of a request: a server that works is not a server that is silent.
"""

import asyncio
from dataclasses import dataclass

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import Json, Progress

_MOST_PROLONGED = 30
"""How many times its own time a request may take at most, whatever progress is reported."""


@dataclass
class OpenRequest:
    """A request without its answer. `seconds` is its time, None for a subscription."""

    number: int
    answer: asyncio.Future[Json]
    seconds: float | None
    progress: Progress | None
    limit: asyncio.Timeout
    latest: float = 0.0

    def prolong(self) -> None:
        """Give it its whole time again; a flood of notes moves the limit a few times only."""
        when = self.limit.when()
        if self.seconds is None or when is None or self.limit.expired():
            return
        now = asyncio.get_running_loop().time()
        wanted = min(now + self.seconds, self.latest)
        if wanted - when > self.seconds / 20:
            self.limit.reschedule(wanted)


class OpenRequests:
    """All requests of one conversation, by their numbers."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, OpenRequest] = {}

    def begin(self, seconds: float | None, progress: Progress | None) -> OpenRequest:
        """Return a new request; `drop` it at its end."""
        self._last += 1
        loop = asyncio.get_running_loop()
        latest = loop.time() + _MOST_PROLONGED * (seconds or 0.0)
        future: asyncio.Future[Json] = loop.create_future()
        limit = asyncio.timeout(seconds)
        one = OpenRequest(self._last, future, seconds, progress, limit, latest)
        self._open[one.number] = one
        return one

    def drop(self, number: int) -> None:
        """Forget a request that has ended."""
        self._open.pop(number, None)

    def get(self, number: int | None) -> OpenRequest | None:
        """Return the request of that number if it waits for its answer."""
        one = self._open.get(number) if number is not None else None
        return one if one is not None and not one.answer.done() else None

    def only(self) -> list[int]:
        """Return the number of the only request, empty if there are several."""
        return list(self._open) if len(self._open) == 1 else []

    def answer(self, number: int | None, message: Json) -> None:
        """Pass the answer to a request, if it still waits."""
        if one := self.get(number):
            one.answer.set_result(message)

    def fail(self, number: int, error: KodeError) -> None:
        """Fail a request that will get no answer."""
        if one := self.get(number):
            one.answer.set_exception(error)
            one.answer.exception()  # avoids a warning if nobody waits any more

    def fail_all(self, error: KodeError) -> None:
        """Fail all requests."""
        for number in tuple(self._open):
            self.fail(number, error)

    async def finished(self) -> None:
        """Wait until every request with a limit has its answer."""
        while waiting := [
            one.answer
            for one in self._open.values()
            if one.seconds is not None and not one.answer.done()
        ]:
            await asyncio.wait(waiting)
