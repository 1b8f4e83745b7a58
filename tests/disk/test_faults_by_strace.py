"""The system itself refuses what a session asks of its files, or the process dies asking (A6).

For SQLite this is the only way in: its writes are made in C. For lines it shows that the shim of
`test_faults_in_a_session` is honest. The session is opened by the process that is spoiled, so that
what opening does is spoiled, too; and a database is spoiled while it is made.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.infrastructure.records.messages import StorageName
from tests.conftest import FULL, Played
from tests.support.answering_model import AnsweringModel
from tests.support.scripted_session import (
    PROMPTS,
    Json,
    Runner,
    check,
    check_files,
    facts,
    respond,
)
from tests.support.strace import LINUX_ONLY, most_in_a_thread, spoiled, strace

pytestmark = LINUX_ONLY

CALLS = ("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "unlink")
# Of a database that is made: nobody else makes these, whatever its name is until then.
CALLS_OF_SQLITE = ("pwrite64", "fdatasync", "ftruncate")
KINDS = ("kill", "ENOSPC", "EIO")
TRIES = 3  # of a point that no thread came to
SAMPLE = 4  # of all points and kinds, unless all are played
PARTS = range(16 if FULL else 1)  # of all: none takes too long for one test
LIMITED = 60 if FULL else 2  # sessions whose files cannot grow
FILES: dict[StorageName, tuple[str, ...]] = {
    "sqlite": (
        "messages.sqlite",
        "messages.sqlite-wal",
        "messages.sqlite-shm",
    ),
    "jsonl": ("messages.jsonl", "journal.jsonl", "meta.json"),
}
# Bytes at which no file grows on: one of them gets there in one of the turns. A database that is
# empty has 8,192, the index of its log 32,768.
LIMITS: dict[StorageName, Sequence[int]] = {
    "sqlite": [*range(9_000, 24_000), *range(33_000, 60_000)],
    "jsonl": range(5_000, 24_000),
}

Play = Callable[..., Awaitable[Json]]
"""Plays a session in a new state folder; further options of strace spoil it."""


class Spoiler:
    """Plays sessions below strace."""

    def __init__(self, runner: Runner, storage: StorageName, log: Path) -> None:
        self.runner = runner
        self.log = log
        self._storage: StorageName = storage

    async def reopened(self, home: Path, *more: str) -> Json:
        """What a session told that was opened twice more; the last time is spoiled."""
        first = await self.runner.play(home, prompts=PROMPTS[:2])
        (session_id,) = facts(first, "created")
        again = await self.runner.play(home, session=session_id, prompts=PROMPTS[2:3])
        folder = home / "conversations" / session_id
        below = strace(self.log, CALLS, [folder / name for name in FILES[self._storage]], *more)
        last = await self.runner.play(home, session=session_id, prompts=PROMPTS[3:], strace=below)
        return {"told": [*first["told"], *again["told"], *last["told"]], "exit": last["exit"]}

    async def made(self, home: Path, *more: str) -> Json:
        """What a session told, from the making of its database on; that is spoiled, too."""
        below = strace(self.log, CALLS_OF_SQLITE, (), *more)
        return await self.runner.play(home, prompts=PROMPTS, strace=below)

    async def play_spoiled(self, play: Play, name: str, at: int, kind: str) -> bool:
        """The `at`th call of a name fails: what must be true afterwards.

        False if no thread came so far: which one makes a call is the system's choice.
        """
        home = self.runner.home()
        played = await play(home, *spoiled(name, kind, at))
        reached = played["exit"] == -9 if kind == "kill" else "(INJECTED)" in self.log.read_text()
        assert played["exit"] == (-9 if kind == "kill" and reached else 0), played
        if created := facts(played, "created"):  # else nobody was told of it
            await check_after(self.runner, home, created[0], played)
        return reached

    async def play_each(self, play: Play, wanted: set[str], part: int, rng: Random) -> int:
        """Spoil each call that a sound session makes, or some; how many were reached."""
        sound = await play(self.runner.home())
        assert facts(sound, "ended") == list(PROMPTS)
        counts = most_in_a_thread(self.log)
        assert all(counts[name] > 2 for name in wanted), counts
        points = [
            (name, at, kind)
            for name in CALLS
            for at in range(1, counts[name] + 1)
            for kind in KINDS
        ]
        points = points[part :: len(PARTS)] if FULL else rng.sample(points, SAMPLE)
        failures: list[str] = []
        reached = 0
        for name, at, kind in points:
            try:
                for _ in range(TRIES):
                    if await self.play_spoiled(play, name, at, kind):
                        reached += 1
                        break
            except AssertionError as error:
                failures.append(f"{kind} at {name} {at} of {counts[name]}: {error}")
        assert "\n".join(failures) == ""
        assert reached > len(points) / 2, f"{reached} of {len(points)} points were reached"
        return reached


@asynccontextmanager
async def spoiler(folder: Path, storage: StorageName) -> AsyncIterator[Spoiler]:
    async with AnsweringModel(respond) as model, Runner(model.base_url, folder) as runner:
        yield Spoiler(runner, storage, folder / "strace.log")


async def check_after(runner: Runner, home: Path, session_id: str, played: Json) -> None:
    later = await runner.play(home, session=session_id, prompts=["after"])
    assert later["exit"] == 0, later
    check(played, later)
    check_files(home / "conversations" / session_id)


@pytest.mark.parametrize("part", PARTS)
async def test_the_system_fails_at_each_call(
    tmp_path: Path, rng: Random, storage: StorageName, part: int, played: Played
) -> None:
    wanted = {"sqlite": {"pwrite64", "fsync"}, "jsonl": {"write", "fsync"}}[storage]
    async with spoiler(tmp_path, storage) as below:
        count = await below.play_each(below.reopened, wanted, part, rng)
    played(count, f"faults by strace in a session that goes on, {storage}")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_the_system_fails_at_each_call_of_a_new_database(
    tmp_path: Path, rng: Random, storage: StorageName, part: int, played: Played
) -> None:
    async with spoiler(tmp_path, storage) as below:
        count = await below.play_each(below.made, {"pwrite64"}, part, rng)
    played(count, f"faults by strace while a database is made, {storage}")


async def test_a_file_that_can_grow_no_further(
    tmp_path: Path, rng: Random, storage: StorageName, played: Played
) -> None:
    """A real short write: a part is taken, then nothing, until there is room again."""
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        for limit in rng.sample(LIMITS[storage], LIMITED):
            home = runner.home()
            reported = await runner.play(home, prompts=PROMPTS, file_limit=limit)
            ended = [fact for fact in reported["told"] if fact.get("reason") == "end_turn"]
            assert len(ended) == len(PROMPTS) - 1, (limit, reported)
            await check_after(runner, home, facts(reported, "created")[0], reported)
    played(LIMITED, f"real short writes, {storage}")
