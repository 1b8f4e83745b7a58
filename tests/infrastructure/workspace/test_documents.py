"""The buffer store: `didChange` against a model that works on one string."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp

from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.infrastructure.workspace.document import Document, TextChange
from kode_sidecar.infrastructure.workspace.documents import DocumentChange, Documents
from tests.support import text_model

URI = "file:///work/a.py"


def opened(text: str, encoding: PositionEncoding = "utf-16") -> tuple[Documents, Document]:
    documents = Documents(encoding)
    documents.open(URI, "python", 1, text)
    document = documents.get(URI)
    assert document is not None
    return documents, document


def ranged(start: Position, end: Position, text: str) -> dict[str, Any]:
    return {
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        },
        "text": text,
    }


@st.composite
def sessions(draw: st.DrawFn) -> tuple[str, PositionEncoding, list[tuple[int, int, str]]]:
    """A text and changes to it; offsets are wild and brought into range when they are used."""
    change = st.tuples(st.integers(0, 60), st.integers(0, 9), text_model.tangled_text)
    encoding: PositionEncoding = draw(st.sampled_from(text_model.ENCODINGS))
    return draw(text_model.tangled_text), encoding, draw(st.lists(change, max_size=6))


@settings(max_examples=300)
@given(sessions())
def test_incremental_changes_equal_the_model(
    session: tuple[str, PositionEncoding, list[tuple[int, int, str]]],
) -> None:
    text, encoding, changes = session
    documents, document = opened(text, encoding)
    reported: list[DocumentChange] = []
    documents.subscribe(reported.append)
    for version, (at, length, new) in enumerate(changes, 2):
        start = text_model.position_of(text, min(at, len(text)), encoding)
        end = text_model.position_of(text, min(at + length, len(text)), encoding)
        first = text_model.offset_of(text, start, encoding)
        last = text_model.offset_of(text, end, encoding)
        documents.change(URI, version, [ranged(start, end, new)])
        assert reported[-1].entries == (TextChange(first, last, new),)
        text = text[:first] + new + text[last:]
        assert (document.text, document.version, document.synced) == (text, version, True)
        check_positions(document, text, encoding)


def check_positions(document: Document, text: str, encoding: PositionEncoding) -> None:
    lines = text_model.lines_of(text)
    assert list(document.lines) == (lines if lines[-1] else lines[:-1])
    starts = [sum(map(len, lines[:index])) for index in range(len(document.lines))]
    assert list(document.line_starts) == starts
    for offset in range(len(text) + 1):
        position = text_model.position_of(text, offset, encoding)
        assert document.position_at(offset, encoding) == position


@given(text_model.tangled_text, text_model.wild_position, st.sampled_from(text_model.ENCODINGS))
def test_wild_positions_are_clamped(
    text: str, position: Position, encoding: PositionEncoding
) -> None:
    documents, document = opened(text, encoding)
    reported: list[DocumentChange] = []
    documents.subscribe(reported.append)
    fits = position.line <= len(document.lines) + 1
    documents.change(URI, 2, [ranged(position, position, "x")])
    assert document.synced == fits
    if fits:
        at = text_model.offset_of(text, position, encoding)
        assert reported[-1].entries == (TextChange(at, at, "x"),)


@given(text_model.tangled_text, text_model.tangled_text)
def test_a_full_text_is_told_as_one_smallest_change(old: str, new: str) -> None:
    documents, document = opened(old)
    reported: list[DocumentChange] = []
    documents.subscribe(reported.append)
    documents.change(URI, 2, [{"text": new}])
    assert document.text == new
    (change,) = reported
    if old == new:
        assert change.entries == ()
        return
    (entry,) = change.entries
    assert old[: entry.start] + entry.text + old[entry.end :] == new
    kept = old[entry.start : entry.end]
    assert not (kept and entry.text and (kept[0] == entry.text[0] or kept[-1] == entry.text[-1]))


def test_listeners_see_the_text_after_each_entry() -> None:
    documents, document = opened("one two\n")
    seen: list[tuple[str, bool, tuple[TextChange, ...]]] = []
    documents.subscribe(lambda change: seen.append((document.text, change.last, change.entries)))
    first = ranged(Position(0, 4), Position(0, 7), "2")
    second = ranged(Position(0, 0), Position(0, 3), "1")
    documents.change(URI, 2, [first, second])
    assert seen == [
        ("one 2\n", False, (TextChange(4, 7, "2"),)),
        ("1 2\n", True, (TextChange(0, 3, "1"),)),
    ]


def test_a_carriage_return_and_a_line_feed_that_meet_are_one_line_end() -> None:
    documents, document = opened("a\rb\n")
    documents.change(URI, 2, [ranged(Position(1, 0), Position(1, 1), "")])
    assert (list(document.lines), list(document.line_starts)) == (["a\r\n"], [0])


def test_changes_come_as_dicts_or_structs_or_attrs() -> None:
    documents, document = opened("abc\n")
    span = Range(Position(0, 1), Position(0, 2))
    documents.change(URI, 2, [lsp.TextDocumentContentChangeWholeDocument(text="abc\n\n")])
    documents.change(
        URI,
        3,
        [
            lsp.TextDocumentContentChangePartial(
                range=lsp.Range(lsp.Position(0, 1), lsp.Position(0, 2)), text="X", range_length=1
            )
        ],
    )
    documents.change(URI, 4, ({"range": span, "text": "Y", "rangeLength": 1},))
    assert (document.text, document.version) == ("aYc\n\n", 4)


def test_a_version_that_goes_back_is_tolerated() -> None:
    documents, document = opened("a")
    documents.change(URI, 0, [{"text": "b"}])
    documents.change(URI, None, [{"text": "c"}])
    assert (document.text, document.version, document.synced) == ("c", 0, True)


BAD_CHANGES: dict[str, Any] = {
    "backwards": [ranged(Position(0, 2), Position(0, 1), "x")],
    "negative": [ranged(Position(-1, 0), Position(0, 1), "x")],
    "far past the end": [ranged(Position(7, 0), Position(8, 0), "x")],
    "no text": [{"range": None}],
    "not a list": {"text": "x"},
    "wrong types": [{"text": 5}],
    "scalar": [3],
}


@pytest.mark.parametrize("changes", BAD_CHANGES.values(), ids=BAD_CHANGES.keys())
def test_a_change_that_cannot_be_applied_unsyncs(changes: Any) -> None:
    documents, document = opened("abc\n")
    reported: list[DocumentChange] = []
    documents.subscribe(reported.append)
    documents.change(URI, 2, changes)
    assert not document.synced
    assert document.unsynced_reason
    assert [change.kind for change in reported] == ["unsynced"]


def unknown(documents: Documents) -> None:
    documents.close(URI)
    documents.change(URI, 5, [ranged(Position(0, 0), Position(0, 0), "x")])


def undecodable(documents: Documents) -> None:
    documents.mark_unsynced("file:///work/%61.py", "a message could not be decoded")


def misfit(documents: Documents) -> None:
    documents.change(URI, 2, BAD_CHANGES["backwards"])


MENDS: dict[str, Callable[[Documents], None]] = {
    "didOpen": lambda documents: documents.open(URI, "python", 9, "new\n"),
    "full text": lambda documents: documents.change(URI, 9, [{"text": "new\n"}]),
    "full text among others": lambda documents: documents.change(
        URI,
        9,
        [
            ranged(Position(50, 0), Position(50, 0), "lost"),
            {"text": "ne\n"},
            ranged(Position(0, 2), Position(0, 2), "w"),
        ],
    ),
    "saved text": lambda documents: documents.save(URI, "new\n"),
}


@pytest.mark.parametrize("spoil", [unknown, undecodable, misfit])
@pytest.mark.parametrize("mend", MENDS.values(), ids=MENDS.keys())
def test_unsynced_until_the_text_is_told_anew(
    spoil: Callable[[Documents], None], mend: Callable[[Documents], None]
) -> None:
    documents, _ = opened("abc\n")
    spoil(documents)
    document = documents.get(URI)
    assert document is not None
    assert not document.synced
    documents.change(URI, 3, [ranged(Position(0, 0), Position(0, 0), "x")])
    assert not document.synced, "a ranged change cannot mend it"
    kinds: list[str] = []
    documents.subscribe(lambda change: kinds.append(change.kind))
    mend(documents)
    document = documents.get(URI)
    assert document is not None
    assert (document.synced, document.text) == (True, "new\n")
    assert kinds[0] == "opened", "no offset of the text before may be carried over"


def test_closing_ends_it_all() -> None:
    documents, document = opened("abc\n")
    kinds: list[str] = []
    unsubscribe = documents.subscribe(lambda change: kinds.append(change.kind))
    documents.save(URI, None)
    documents.close(URI)
    documents.close(URI)
    documents.save(URI, "abc\n")
    assert (documents.get(URI), documents.all_open(), document.is_open) == (None, [], False)
    assert kinds == ["saved", "closed"]
    unsubscribe()
    documents.open(URI, "python", 2, "x")
    assert kinds == ["saved", "closed"]


def test_a_saved_text_that_differs_is_a_change_too() -> None:
    documents, document = opened("abc\r\n")
    kinds: list[str] = []
    documents.subscribe(lambda change: kinds.append(change.kind))
    documents.save(URI, "abc\n")  # only the line ends differ: some editors send LF
    documents.save(URI, "abd\n")
    assert kinds == ["saved", "changed", "saved"]
    assert document.text == "abd\n"


def test_a_failing_listener_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    documents, document = opened("a")
    kinds: list[str] = []

    def fail(change: DocumentChange) -> None:
        raise RuntimeError

    documents.subscribe(fail)
    documents.subscribe(lambda change: kinds.append(change.kind))
    documents.change(URI, 2, [{"text": "b"}, {"text": "c"}])
    assert (document.text, kinds) == ("c", ["changed", "changed"])
    assert "listener" in caplog.text


def test_facts_of_a_document() -> None:
    _, document = opened("中\r\nb\rc\r\n")
    assert (document.eol, document.lf_text, document.language_id) == (
        "\r\n",
        "中\nb\nc\n",
        "python",
    )
    _, lf = opened("中\nb\nc\n")
    assert lf.rev == document.rev
