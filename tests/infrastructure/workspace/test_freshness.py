"""What the model was shown of a file, and what others changed since. C13"""

from pathlib import Path

import pytest

from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.freshness import (
    MAX_FILES,
    MAX_REVISIONS,
    ForeignChange,
    Freshness,
)

TEXT = "一\r\ntwo 😀\r\nthree\r\nfour\r\nfive\r\n"
LF = TEXT.replace("\r\n", "\n")


def document(text: str, name: str = "a.txt") -> Document:
    return Document(f"file:///p/{name}", text, version=1, is_open=True)


def itself(document: Document) -> Document:
    return document


@pytest.fixture
def store() -> Freshness:
    return Freshness(itself, lambda: "now")


def test_lines_are_shown_in_a_revision(store: Freshness) -> None:
    a = document(TEXT)
    store.note(a, LF, 2, 3)
    rev = text_rev(LF)
    for known in (rev, rev[:12]):
        assert store.was_shown(a.key, known, 2, 3)
        assert store.was_shown(a.key, known, 4, 3)
        assert not store.was_shown(a.key, known, 1, 2)
        assert not store.was_shown(a.key, known, 3, 4)
    assert not store.was_shown(a.key, text_rev(LF + "x"), 2, 3)
    assert not store.was_shown(a.key, "", 2, 3)
    assert not store.was_shown("file:///p/other", rev, 2, 2)
    store.note(a, LF, 4, 4)
    assert store.was_shown(a.key, rev, 2, 4)
    assert store.text_of(a.key, rev[:12]) == LF
    assert store.text_of(a.key, "0" * 12) is None


def test_the_model_knows_what_it_wrote(store: Freshness) -> None:
    a = document(TEXT)
    store.note(a, LF, 1, 2)
    after = LF.replace("two 😀\n", "2\n2½\n")
    store.note_edit(a, LF, after)
    assert store.was_shown(a.key, text_rev(after), 1, 3)
    assert not store.was_shown(a.key, text_rev(after), 4, 4)


def take(store: Freshness, key: str) -> ForeignChange | None:
    """What the model was not told; from now on it was."""
    change = store.unreported(key)
    assert store.unreported(key) == change
    store.report(key)
    return change


def gaps(store: Freshness, a: Document, line: int, end: int | None = None) -> tuple[str, ...]:
    """Of lines from 1, inclusive."""
    starts = [*a.line_starts, len(a.text)]
    return store.gaps(a, starts[line - 1], starts[line if end is None else end])


def test_a_change_by_others_makes_known_lines_stale_and_is_told_once(store: Freshness) -> None:
    a = document(TEXT)
    assert gaps(store, a, 1) == ("unread",)
    store.note(a, LF, 1, 3)
    assert gaps(store, a, 1, 3) == ()
    changed = "zero\r\n" + TEXT.replace("two", "2")
    b = document(changed)
    assert gaps(store, b, 2) == ()
    assert gaps(store, b, 3) == ("staleRead",)
    assert gaps(store, b, 5) == ("unread",)
    record = store.meet(b)
    assert record is not None
    assert record.changed
    lf = changed.replace("\r\n", "\n")
    assert take(store, a.key) == ForeignChange(a.key, ((LF, lf),))
    assert take(store, a.key) is None
    assert record.changed  # until it is read again
    assert gaps(store, b, 3) == ("staleRead",)
    store.note(b, lf, 1, 6)
    assert not record.changed
    assert gaps(store, b, 1, 6) == ()


def test_what_was_read_as_it_is_now_need_not_be_told(store: Freshness) -> None:
    store.note(document(TEXT), LF, 1, 5)
    changed = LF.replace("two", "2")
    b = document(changed)
    store.note(b, changed, 4, 5)
    change = take(store, b.key)
    assert change is not None
    assert change.steps == ((LF, changed),)
    again = changed.replace("four", "4")
    store.note(document(again), again, 1, 5)
    assert take(store, b.key) is None


def test_line_ends_alone_are_no_change(store: Freshness) -> None:
    store.note(document(TEXT), LF, 1, 5)
    record = store.meet(document(LF))
    assert record is not None
    assert not record.changed


def test_own_edits_are_no_change_and_clear_one(store: Freshness) -> None:
    store.note(document(TEXT), LF, 1, 5)
    theirs = TEXT.replace("five", "5")
    store.meet(document(theirs))
    ours = theirs.replace("three", "3\r\n3½")
    store.applied(document(TEXT).key, theirs, ours)
    record = store.meet(document(ours))
    assert record is not None
    assert not record.changed
    assert gaps(store, document(ours), 1, 5) == ()
    assert gaps(store, document(ours), 6) == ("staleRead",)
    # Theirs is still told, ours is not.
    change = take(store, record.key)
    assert change is not None
    assert change.steps == ((LF, theirs.replace("\r\n", "\n")),)


def test_a_view_with_pending_edits_shows_the_lines_beneath(store: Freshness) -> None:
    a = document(TEXT)
    view = LF.replace("two 😀\n", "2\n2½\n").replace("four\n", "")
    store.note(a, view, 2, 4)  # 2, 2½, three
    assert gaps(store, a, 3) == ()
    assert gaps(store, a, 2) == ("unread",)  # hidden by the pending edit
    assert gaps(store, a, 4) == ("unread",)
    assert store.was_shown(a.key, text_rev(view), 2, 4)


def test_an_empty_file_has_nothing_unread(store: Freshness) -> None:
    assert store.gaps(document(""), 0, 0) == ()
    store.note(document(""), "", 1, 0)
    assert store.gaps(document(""), 0, 0) == ()


def test_a_file_that_is_gone_is_told_once_and_may_come_back(store: Freshness) -> None:
    a = document(TEXT)
    store.note(a, LF, 1, 5)
    store.lose(a.key, "deleted")
    store.lose(a.key, "deleted")
    assert take(store, a.key) == ForeignChange(a.key, (), "deleted")
    assert take(store, a.key) is None
    record = store.meet(a)
    assert record is not None
    assert not record.lost


def test_what_is_kept_is_bounded(store: Freshness, tmp_path: Path) -> None:  # W16
    for number in range(MAX_FILES + 3):
        store.note(document("x\n", f"{number}.txt"), "x\n", 1, 1)
    keys = [record.key for record in store]
    assert len(keys) == MAX_FILES
    assert keys[0].endswith("/3.txt")
    a = document(TEXT)
    for number in range(MAX_REVISIONS + 1):
        store.note(a, f"{number}\n{LF}", 1, 1)
    assert not store.was_shown(a.key, text_rev(f"0\n{LF}"), 1, 1)
    assert store.was_shown(a.key, text_rev(f"1\n{LF}"), 1, 1)
