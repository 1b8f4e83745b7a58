"""Sends scouts out side by side and brings their reports home in the order of the tasks."""

import asyncio
from collections.abc import Sequence
from itertools import count

from kode_sidecar.scouts.contracts import Errand, ExploreReport, ExploreTask, ScoutServices
from kode_sidecar.scouts.scout_run import ScoutRun


class Dispatch:
    """The scouts of one session: `limits.at_once` of them and no more; none waits for a place."""

    def __init__(self, services: ScoutServices) -> None:
        self._services = services
        self._out = 0

    async def explore(self, tasks: Sequence[ExploreTask], errand: Errand) -> list[ExploreReport]:
        """A report for every task, in order; a task without a place gets a refusal at once.

        What becomes of one scout does nothing to another. Raises asyncio.CancelledError when the
        turn is cancelled, after all of them have ended.
        """
        free = max(0, self._services.limits.at_once - self._out)
        async with asyncio.TaskGroup() as group:
            running = [self._send(group, task, errand) for task in tasks[:free]]
            _follow(running, errand)
        reports = [scout.result() for scout in running]
        return reports + [self._refused(task) for task in tasks[free:]]

    def _send(
        self, group: asyncio.TaskGroup, task: ExploreTask, errand: Errand
    ) -> asyncio.Task[ExploreReport]:
        self._out += 1
        scout = group.create_task(ScoutRun(task, errand, self._services).run(), name="scout")
        # Not in the scout itself: one that is cancelled before it begins runs no clean-up.
        scout.add_done_callback(self._back)
        return scout

    def _back(self, scout: asyncio.Task[ExploreReport]) -> None:
        del scout
        self._out -= 1

    def _refused(self, task: ExploreTask) -> ExploreReport:
        most = self._services.limits.at_once
        note = (
            f"Not explored: {most} scouts were out already, and a session has no more at once. "
            "Ask again when they have reported."
        )
        return ExploreReport(title=task.title, state="refused", note=note)


def _follow(running: Sequence[asyncio.Task[ExploreReport]], errand: Errand) -> None:
    """Tell the user how many have come back."""
    total = len(running)
    back = count()

    def tell(_scout: object = None) -> None:
        home = next(back)
        errand.call.progress(f"{home} of {total} scouts have reported", home, total)

    tell()
    for scout in running:
        scout.add_done_callback(tell)
