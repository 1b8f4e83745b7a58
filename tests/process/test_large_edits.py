"""Hundreds of hunks in a file of megabytes: other requests are answered meanwhile, in order."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from tests.conftest import FULL
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

T = TypeVar("T")
LINES, HUNKS = (195_000, 500) if FULL else (40_000, 100)
LONGEST_WAIT = 5.0
"""No figure but a ceiling, for machines under load: the bench says what it takes."""


async def pinged(world: World, work: Awaitable[T]) -> tuple[T, int]:
    """Do it while pings are sent, one after the other; how many were answered before it was."""
    task = asyncio.ensure_future(work)
    answered = 0
    while not task.done():
        begun = monotonic()
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        assert monotonic() - begun < LONGEST_WAIT
        answered += not task.done()
    return await task, answered


async def test_pings_are_answered_while_hundreds_of_hunks_go_their_way(tmp_path: Path) -> None:
    lines = [f"line {at:06} with some more words in it, as many\n" for at in range(LINES)]
    before = "".join(lines)
    (tmp_path / "a.txt").write_text(before, newline="")
    places = [at * (LINES // HUNKS) + 3 for at in range(HUNKS)]
    edits = [{"old": lines[at][:-1], "new": f"row {at}"} for at in places]
    call: Any = tool_call("propose_edit", {"path": "a.txt", "edits": edits})
    after = list(lines)
    for at in places:
        after[at] = f"row {at}\n"
    async with sidecar([answer(call), answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        buffer = world.editor.open(tmp_path / "a.txt")
        _, while_proposing = await pinged(world, world.turn(session, "go"))
        change_set = only_change_set(session)
        decided, while_accepting = await pinged(world, world.decide(change_set))
        assert (len(decided["applied"]), decided["verified"]) == (HUNKS, True)
        assert buffer.text == "".join(after)
        undo = {"changeSetId": change_set.id}
        asked = world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        undone, while_undoing = await pinged(world, asked)
        assert len(undone["undone"]) == HUNKS
        assert buffer.text == before
        assert min(while_proposing, while_accepting, while_undoing) >= 1
