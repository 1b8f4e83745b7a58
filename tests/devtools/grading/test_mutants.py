"""The grader finds faulty clients, and nothing wrong with right ones."""

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_script import ModelScript, read_script
from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.devtools.grading import Talk, verdicts
from kode_sidecar.devtools.recording import read_recording
from tests.devtools.grading.mutants import MUTANTS, NOT_CAUGHT, Mutant
from tests.support.program import ROOT, SERVE

FULL = os.environ.get("KODE_TEST_FULL") == "1"
SAMPLE, AT_ONCE, PARTS = 4, 3, 12 if FULL else 1
CAUGHT = 0.95
# A right client is done by then, a faulty one may wait for ever.
PATIENCE = 20.0
SOURCES = {
    "plugin.py": ROOT / "examples" / "plugin-ci" / "plugin.py",
    "fold.py": ROOT / "protocol" / "fold" / "fold.py",
}


async def graded(folder: Path, mutant: Mutant | None, patience: float) -> list[str]:
    """The rules that a client breaks in a session with everything in it."""
    script = read_script("everything")
    project = folder / "project"
    for name, text in script.files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8", newline="")
    for name, source in SOURCES.items():
        text = source.read_text(encoding="utf-8")
        if mutant is not None and mutant.file == name:
            assert text.count(mutant.old) >= 1, mutant
            text = text.replace(mutant.old, mutant.new, 1)
        (folder / name).write_text(text, encoding="utf-8")
    recording = folder / "talk.jsonl"
    async with ModelServer(
        Recording((), script.models), script=ModelScript(script).answer
    ) as model:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-X", "utf8", str(folder / "plugin.py"), str(project)),
            *(*SERVE, "--record", str(recording), "--grease"),
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "KIMI_BASE_URL": model.base_url,
                "KIMI_API_KEY": "scripted",
                "KODE_HOME": str(folder / "home"),
            },
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        await ended(recording)
    if not recording.exists():
        return ["nothing was recorded"]
    found = verdicts(Talk(read_recording(recording)))
    return [one.rule for one in found if one.faults]


async def ended(recording: Path) -> None:
    """Wait for the sidecar of a client that is gone, whose recording is whole once it has ended.

    In half a recording nobody can miss what the client did not say, such as `shutdown`.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                if not recording.exists() or read_recording(recording).whole:
                    return
                await asyncio.sleep(0.05)


@pytest.mark.program
async def test_a_right_client_breaks_no_rule(tmp_path: Path) -> None:
    for number in range(5 if FULL else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert await graded(folder, None, 3 * PATIENCE) == []


async def all_graded(mutants: Sequence[Mutant], folder: Path) -> Mapping[str, list[str]]:
    """The rules that each of them breaks, by its name."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(mutant: Mutant) -> list[str]:
        async with free:
            place = folder / mutant.name.replace(":", "")
            place.mkdir()
            return await graded(place, mutant, PATIENCE)

    found = await asyncio.gather(*map(one, mutants))
    return {mutant.name: rules for mutant, rules in zip(mutants, found, strict=True)}


@pytest.mark.program
@pytest.mark.parametrize("part", range(PARTS))
async def test_faulty_clients_are_caught(tmp_path: Path, rng: random.Random, part: int) -> None:
    chosen = MUTANTS[part::PARTS] if FULL else rng.sample(MUTANTS, SAMPLE)
    found = await all_graded(chosen, tmp_path)
    assert {name for name, rules in found.items() if not rules} <= NOT_CAUGHT


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 60
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.name for mutant in MUTANTS} >= NOT_CAUGHT
    assert len(NOT_CAUGHT) <= (1 - CAUGHT) * len(MUTANTS)
    texts = {name: source.read_text(encoding="utf-8") for name, source in SOURCES.items()}
    assert [
        one.name for one in MUTANTS if one.old not in texts[one.file] or one.old == one.new
    ] == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as top:
        for reported, broken in asyncio.run(all_graded(MUTANTS, Path(top))).items():
            sys.stdout.write(f"{reported}: {', '.join(broken) or 'NOT CAUGHT'}\n")
