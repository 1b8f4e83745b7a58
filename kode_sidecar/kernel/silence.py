"""Tells the user that the model is still at work while nothing comes from it."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from kode_sidecar.domain.agent_event import ModelWaiting
from kode_sidecar.kernel.contracts import Emit


class SilenceWatch:
    """Emits `ModelWaiting` once the model has been silent for `every` seconds, and so on.

    Use with `with`. Time counts only between `listen` and `heard`: a slow reader of the answer is
    not the model's silence. `now` counts seconds.
    """

    def __init__(self, turn_id: str, every: float, now: Callable[[], float], emit: Emit) -> None:
        self._turn_id = turn_id
        self._every = every
        self._now = now
        self._emit = emit
        self._since: float | None = None
        self._told_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "SilenceWatch":
        self._look_in(self._every)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def listen(self) -> None:
        """The model is to speak now."""
        self._since = self._told_at = self._now()

    def heard(self) -> None:
        """It did, or somebody else did for it."""
        self._since = None

    def _look_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        if self._since is None:
            self._look_in(self._every)
            return
        now = self._now()
        left = self._told_at + self._every - now
        if left <= 0:
            self._told_at, left = now, self._every
            self._tell(now - self._since)
        self._look_in(left)

    def _tell(self, seconds: float) -> None:
        self._emit(
            ModelWaiting(
                turn_id=self._turn_id,
                state="silent",
                message=f"The model has said nothing for {seconds:.0f} s; it may be thinking.",
                silent_ms=round(seconds * 1000),
            )
        )
