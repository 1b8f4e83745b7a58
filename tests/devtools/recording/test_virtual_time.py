"""On the virtual-time loop timers jump, threads run inline, and a deadlock names who waits."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.devtools.recording.virtual_time import Deadlock, VirtualTimeLoop, call_name

T = TypeVar("T")
YEAR = 365 * 24 * 3600.0


def run(main: Coroutine[Any, Any, T], loop: type[VirtualTimeLoop] = VirtualTimeLoop) -> T:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)


def test_a_year_passes_at_once() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(YEAR):
                await asyncio.Event().wait()
        middle = loop.time()
        await asyncio.sleep(0.5)
        return middle - before, loop.time() - middle

    started = time.monotonic()
    assert run(main()) == (YEAR, 0.5)
    assert time.monotonic() - started < YEAR


@given(st.lists(st.integers(0, 20), max_size=12))
def test_timers_ring_in_the_order_of_their_times(delays: list[int]) -> None:
    """Those of one time in the order in which they were set."""

    async def main() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        rung: list[tuple[float, int]] = []
        for number, delay in enumerate(delays):
            loop.call_later(delay, lambda n=number: rung.append((loop.time(), n)))
        await asyncio.sleep(21)
        return rung

    assert run(main()) == sorted((float(delay), number) for number, delay in enumerate(delays))


def test_a_timer_that_was_taken_back_does_not_ring() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        rung: list[str] = []
        second = loop.call_later(2, rung.append, "second")

        def first() -> None:
            rung.append("first")
            second.cancel()

        loop.call_later(2, first)
        loop.call_later(1, loop.call_later, 0.5, first)
        await asyncio.sleep(9)
        return rung

    assert run(main()) == ["first", "first"]


def test_the_clock_stands_while_something_is_left_to_do() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: None)
        for _ in range(100):
            await asyncio.sleep(0)
        return loop.time()

    assert run(main()) == 0.0


def test_threads_run_inline() -> None:
    async def main() -> tuple[list[int], list[int]]:
        order: list[int] = []
        threads: list[int] = []

        def work(number: int) -> int:
            order.append(number)
            threads.append(threading.get_ident())
            return number

        done = await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(5)))
        assert order == list(range(5))
        assert set(threads) == {threading.get_ident()}
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return order, done

    order, done = run(main())
    assert order == done


class Holding(VirtualTimeLoop):
    """Hands over what a thread did only when nothing else is left, the last call first."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[str, Callable[[], None]]] = []

    def finished(self, name: str, deliver: Callable[[], None]) -> None:
        self.held.append((name, deliver))

    def before_round(self, *, idle: bool) -> bool:
        if not idle or not self.held:
            return super().before_round(idle=idle)
        self.held.pop()[1]()
        return True


def test_a_subclass_says_when_a_call_is_over() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        def hello(name: str) -> str:
            return name

        async def call(name: str) -> None:
            seen.append(await asyncio.to_thread(hello, name))

        async with asyncio.TaskGroup() as calls:
            tasks = [calls.create_task(call(name)) for name in "abc"]
            await asyncio.sleep(0)
            tasks[1].cancel()  # a call that was given up is delivered to nobody
        return seen

    assert run(main(), Holding) == ["c", "a"]


def test_a_program_really_runs_and_is_waited_for() -> None:
    async def main() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: None)
        script = "import time; time.sleep(0.3); print('hello')"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        return said.strip(), loop.time()

    assert run(main()) == (b"hello", 0.0)
    assert run(main(), Holding) == (b"hello", 0.0)


def test_a_deadlock_names_who_waits() -> None:
    async def never(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        event = asyncio.Event()
        first = asyncio.create_task(never(event), name="the first")
        asyncio.create_task(never(event), name="the second")  # noqa: RUF006
        await first

    with pytest.raises(Deadlock) as caught:
        run(main())
    text = str(caught.value)
    assert "the first waits in Event.wait" in text
    assert "the second waits in Event.wait" in text
    assert text.count(" waits ") == 3


def test_a_call_has_the_name_of_its_function() -> None:
    def hello(*_: int) -> None: ...

    assert call_name(partial(partial(hello, 1), 2)).endswith("hello")
    assert call_name(print) == "print"
