"""`dev.py soak`: many sessions over the real process, a slow reader, a flaky host, for minutes.

What may grow is measured once a second: memory, descriptors, threads, log and journals. Memory,
descriptors and threads must stand still after a warm-up; journals grow with what is said.
"""

import argparse
import asyncio
import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.answers import answer, text, tool_call
from kode_sidecar.devtools.demo.model_server import RecordedResponse, failure
from simulation.plot import Sample, drawing, table
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import broken_off
from tests.support.processes import memory
from tests.support.session_fold import SessionFold
from tests.support.sidecar import World, sidecar

KEPT_PROMPTS = 12
"""After so many turns a session is left for a new one, as people do.

A conversation that is open holds what was said in it. The windows are left one after the other, so
that all of them together hold as much at any time after the warm-up: what grows then is a leak.
"""
_WARM_UP = 1 / 3
TURN_SECONDS = 600.0  # what is measured is growth, also on a busy machine
_MOST_GROWTH = {"memory MB": 1.10, "descriptors": 1.05, "threads": 1.05}


class FlakyHost:
    """Answers, and now and then not: refuses, breaks off, calls a tool."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def respond(self, body: dict[str, Any]) -> RecordedResponse:
        """One answer."""
        if body["messages"][-1]["role"] == "tool":
            return answer(text("Read it. " * 20))
        match self._rng.randrange(12):
            case 0:
                return failure(503, "overloaded_error", "The host is busy.")
            case 1:
                return broken_off(answer(text("cut off " * 30)), 2)
            case 2 | 3:
                return answer(text("Let me look."), tool_call("read_file", {"path": "app.py"}))
            case _:
                return answer(text("An answer. " * 40))


@dataclass
class Soak:
    """`turns` counts those that have ended."""

    world: World
    sessions: list[SessionFold]
    rng: random.Random
    turns: int = 0

    async def talk(self, place: int) -> None:
        """One session after the other in one window, each for a while."""
        for number in itertools.count(place % KEPT_PROMPTS):
            if number % KEPT_PROMPTS == KEPT_PROMPTS - 1:
                old = self.sessions[place].session_id
                await self.world.client.request("kode/session/detach", {"sessionId": old}, 60.0)
                self.sessions[place] = await self.world.session()
            session = self.sessions[place]
            turn_id = await self.world.start(session, f"prompt {number}")
            await self.world.watch.turn_end(session.session_id, turn_id, TURN_SECONDS)
            self.turns += 1

    async def read_slowly(self) -> None:
        """Now and then the client reads nothing at all for a while."""
        while True:
            await asyncio.sleep(2.0)
            time.sleep(self.rng.uniform(0.05, 0.3))  # noqa: ASYNC251

    def sample(self, at: float) -> Sample:
        """Measure once."""
        pid = self.world.pid
        self.world.client.frames.clear()
        return Sample(
            at,
            {
                "memory MB": memory(pid) / 1e6,
                "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": len(os.listdir(f"/proc/{pid}/task")),
                "journals MB": _size(self.world.home, "journal.jsonl") / 1e6,
                "log MB": _size(self.world.home, "*.log*") / 1e6,
                "turns": self.turns,
            },
        )


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern))


async def soak(minutes: float, sessions: int, seed: int) -> list[Sample]:
    """Return what was measured."""
    rng = random.Random(seed)
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="kode-soak-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        (project / "app.py").write_text("print('hi')\n" * 50)
        home = {"KODE_HOME": str(Path(folder) / "home")}
        host = AnsweringModel(FlakyHost(rng).respond)
        async with sidecar(model=host, roots=[project], environment=home) as world:
            folds = [await world.session() for _ in range(sessions)]
            soaked = Soak(world, folds, rng)
            tasks = [asyncio.create_task(soaked.talk(place)) for place in range(sessions)]
            tasks.append(asyncio.create_task(soaked.read_slowly()))
            begin, stuck = time.monotonic(), set[asyncio.Task[None]]()
            while (at := time.monotonic() - begin) < minutes * 60:
                samples.append(soaked.sample(at))
                host.requests.clear()
                host.chats.clear()
                stuck, _ = await asyncio.wait(
                    tasks, timeout=1.0, return_when=asyncio.FIRST_COMPLETED
                )
                if stuck:
                    break
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    for task in stuck:
        task.result()
    return samples


def growth(samples: Sequence[Sample]) -> dict[str, float]:
    """Return by what factor each has grown from the end of the warm-up to the end."""
    rest = samples[int(len(samples) * _WARM_UP) :]
    third = max(len(rest) // 3, 1)

    def mean(some: Sequence[Sample], name: str) -> float:
        return sum(sample.values[name] for sample in some) / len(some)

    return {name: mean(rest[-third:], name) / mean(rest[:third], name) for name in _MOST_GROWTH}


def main() -> int:
    """1 when something grew that must not."""
    parser = argparse.ArgumentParser(prog="dev.py soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--plot", type=Path, help="write the curves there, as SVG")
    options = parser.parse_args()
    print(
        f"{options.sessions} sessions, {options.minutes:g} minutes, seed {options.seed}", flush=True
    )
    samples = asyncio.run(soak(options.minutes, options.sessions, options.seed))
    print(table(samples))
    if options.plot:
        options.plot.write_text(drawing(samples), encoding="utf-8")
        print(f"drawn to {options.plot}")
    grown = growth(samples)
    for name, factor in grown.items():
        print(f"{name}: × {factor:.3f} after the warm-up, at most {_MOST_GROWTH[name]}")
    return int(any(factor > _MOST_GROWTH[name] for name, factor in grown.items()))


if __name__ == "__main__":
    sys.exit(main())
