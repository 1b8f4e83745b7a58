"""The loop of a recorded process lets in what comes from threads in its order (E6)."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from kode_sidecar.devtools.recording.recording_loop import RecordingLoop


class _ByHand(Executor):
    """Returns when the test says so."""

    def __init__(self) -> None:
        self.calls: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        del fn, args, kwargs
        self.calls.append(Future())
        return self.calls[-1]


def test_a_result_that_came_before_a_frame_is_noted_before_it() -> None:
    order: list[str] = []
    loop = RecordingLoop(lambda _: None, lambda name, number: order.append(f"{name} {number}"))
    threads = _ByHand()

    def save() -> None:
        """Named in the recording."""

    async def wait(number: int) -> None:
        await loop.run_in_executor(threads, save)
        order.append(f"after {number}")

    async def both() -> None:
        waiting = [asyncio.create_task(wait(number)) for number in (1, 2)]
        await asyncio.sleep(0)
        threads.calls[0].set_result(None)
        loop.call_soon_threadsafe(order.append, "frame")
        threads.calls[1].set_result(None)
        await asyncio.wait(waiting)

    try:
        loop.run_until_complete(both())
    finally:
        loop.close()
    saved = [name.rpartition(".")[2] for name in order]
    assert saved == ["save 1", "frame", "save 2", "after 1", "after 2"]


def test_a_cancel_that_meets_an_answer_half_way_takes_its_own_place() -> None:
    # As in playback, where an answer that was not noted has not come.
    order: list[str] = []
    loop = RecordingLoop(lambda _: None, lambda _name, _number: None)

    async def wait(name: str, coming: asyncio.Future[None]) -> None:
        try:
            await loop.enter(coming, lambda _: order.append(f"{name} noted"))
            order.append(f"{name} came")
        except asyncio.CancelledError:
            order.append(f"{name} cancelled")

    async def both() -> None:
        answers: list[asyncio.Future[None]] = [loop.create_future() for _ in range(2)]
        waiting = [
            asyncio.create_task(wait(name, answer))
            for name, answer in zip(("one", "other"), answers, strict=True)
        ]
        await asyncio.sleep(0)
        answers[0].set_result(None)
        await asyncio.sleep(0)
        loop.call_soon(answers[1].set_result, None)  # comes in the round in which the first enters
        loop.call_soon_threadsafe(waiting[1].cancel)
        await asyncio.wait(waiting)

    try:
        loop.run_until_complete(both())
    finally:
        loop.close()
    assert order == ["one noted", "one came", "other cancelled"]
