"""Stories that once broke a promise, and fresh ones from the seed of this run."""

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.playing import KINDS, Stage, Tally, search, shrink
from simulation.story import read_story
from tests.conftest import FULL, Played

STORIES = sorted((Path(__file__).parent / "stories").glob("*.story"))
PARTS = 2
CPU_SECONDS = (600.0 if FULL else 60.0) / len(KINDS) / PARTS
"""Of one core, for a minute of stories in all."""
MOST_STORIES = {"lives": 100_000 // PARTS} if FULL else {}
"""A full run plays so many of a world, however long they take."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as opened:
        yield opened


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_what_was_mended_stays_mended(stage: Stage, path: Path) -> None:
    failure = stage.play(read_story(path))
    if failure is not None:
        raise failure


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_fresh_story_breaks_a_promise(
    stage: Stage, kind: str, part: int, rng: random.Random, played: Played
) -> None:
    tally, seed = Tally(), rng.getrandbits(40)
    runs = MOST_STORIES.get(kind)
    cpu_seconds = CPU_SECONDS if runs is None else math.inf
    for found in search(
        stage,
        kind,
        seed,
        runs=runs or sys.maxsize,
        seconds=10 * cpu_seconds,  # a hang ceiling
        tally=tally,
        cpu_seconds=cpu_seconds,
    ):
        small = shrink(stage, found, seconds=20)
        small.failure.add_note(f"seed {found.seed}, as a story:\n{small.story}")
        raise small.failure
    played(tally.stories, f"stories of the world of {kind}")
