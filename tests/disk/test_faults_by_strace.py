"""The system itself refuses what a session asks of its files, or the process dies asking (A6).

For SQLite this is the only way in: its writes are made in C. For lines it shows that the shim of
`test_faults_in_a_session` is honest. The session is opened by the process that is spoiled, so that
what opening does is spoiled, too.
"""

from pathlib import Path
from random import Random

import pytest

from kode_sidecar.records.message_storage import StorageName
from tests.conftest import FULL
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
KINDS = ("kill", "ENOSPC", "EIO")
SAMPLE = 4  # of all points and kinds, unless all are played
PARTS = 4  # of all: none takes too long for one test
FILES: dict[StorageName, tuple[str, ...]] = {
    "sqlite": ("messages.sqlite", "messages.sqlite-wal", "messages.sqlite-shm"),
    "jsonl": ("messages.jsonl", "journal.jsonl", "meta.json"),
}
# Bytes at which no file grows on: one of them gets there in one of the turns.
LIMITS: dict[StorageName, range] = {"sqlite": range(34_000, 80_000), "jsonl": range(5_000, 24_000)}


class Spoiler:
    """Plays the second half of a session below strace."""

    def __init__(self, base_url: str, folder: Path, storage: StorageName, sound: Runner) -> None:
        self._base_url = base_url
        self._folder = folder
        self._storage: StorageName = storage
        self._sound = sound
        self.log = folder / "strace.log"

    async def play(self, home: Path, *more: str) -> Json:
        """What both halves told; `more` are options that spoil the second."""
        first = await self._sound.play(home, prompts=PROMPTS[:3])
        (session_id,) = facts(first, "created")
        folder = home / "conversations" / session_id
        paths = [folder / name for name in FILES[self._storage]]
        below = strace(self.log, CALLS, paths, *more)
        async with Runner(self._base_url, self._folder, below) as spoiled_runner:
            second = await spoiled_runner.play(home, session=session_id, prompts=PROMPTS[3:])
        return {"told": [*first["told"], *second["told"]], "exit": second["exit"]}


async def check_after(runner: Runner, home: Path, played: Json) -> None:
    session_id = facts(played, "created")[0]
    later = await runner.play(home, session=session_id, prompts=["after"])
    assert later["exit"] == 0, later
    check(played, later)
    check_files(home / "conversations" / session_id)


@pytest.mark.parametrize("part", range(PARTS if FULL else 1))
async def test_the_system_fails_at_each_call(
    tmp_path: Path, rng: Random, storage: StorageName, part: int
) -> None:
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        spoiler = Spoiler(model.base_url, tmp_path, storage, runner)
        sound = await spoiler.play(runner.home())
        assert facts(sound, "ended") == list(PROMPTS)
        counts = most_in_a_thread(spoiler.log)
        wanted = {"sqlite": ("pwrite64", "fdatasync"), "jsonl": ("write", "fsync")}
        assert all(counts[name] > 2 for name in wanted[storage]), counts
        points = [
            (name, at, kind)
            for name in CALLS
            for at in range(1, counts[name] + 1)
            for kind in KINDS
        ]
        failures: list[str] = []
        for name, at, kind in points[part::PARTS] if FULL else rng.sample(points, SAMPLE):
            home = runner.home()
            try:
                played = await spoiler.play(home, *spoiled(name, kind, at))
                assert played["exit"] == (-9 if kind == "kill" else 0), played
                assert kind == "kill" or "(INJECTED)" in spoiler.log.read_text(), "not spoiled"
                await check_after(runner, home, played)
            except (AssertionError, TimeoutError) as error:
                failures.append(f"{kind} at {name} {at} of {counts[name]}: {error}")
        assert "\n".join(failures) == ""


async def test_a_file_that_can_grow_no_further(
    tmp_path: Path, rng: Random, storage: StorageName
) -> None:
    """A real short write: a part is taken, then nothing, until there is room again."""
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        for limit in rng.sample(LIMITS[storage], 200 if FULL else 2):
            home = runner.home()
            played = await runner.play(home, prompts=PROMPTS, file_limit=limit)
            ended = [fact for fact in played["told"] if fact.get("reason") == "end_turn"]
            assert len(ended) == len(PROMPTS) - 1, (limit, played)
            await check_after(runner, home, played)
