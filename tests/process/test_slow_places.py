"""Where foreign text could keep everybody waiting: while it is worked on, pings, cancels and ends.

The table in the README of `workspace` lists these places; each of its rows is played here.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import pytest

from tests.conftest import FULL, Played
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.hostile_project import HostileProject, Try
from tests.support.model_script import answer, text, tool_call
from tests.support.pings import Pings, percentile
from tests.support.program import ROOT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.strace import LINUX_ONLY
from tests.support.stuck_search import STUCK_SEARCH, make_stuck

pytestmark = [pytest.mark.program, LINUX_ONLY]

MOST_PING_SECONDS, MOST_CANCEL_SECONDS, MOST_END_SECONDS = 0.25, 0.5, 3.0
BUSY_SECONDS = 9.0
"""So much later may a process be gone where a crowd of other programs keeps both from running."""

README = ROOT / "kode_sidecar" / "infrastructure" / "workspace" / "README.md"
PLACES: dict[str, tuple[str, ...]] = {
    "patterns of a project or a model": (
        "a glob of stars",
        "an ignored folder",
        "a glob in a search",
        "a pattern that backtracks",
    ),
    "credentials in large texts": ("key headers",),
    "large open buffers at a search": ("search needle",),
    "a name that is not there, large folders": ("a name not there", "a crowd"),
    "a quote with very many places": (
        "quote 'a' of same",
        "quote 'a\\na' of same",
        "quote 'line\\nline' of lines",
    ),
    "YAML of skills": ("many lines",),
    "thousands of calls in one answer": ("a crowd",),
    "a pipe in place of a file": ("a pipe", "search in a pipe", "a long search"),
}
"""The rows of the table, and what a model calls to get there; thrice each, and 3,000 times once."""


class SlowModel(AnsweringModel):
    """Asked for a place, it goes there; whatever comes back, it goes on from there."""

    def __init__(self, project: HostileProject) -> None:
        more = [
            Try("a pipe", "read_file", {"path": "fifo"}),
            Try("search in a pipe", "search_code", {"query": "found", "path": "pipe"}),
            Try("a long search", "search_code", STUCK_SEARCH),
        ]
        self._tries = {one.name: one for one in [*project.tries, *more]}
        self.asked: dict[str, asyncio.Event] = {place: asyncio.Event() for place in PLACES}
        super().__init__(self._next)

    def _next(self, body: dict[str, Any]) -> Any:
        place = next((one for one in reversed(user_texts(body)) if one in PLACES), None)
        if place is None or body["messages"][-1]["role"] == "tool":
            return answer(text("on"))
        self.asked[place].set()
        times = 1_000 if place.startswith("thousands") else 3
        tries = [self._tries[name] for name in PLACES[place] for _ in range(times)]
        return answer(*(tool_call(one.tool, one.arguments) for one in tries))


@asynccontextmanager
async def hostile_world(folder: Path) -> AsyncIterator[tuple[World, SlowModel]]:
    project = HostileProject(folder / "project")
    project.build()
    make_stuck(project.root)
    (project.root / "pipe").mkdir()
    os.mkfifo(project.root / "pipe" / ".gitignore")
    model = SlowModel(project)
    async with sidecar(model=model, roots=[project.root], handshake={"trusted": True}) as world:
        world.editor.open(project.root / "big.txt", "-----BEGIN PRIVATE KEY-----\n" * 400_000)
        await world.client.request("kode/ping", {}, HANG_SECONDS)  # it has been read by then
        yield world, model


async def go_to(world: World, model: SlowModel, place: str) -> tuple[SessionFold, str]:
    """A turn that has been told to go there."""
    session = await world.session(mode="auto")
    turn_id = await world.start(session, place)
    async with asyncio.timeout(HANG_SECONDS):
        await model.asked[place].wait()
        await world.watch.until(lambda: any(b.type == "tool_use" for b in session.blocks.values()))
    return session, turn_id


def test_the_table_lists_what_is_played() -> None:
    table = README.read_text(encoding="utf-8").partition("| text | what bounds it |")[2]
    rows = re.findall(r"^\| ([^|]+?) \| ", table.partition("\n\n")[0], re.MULTILINE)
    assert [row for row in rows if row != "---"] == list(PLACES)


async def test_pings_and_cancel_are_answered_in_each_place(tmp_path: Path, played: Played) -> None:
    reported: list[str] = []
    async with hostile_world(tmp_path) as (world, model):
        for place in PLACES:
            async with Pings(world) as pings:
                session, turn_id = await go_to(world, model, place)
                worked, asked = pings.work(), perf_counter()
                params = {"sessionId": session.session_id}
                answered = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
                took, worked = perf_counter() - asked, pings.work() - worked
                turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
            assert turn.stop_reason == ("cancelled" if answered["cancelled"] else "end_turn")
            reported.append(
                f"{place}: cancel {took * 1000:.0f} ms (worked {worked * 1000:.0f}); {pings}"
            )
            assert worked < MOST_CANCEL_SECONDS, reported[-1]
            assert percentile(pings.worked) < MOST_PING_SECONDS, reported[-1]
    played(len(PLACES), "slow places with pings and cancel")
    print("\n".join(reported))  # noqa: T201


async def end_of_input(world: World) -> None:
    world.client.process.close_stdin()


async def terminated(world: World) -> None:
    os.kill(world.pid, signal.SIGTERM)


@pytest.mark.parametrize("end", [end_of_input, terminated])
async def test_the_process_ends_in_each_place(
    tmp_path: Path, end: Any, rng: Random, played: Played
) -> None:
    places = list(PLACES) if FULL else [rng.choice(list(PLACES))]
    busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    for number, place in enumerate(places):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with hostile_world(folder) as (world, model):
            await go_to(world, model, place)
            began = perf_counter()
            await end(world)
            assert await world.client.process.wait(HANG_SECONDS) == 1
            took = perf_counter() - began
        print(f"{place}: gone after {took:.2f} s by {end.__name__}")  # noqa: T201
        assert took < MOST_END_SECONDS + (BUSY_SECONDS if busy else 0), place
    played(len(places), f"slow places that were left by {end.__name__}")
