"""The recorded session is what the real process says, and keeps its own promises."""

import copy
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.golden_session import GOLDEN, Json, play, read_golden
from tests.support.normal_form import Notification
from tests.support.protocol_files import TABLE, canonical, recoded, recoded_initialize
from tests.support.session_fold import SessionFold

REFRESH = "run `python -m tests.support.golden_session` and look at what changed"


# E1 E2
@pytest.mark.program
async def test_the_process_still_says_what_is_written_down(tmp_path: Path) -> None:
    project = tmp_path / "teahouse"
    project.mkdir()
    played = await play(project)
    same = joined(played) == joined(read_golden())
    assert same, f"{GOLDEN.name} is out of date: {REFRESH}"


def joined(entries: Iterable[Json]) -> list[Json]:
    """Neighbouring `kode/event` as one: how many events come together depends on the load."""
    found: list[Json] = []
    for entry in copy.deepcopy(list(entries)):
        last = found[-1]["message"] if found else {}
        if entry["message"].get("method") == "kode/event" == last.get("method"):
            last["params"]["events"] += entry["message"]["params"]["events"]
        else:
            found.append(entry)
    return found


def test_its_frames_are_of_the_types_of_the_table() -> None:
    asked: dict[object, str] = {}  # the server's ids are texts, the client's numbers
    for entry in read_golden():
        frame = entry["message"]
        method = frame.get("method") or asked[frame["id"]]
        if "id" in frame:
            asked[frame["id"]] = method
        again = frame
        if method == "initialize":
            again = recoded_initialize(frame)
        elif method in TABLE:
            again = recoded(frame, TABLE[method].result)
        # A client may leave out what the types spell out, or spell out a default.
        assert entry["from"] == "client" or canonical(again) == canonical(frame)


def stream() -> list[Notification]:
    """What the server says unasked, in order."""
    frames = [entry["message"] for entry in read_golden() if entry["from"] == "server"]
    return [(frame["method"], frame["params"]) for frame in frames if "id" not in frame]


# O2 O3 O4
def test_our_fold_finds_nothing_wrong_with_it() -> None:
    fold = SessionFold("session-1")
    for method, params in stream():
        if method == "kode/event":
            for event in params["events"]:
                assert fold.event(event)
        for delta in params["deltas"] if method == "kode/delta" else ():
            assert fold.delta(delta) == delta["add"]
    assert fold.anomalies == []
    assert [turn.stop_reason for turn in fold.turns.values()] == ["end_turn"]
    states = [hunk.state for hunk in fold.change_sets["changes-1"].hunks()]
    assert states == ["applied", "rejected"]
