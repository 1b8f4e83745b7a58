"""Shows the progress of a batch: a redrawn line on a terminal, else a line of JSON per task."""

from collections.abc import Callable
from typing import TextIO

import msgspec

from kode_sidecar.core.domain.message import Cost
from kode_sidecar.jobs.batch.report import money
from kode_sidecar.jobs.batch.task_log import TaskLog, TaskState

_MINUTE = 60.0
_DRAWN_SECONDS = 0.1


class BatchProgress:
    """Shows each change of a task. `now` counts seconds."""

    def __init__(self, log: TaskLog, screen: TextIO, now: Callable[[], float]) -> None:
        self._log = log
        self._screen = screen
        self._now = now
        self._begun = now()
        self._drawn = self._begun - _DRAWN_SECONDS
        self._terminal = screen.isatty()
        self._columns = 0
        self._total = len(log.tasks)
        self._done = self._failed = 0
        self._running: set[str] = set()
        self._amounts: dict[str, float] = {}
        for state in log.tasks.values():
            self._count_done(state)
        for outcome in log.outcomes():
            self._pay(outcome.costs)
        self._before = self._done

    def __call__(self, state: TaskState) -> None:
        """Count the change and show it."""
        name = state.task.id
        if state.running:
            self._running.add(name)
        else:
            self._running.discard(name)
            self._count_done(state)
            last = state.outcome or (state.cuts[-1] if state.cuts else None)
            self._pay(last.costs if last else ())
        if self._terminal:
            if self._now() - self._drawn >= _DRAWN_SECONDS or self._done == self._total:
                self._draw()
        elif not state.running:
            self._report(state)

    def end(self) -> None:
        """Draw the line a last time, and continue below it."""
        if self._terminal:
            self._draw()
            self._screen.write("\n")
            self._screen.flush()

    def line(self) -> str:
        """Return the progress in one line."""
        parts = [f"{self._done}/{self._total} done"]
        if self._failed:
            parts.append(f"{self._failed} not completed")
        parts.append(f"{len(self._running)} running")
        if self._amounts:
            parts.append(money(Cost(amount, name) for name, amount in self._amounts.items()))
        done, seconds = self._done - self._before, self._now() - self._begun
        if done and seconds > 0:
            rate = done / seconds
            parts.append(f"{rate * _MINUTE:.1f} a minute")
            parts.append(f"{_duration((self._total - self._done) / rate)} left")
        return " · ".join(parts)

    def _count_done(self, state: TaskState) -> None:
        if state.outcome is not None:
            self._done += 1
            self._failed += state.outcome.status != "completed"

    def _pay(self, costs: tuple[Cost, ...]) -> None:
        for cost in costs:
            self._amounts[cost.currency] = self._amounts.get(cost.currency, 0.0) + cost.amount

    def _draw(self) -> None:
        self._drawn = self._now()
        line = self.line()
        # Overwritten with blanks: not every Windows console can erase a line.
        self._screen.write("\r" + line.ljust(self._columns))
        self._columns = len(line)
        self._screen.flush()

    def _report(self, state: TaskState) -> None:
        last = state.outcome or state.cuts[-1]
        reported = {
            "task": state.task.id,
            "state": state.name,
            "code": last.code,
            "seconds": last.seconds,
            "costs": last.costs,
            "done": self._done,
            "tasks": self._total,
        }
        self._screen.write(f"{msgspec.json.encode(reported).decode()}\n")
        self._screen.flush()


def _duration(seconds: float) -> str:
    minutes = round(seconds / _MINUTE)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
