"""Every write, fsync, rename and open of a six-turn session fails, or the process dies there (A6).

Both ways to keep messages. What SQLite itself does with its files this shim does not see:
`test_faults_by_strace` does.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.infrastructure.records.messages import StorageName
from tests.conftest import FULL, Played
from tests.support.answering_model import AnsweringModel
from tests.support.disk_faults import KINDS
from tests.support.scripted_session import (
    PROMPTS,
    Json,
    Runner,
    check,
    check_files,
    facts,
    respond,
)

PARTS = [(kind,) for kind in KINDS] if FULL else [KINDS]
MENDED = 150 if FULL else 2  # sessions that a process died in, and the next one meets a fault

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


async def play_with_fault(runner: Runner, at: int, kind: str) -> None:
    home = runner.home()
    played = await runner.play(home, at=at, kind=kind, prompts=PROMPTS)
    # What is written late is written once or twice: the last numbers may not come up.
    met = at <= (facts(played, "operations") or [at])[0]
    assert played["exit"] == (-9 if met and kind in ("kill", "torn") else 0), played
    created = facts(played, "created")
    if not created:  # nobody was told of it: it is not there, or has nothing in it
        return
    if kind in ("ENOSPC", "EIO", "short"):
        # one failure costs at most the turn that it met
        ended = [fact for fact in played["told"] if fact.get("reason") == "end_turn"]
        assert len(ended) >= len(PROMPTS) - 1, played
    later = await go_on(runner, home, created[0], played)
    again = await runner.play(home, session=created[0])
    assert (
        facts(again, "messages")[0][: len(facts(later, "messages")[0])]
        == facts(later, "messages")[0]
    )


async def go_on(runner: Runner, home: Path, session_id: str, played: Json) -> Json:
    """One more turn, of a process whose disk is sound; what it told."""
    later = await runner.play(home, session=session_id, prompts=["after"])
    assert later["exit"] == 0, later
    check(played, later)
    check_files(home / "conversations" / session_id)
    return later


@pytest.mark.parametrize("kinds", PARTS, ids="-".join)
async def test_a_fault_at_every_operation_loses_nothing(
    tmp_path: Path, rng: Random, storage: StorageName, kinds: Sequence[str], played: Played
) -> None:
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        sound = await runner.play(runner.home(), prompts=PROMPTS)
        assert facts(sound, "ended") == list(PROMPTS)
        (operations,) = facts(sound, "operations")
        assert operations > 100
        every = range(1, operations + 1)
        points = [(kind, at) for kind in kinds for at in (every if FULL else [rng.choice(every)])]
        failures: list[str] = []
        for kind, at in points:
            try:
                await play_with_fault(runner, at, kind)
            except AssertionError as error:
                failures.append(f"{kind} at operation {at} of {operations}: {error}")
        assert "\n".join(failures) == ""
    played(len(points), f"faults at operations of a six-turn session, {storage}")


async def test_a_fault_while_a_torn_session_is_mended(
    tmp_path: Path, rng: Random, storage: StorageName, played: Played
) -> None:
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        home = runner.home()
        sound = await runner.play(home, prompts=PROMPTS[:-1])
        (session_id,), (operations,) = facts(sound, "created"), facts(sound, "operations")
        reopened = await runner.play(home, session=session_id, prompts=PROMPTS[-1:])
        (more,) = facts(reopened, "operations")
        for _ in range(MENDED):
            home = runner.home()
            at = rng.randint(operations // 5, operations - 10)  # somebody was told of it by then
            torn = await runner.play(home, at=at, kind="torn", prompts=PROMPTS[:-1])
            (session_id,) = facts(torn, "created")
            at, kind = rng.randint(1, more), rng.choice(KINDS)
            fixed = await runner.play(
                home, session=session_id, at=at, kind=kind, prompts=PROMPTS[-1:]
            )
            assert fixed["exit"] in ((0, -9) if kind in ("kill", "torn") else (0,)), fixed
            reported = [*torn["told"], *fixed["told"]]
            await go_on(runner, home, session_id, {"told": reported})
    played(MENDED, f"faults in the opening of torn sessions, {storage}")
