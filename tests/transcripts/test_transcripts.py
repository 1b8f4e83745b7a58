"""Every recording plays again as it was recorded, in the real process, without key and network."""

import pytest

from kode_sidecar.devtools.recording.comparison import different_requests
from tests.conftest import FULL
from tests.support.transcripts import Case, cases, prompts_of, read_prompts, update

# 50 times in full, in parts: each ends well before a test counts as hanging.
PARTS, TIMES = (range(10), 5) if FULL else (range(1), 1)


# E6
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
async def test_it_plays_as_it_was_recorded(
    case: Case, part: int, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--update-golden") and part == 0:
        await update(case)
    for _ in range(TIMES):
        replayed = await case.replay()
        assert replayed.difference is None, f"\n{replayed.difference}"
        found = different_requests(case.golden_requests(), case.asked(replayed))
        assert found is None, f"\n{found}\nIf this is meant: --update-golden, and read the change"
        prompts = [{**prompt, "cases": ()} for prompt in prompts_of(replayed.requests)]
        known = [{**entry, "cases": ()} for entry in read_prompts() if case.name in entry["cases"]]
        assert sorted(prompts, key=str) == sorted(known, key=str), "prompts.json is out of date"
