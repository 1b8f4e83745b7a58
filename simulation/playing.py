"""Plays stories, finds those that break a promise, and makes them small."""

import logging
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from kode_sidecar.infrastructure.records import growth
from simulation import edit_stories, life_stories, whole_stories
from simulation.edit_world import EditWorld
from simulation.life_world import LifeWorld
from simulation.loop import SimulatedLoop
from simulation.story import Step, Story, Violation
from simulation.whole_world import WholeWorld

MOST_SETTLING = 2_000
"""So much may happen after a story's last step until nothing is under way."""


class World(Protocol):
    """What a story is played in."""

    def step(self, step: Step) -> None:
        """Let one thing happen."""
        ...

    def check(self) -> bool:
        """Raises Violation where a promise is broken that holds at all times.

        True: something happened at that, which comes to its rest before the next step.
        """
        ...

    def settle(self) -> bool:
        """Let the next of all that is under way happen; False when nothing is any more."""
        ...

    def finish(self) -> None:
        """Raises Violation where something is untrue in the end."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True)
class Kind:
    """A kind of world: how its stories are drawn, and who plays them."""

    draw: Callable[[int], Story]
    make: Callable[[Story, SimulatedLoop, Path], World]


KINDS: Mapping[str, Kind] = {
    "edits": Kind(edit_stories.draw, EditWorld),
    "lives": Kind(life_stories.draw, LifeWorld),
    "whole": Kind(whole_stories.draw, WholeWorld),
}


class _Errors(logging.Handler):
    """What the program writes to its log as an error: nobody else would see it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first."""
        if self.first is None:
            error = record.exc_info[1] if record.exc_info else None
            self.first = error or Violation("an error in the log", record.getMessage())

    def lost(self, _loop: object, context: Mapping[str, Any]) -> None:
        """Keep what a task died of when nobody looks at it."""
        if self.first is None:
            error = context.get("exception")
            self.first = error or Violation("a task died unseen", str(context["message"]))


class _NoTimer:
    """In place of a timer of the real clock, which would ring in the middle of a later story."""

    daemon = False

    def __init__(self, _seconds: float, _ring: Callable[[], object]) -> None: ...

    def start(self) -> None:
        """Do nothing: time stands in a story."""

    def cancel(self) -> None:
        """Do nothing."""


class Stage:
    """Where stories are played, one after the other, in one thread. A context manager."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        place = memory if memory.is_dir() else None
        self._root = Path(tempfile.mkdtemp(prefix="kode-simulation-", dir=place)).resolve()
        self._loop = SimulatedLoop()
        self._errors = _Errors()
        self._loop.set_exception_handler(self._errors.lost)
        self._no_timer = patch.object(growth, "Timer", _NoTimer)

    def __enter__(self) -> "Stage":
        logging.getLogger("kode_sidecar").addHandler(self._errors)
        logging.getLogger("kode_sidecar").propagate = False
        self._no_timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._no_timer.stop()
        logging.getLogger("kode_sidecar").removeHandler(self._errors)
        logging.getLogger("kode_sidecar").propagate = True
        self._loop.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def play(
        self, story: Story, receive: Callable[[str], None] | None = None
    ) -> BaseException | None:
        """Play a story; what it broke. `hear` is told each step as it begins."""
        self._errors.first = None
        return _Run(story, self._loop, self._root, self._errors, receive).run()


class _Run:
    """One story on the stage."""

    def __init__(
        self,
        story: Story,
        loop: SimulatedLoop,
        root: Path,
        errors: _Errors,
        receive: Callable[[str], None] | None,
    ) -> None:
        self._story, self._loop, self._errors = story, loop, errors
        self._root = root
        self._receive = receive
        self._steps = iter(story.steps)
        self._world: World | None = None
        self._settling = 0
        self.failure: BaseException | None = None

    def run(self) -> BaseException | None:
        self._loop.holds_threads = self._story.settings.get("threads") == "slow"
        try:
            self._loop.play(self._on_idle)
        except Exception as error:
            self.failure = self.failure or error
        finally:
            if self._world is not None:
                self._world.close()
        return self.failure

    def _on_idle(self) -> bool:
        """Take the next step, once what the last one led to is found to be right."""
        try:
            if self._errors.first is not None:
                raise self._errors.first
            return self._next()
        except Exception as error:
            self.failure = error
            return False

    def _next(self) -> bool:
        if self._world is None:
            self._world = KINDS[self._story.world].make(self._story, self._loop, self._root)
            return True
        if self._world.check():
            return True
        step = next(self._steps, None)
        if step is not None:
            if self._receive is not None:
                self._receive(str(step))
            self._world.step(step)
            return True
        self._settling += 1
        if self._settling > MOST_SETTLING:
            raise Violation("it never comes to rest", f"{MOST_SETTLING} things more happened")
        if self._world.settle():
            return True
        self._world.finish()
        return False


def rule_of(failure: BaseException) -> str:
    """Return what a smaller story must break as well."""
    return failure.rule if isinstance(failure, Violation) else type(failure).__name__


@dataclass(frozen=True)
class Found:
    """A story that broke a promise."""

    seed: int
    story: Story
    failure: BaseException


@dataclass
class Tally:
    """How much was played. `cpu_seconds` leaves out what other programs took of the core."""

    stories: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.stories / self.cpu_seconds if self.cpu_seconds else 0.0
        took = f"{self.seconds:.1f} s ({self.cpu_seconds:.1f} s of CPU)"
        return f"{self.stories} stories in {took}, {rate:.0f} a second of CPU"


def search(
    stage: Stage,
    kind: str,
    first: int,
    *,
    runs: int,
    seconds: float,
    tally: Tally,
    cpu_seconds: float = math.inf,
    receive: Callable[[Tally], None] | None = None,
) -> Iterator[Found]:
    """Play the stories of the seeds from `first` on; yield those that fail.

    `hear` is told how far it is, after each story.
    """
    begin, cpu = time.monotonic(), time.process_time()
    for seed in range(first, first + runs):
        story = KINDS[kind].draw(seed)
        failure = stage.play(story)
        tally.stories += 1
        tally.seconds, tally.cpu_seconds = time.monotonic() - begin, time.process_time() - cpu
        if receive is not None:
            receive(tally)
        if failure is not None:
            yield Found(seed, story, failure)
        if tally.seconds > seconds or tally.cpu_seconds > cpu_seconds:
            return


def shrink(stage: Stage, found: Found, seconds: float = 30.0) -> Found:
    """Return the smallest story met within that time that breaks the same promise."""
    best: Found = found
    rule = rule_of(found.failure)
    deadline = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in smaller_stories(best.story):
            failure = stage.play(smaller)
            if failure is not None and rule_of(failure) == rule:
                best, progress = Found(best.seed, smaller, failure), True
                break
            if time.monotonic() > deadline:
                break
    return best


_PLAIN = {"editor": "plain", "eol": "lf", "end": "closed", "opened": "yes", "threads": "quick"}


def smaller_stories(story: Story) -> Iterator[Story]:
    """Yield the stories that are a little smaller, the boldest first."""
    steps = list(story.steps)
    size = len(steps)
    while size:
        for at in range(0, len(steps), size):
            yield replace(story, steps=(*steps[:at], *steps[at + size :]))
        size //= 2
    for at in range(len(story.lines)):
        yield replace(story, lines=(*story.lines[:at], *story.lines[at + 1 :]))
    for key, value in story.settings.items():
        if _PLAIN.get(key, value) != value:
            yield replace(story, settings={**story.settings, key: _PLAIN[key]})
    for at, step in enumerate(steps):
        for place, arg in enumerate(step.args):
            for less in _less(arg):
                args = (*step.args[:place], less, *step.args[place + 1 :])
                yield replace(story, steps=(*steps[:at], Step(step.verb, args), *steps[at + 1 :]))


def _less(arg: int | str) -> Iterator[int]:
    if isinstance(arg, int):
        yield from dict.fromkeys(less for less in (0, arg // 2, arg - 1) if 0 <= less < arg)


def write_story(folder: Path, found: Found) -> Path:
    """Write a story as a file of its own."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    name = rule_of(found.failure).replace("'", "").replace(" ", "-")
    path = folder / f"{name}-{found.seed}.story"
    text = " ".join(str(found.failure).split())[:300]
    path.write_text(str(found.story.with_notes(f"seed {found.seed}", text)), encoding="utf-8")
    return path
