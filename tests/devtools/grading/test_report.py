"""`kode-sidecar grade` as a command: what it prints, writes for CI, and its exit codes."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from tests.devtools.grading.talks import Json
from tests.editors.recordings import TALKS
from tests.support.program import PROGRAM, SERVE

GOOD = TALKS / "neovim.jsonl"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A recording of a client that counts a version twice."""
    text = GOOD.read_text(encoding="utf-8")
    assert '"version":7,' in text
    file = tmp_path / "faulty.jsonl"
    file.write_text(text.replace('"version":7,', '"version":6,', 1), encoding="utf-8", newline="\n")
    return file


def graded(*arguments: str | Path) -> tuple[int, str, str]:
    """The exit code and what is written."""
    done = subprocess.run(
        [*PROGRAM, "grade", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.program
def test_a_finding_says_what_was_expected_and_shows_the_message(faulty: Path) -> None:
    code, text, _ = graded(faulty, "--show")
    assert code == 1
    assert "version 6 follows version 6" in text
    assert "expected: a version above 6" in text
    assert '"uri":"file:' in text
    code, text, _ = graded(faulty, "--json")
    found: list[Json] = json.loads(text)["verdicts"]
    (broken,) = [one for one in found if one["state"] == "broken"]
    (fault,) = broken["faults"]
    assert (code, broken["rule"], fault["expected"]) == (1, "versions-kept", "a version above 6")
    assert json.loads(fault["frame"])["params"]["textDocument"]["version"] == 6


@pytest.mark.program
def test_what_is_required_must_have_an_occasion(faulty: Path) -> None:
    assert graded(GOOD, "--require", "applied-shown")[0] == 0
    code, _, errors = graded(GOOD, "--require", "applied-shown", "--require", "unknown-refused")
    assert (code, "`unknown-refused` is required" in errors) == (1, True)
    code, _, errors = graded(GOOD, "--require", "all-well")
    assert (code, "There is no rule `all-well`. The rules are hands-shaken, " in errors) == (
        2,
        True,
    )


@pytest.mark.program
def test_a_report_for_ci(faulty: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    assert graded(GOOD, faulty, "--junit", file)[0] == 1
    good, bad = ElementTree.parse(file).getroot()
    assert (good.get("failures"), bad.get("failures")) == ("0", "1")
    (failure,) = bad.iter("failure")
    assert "expected: a version above 6" in (failure.text or "")
    assert int(good.get("skipped", "0")) == len(list(good.iter("skipped"))) > 0
    assert graded(GOOD, "--junit", tmp_path / "nowhere" / "x.xml")[0] == 2


@pytest.mark.program
def test_what_is_said_before_initialize_is_recorded(tmp_path: Path) -> None:
    hello: Json = {"processId": None, "capabilities": {}, "initializationOptions": {}}
    said: list[Json] = [
        {"id": 1, "method": "kode/session/list", "params": {}},
        {"id": 2, "method": "initialize", "params": hello},
        {"method": "initialized", "params": {}},
        {"id": 3, "method": "shutdown"},
        {"method": "exit"},
    ]
    for first, fault in ((said, "kode/session/list came before"), (said[1:], "")):
        talk = tmp_path / f"talk-{len(first)}.jsonl"
        frames = (encode_frame(json.dumps({"jsonrpc": "2.0", **one}).encode()) for one in first)
        subprocess.run(
            [*SERVE, "--record", talk], input=b"".join(frames), capture_output=True, check=True
        )
        code, text, _ = graded(talk)
        assert (code, fault in text) == (int(bool(fault)), True)
