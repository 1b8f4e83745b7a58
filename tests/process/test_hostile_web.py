"""500 hostile pages and redirects in a network namespace: nothing private is asked."""

import json
import subprocess
import sys
from contextlib import suppress

import pytest

from kode_sidecar.agent.tools.web_fetch import RESULTS
from tests.conftest import FULL
from tests.support.program import ROOT

COUNT = 500 if FULL else 60


def _alone() -> list[str] | None:
    """Return how to start a program in a network of its own; None where that is impossible."""
    for words in (["unshare", "-n"], ["unshare", "-rn"]):
        with suppress(FileNotFoundError):
            if subprocess.run([*words, "ip", "link"], capture_output=True).returncode == 0:
                return words
    return None


ALONE = _alone() if sys.platform.startswith("linux") else None


@pytest.mark.skipif(ALONE is None, reason="NOT RUN: there is no network namespace to be had")
def test_hostile_pages_reach_nothing_private() -> None:
    assert ALONE is not None
    done = subprocess.run(
        [*ALONE, sys.executable, "-m", "tests.support.hostile_web", str(COUNT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    assert found["trapped"] == []
    assert found["untyped"] == {}
    assert found["count"] == COUNT
    assert found["results"].keys() <= RESULTS
    assert found["results"].keys() == RESULTS or not FULL
    # What is sent is the address and these, always the same: no cookie, no referrer, no body.
    assert found["methods"] == ["GET"]
    assert found["headers"] == ["accept", "accept-encoding", "host", "user-agent"]
    assert found["project"] is False
