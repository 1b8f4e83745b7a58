"""Edits and document sync: faults that must be found, and right clients that look faulty."""

from collections.abc import Callable
from typing import Any

import pytest

from kode_sidecar.devtools.grading.document_rules import (
    Faults,
    applied_shown,
    refused_untouched,
    stale_refused,
    versions_kept,
)
from kode_sidecar.devtools.grading.file_rules import files_changed
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording.recorded_lines import FilesLeftOut, RecordedFile
from tests.devtools.grading.talks import (
    Json,
    Said,
    applied,
    changed,
    edit,
    lines,
    opened,
    places,
    recording,
    talk,
    verdict,
)

OPEN = opened("one\ntwo\nthree\n")
EDIT = edit("k1", 1, (0, "ONE\n"))
Rule = Callable[[Talk], Faults]


def found(rule: Rule, *frames: Said, whole: bool = True) -> list[str]:
    """The faults that a rule finds."""
    return [fault.text for fault in rule(talk(*frames, whole=whole))]


@pytest.mark.parametrize(
    "typed",
    [
        changed(2, "one, as the user typed it\ntwo\nthree\n"),
        changed(2, "a line above\none\ntwo\nthree\n"),
        changed(2, "!", range=places(0, 3, 0, 3)),
    ],
)
@pytest.mark.parametrize("later", [(), (edit("k2", 3, (0, "ONE\n")), applied("k2"))])
def test_an_edit_over_what_the_user_typed_meanwhile(typed: Said, later: tuple[Said, ...]) -> None:
    text: str = talk(OPEN, typed).documents["file:///tea/a.txt"][-1].text or ""
    overwritten = changed(3, "ONE\n" + text.split("\n", 1)[1])
    frames = (OPEN, EDIT, typed, overwritten, applied("k1"), *later, verdict("applied"))
    assert found(stale_refused, *frames) == [
        "the edit of file:///tea/a.txt for version 1 was applied to version 2"
    ]
    honest = (OPEN, EDIT, typed, applied("k1", yes=False), verdict("conflict"))
    assert found(stale_refused, *honest) == []


def test_a_verdict_on_the_edit_that_is_sent_again_is_none_on_the_first() -> None:
    typed = changed(2, "ONE\ntwo\nthree!\n")
    again = (edit("k2", 2, (1, "TWO\n")), changed(3, "ONE\nTWO\nthree!\n"), applied("k2"))
    first = (OPEN, edit("k1", 1, (0, "ONE\n"), (1, "")), typed, applied("k1"))
    assert found(applied_shown, *first, verdict("applied"), *again) == []
    assert len(found(applied_shown, *first, *again, verdict("applied"))) == 1


def test_news_of_hunks_that_nobody_decided_is_no_verdict() -> None:
    misplaced = (OPEN, EDIT, changed(2, "one\nONE\nthree\n"), applied("k1"))
    for states in ((), ("proposed",), ("proposed", "diverged"), ("applied", "diverged")):
        assert len(found(applied_shown, *misplaced, *map(verdict, states))) == 1


def test_an_edit_may_be_reported_in_steps_or_together_with_typing() -> None:
    both = edit("k1", 1, (0, "ONE\n"), (2, "THREE\n"))
    steps = (changed(2, "one\ntwo\nTHREE\n"), changed(3, "ONE\ntwo\nTHREE\n"))
    cut = (changed(2, "two\nthree\n"), changed(3, "ONE\ntwo\nthree\n"))
    typing = changed(3, "ONE\ntwo!\nthree\n")
    for rule in (stale_refused, applied_shown):
        assert found(rule, OPEN, both, *steps, applied("k1")) == []
        assert found(rule, OPEN, EDIT, *cut, applied("k1")) == []
        assert found(rule, OPEN, EDIT, typing, applied("k1"), verdict("undone")) == []
        assert found(rule, OPEN, EDIT, verdict("applied"), typing, applied("k1")) == []


@pytest.mark.parametrize(
    ("range_of", "fault"),
    [
        (places(0, 9, 0, 9), "character 9 is beyond line 0, which has 4 units"),
        (places(7, 0, 7, 0), "line 7 is beyond the text, whose last line is 3"),
        (places(3, 0, 4, 0), ""),
        (places(0, 0, 0, 2**31 - 1), ""),
        (places(0, 4, 1, 0), ""),
    ],
)
def test_ranges_beyond_the_text(range_of: dict[str, Any], fault: str) -> None:
    change = found(versions_kept, OPEN, changed(2, "x", range=range_of))
    assert change == ([f"textDocument/didChange of file:///tea/a.txt: {fault}"] if fault else [])


def test_a_fault_says_what_was_expected_and_what_came() -> None:
    frames = (OPEN, EDIT, changed(2, "One\ntwo\nthree\n"), applied("k1"))
    (fault,) = applied_shown(talk(*frames))
    assert (fault.line, fault.expected) == (2, "line 1 as 'ONE'; 'One' came")


def test_a_recording_that_was_cut_accuses_nobody() -> None:
    shown = changed(2, "ONE\ntwo\nthree\n")
    refused = (OPEN, EDIT, shown, applied("k1", yes=False))
    assert len(found(refused_untouched, *refused)) == 1
    assert found(refused_untouched, *refused, whole=False) == []
    assert found(applied_shown, OPEN, EDIT, applied("k1"), whole=False) == []


CREATE: Said = (
    False,
    {
        "id": "k1",
        "method": "workspace/applyEdit",
        "params": {"edit": {"documentChanges": [{"kind": "create", "uri": "file:///tea/new%201"}]}},
    },
)
NEXT_TURN: Said = (True, {"id": 9, "method": "kode/turn/start", "params": {}})
OLD = RecordedFile(root=0, path="a.txt", text="")


def created(*between: Any, after: tuple[Said, ...] = (NEXT_TURN,)) -> list[str]:
    """The faults of a client that was asked for a new file."""
    reported = recording([OLD, *lines(CREATE), *between, *lines(applied("k1"), *after)])
    return [fault.text for fault in files_changed(Talk(reported))]


def test_a_file_that_was_not_created() -> None:
    assert len(created()) == 1
    assert created(RecordedFile(root=0, path="new 1", text="")) == []
    assert created(FilesLeftOut(root=0, count=1)) == []
    assert created(after=()) == []
    document: Json = {"uri": "file:///tea/new%201", "version": 1, "text": ""}
    show: Json = {"method": "textDocument/didOpen", "params": {"textDocument": document}}
    assert created(*lines((True, show))) == []


def test_an_edit_of_a_closed_file_that_went_elsewhere() -> None:
    wrong = found(files_changed, EDIT, applied("k1"), verdict("diverged"))
    assert len(wrong) == 1
    assert found(files_changed, EDIT, applied("k1"), verdict("applied")) == []
    assert found(files_changed, EDIT, applied("k1", yes=False), verdict("conflict")) == []
    again = (edit("k2", 1, (0, "1\n")), applied("k2", yes=False), verdict("conflict"))
    assert found(files_changed, EDIT, applied("k1"), *again) == []
