"""Edits of a large file: from what the model asks for to what the editor gets."""

from random import Random
from time import process_time

import msgspec

from benchmarks.figures import Figure, medians
from benchmarks.programs import SIDECAR, Arena
from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.domain.hunk import Hunk, compose
from kode_sidecar.core.protocol.documents import ContentChange
from kode_sidecar.core.text.edit_match import EditMatch, locate
from kode_sidecar.core.text.text_edit import Edit, apply_edits, minimal_edits
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.overlay import Overlay

_LINES, _EDITS = 20_000, 50
_MANY, _CURSORS = 200_000, 200
_WORDS = ("def", "return", "self", "value", "index", "result", "name", "if", "else", "None", "data")


def edits(arena: Arena, runs: int) -> list[Figure]:  # noqa: ARG001
    """50 edits in 20,000 lines: quoted one by one, and as a whole new text to compare with."""
    text, pairs = _file(Random(1))
    new = text
    for old, put in pairs:
        new = new.replace(old, put)
    quoted: list[float | None] = []
    overwritten: list[float | None] = []
    for run in range(runs + 1):
        times = _timed(text, pairs, None), _timed(text, pairs, new)
        if run:  # the first goes through code that never ran
            quoted.append(times[0])
            overwritten.append(times[1])
    return [
        Figure("50 edits in 20,000 lines", "ms", medians({SIDECAR: quoted}), most=50),
        Figure("20,000 lines overwritten", "ms", medians({SIDECAR: overwritten}), most=50),
        Figure("key under 200 cursors in 6 MB", "ms", medians({SIDECAR: _keys(runs)}), most=20),
    ]


def _keys(runs: int) -> list[float | None]:
    """Milliseconds of the processor for each key typed at 200 places of a text with 50 hunks."""
    uri = "file:///bench/huge.py"
    documents, overlay = Documents("utf-16"), Overlay()
    documents.open(
        uri, "python", 1, "".join(f"line {at} of a text in lines\n" for at in range(_MANY))
    )
    document = documents.get(uri)
    assert document is not None
    starts = document.line_starts[100 :: _MANY // _EDITS]
    hunks = [Hunk(f"h{at}", at, at, "", "new\n") for at in starts]
    overlay.enter_branch(["turn"])
    overlay.add(document, hunks, "turn")
    documents.subscribe(lambda change: overlay.changed(change.document.key, change.entries))
    places = [Position(at * (_MANY // _CURSORS) + 7, 2) for at in range(_CURSORS)]
    changes = [ContentChange(text="x", range=Range(at, at)) for at in places]
    times: list[float | None] = []
    for version in range(2, runs + 3):
        start = process_time()
        documents.change(uri, version, changes)
        times.append((process_time() - start) * 1e3)
    assert len(overlay.pending(document)) == len(hunks)
    return times[1:]  # the first goes through code that never ran


def _timed(text: str, pairs: list[tuple[str, str]], new: str | None) -> float:
    """Milliseconds of the processor; `new` is the whole text, None to quote."""
    document = Document("file:///bench/large.py", text, version=1, is_open=True)
    start = process_time()
    if new is None:
        new = text
        for old, put in pairs:
            found = locate(new, old, put)
            assert isinstance(found, EditMatch)
            new = apply_edits(new, found.edits)
    drafts = compose(document.text, document.eol, [], new).drafts
    small = minimal_edits(text, [Edit(one.start, one.end, one.new_text) for one in drafts])
    wire = [
        {
            "range": Range(
                document.position_at(edit.start, "utf-16"), document.position_at(edit.end, "utf-16")
            ),
            "newText": edit.text,
        }
        for edit in small
    ]
    msgspec.json.encode(wire)
    taken = (process_time() - start) * 1e3
    assert len(drafts) == _EDITS
    return taken


def _file(random: Random) -> tuple[str, list[tuple[str, str]]]:
    """A text like a program's, and lines of it that occur once with what shall replace them."""
    lines = [
        "    " * random.randrange(4) + " ".join(random.choices(_WORDS, k=random.randrange(1, 7)))
        if random.random() < 0.85
        else ""
        for _ in range(_LINES)
    ]
    pairs: list[tuple[str, str]] = []
    for number in range(_EDITS):
        at = number * (_LINES // _EDITS) + 7
        lines[at] = f"    mark_{number:03} = None"
        pairs.append((lines[at], f"    mark_{number:03} = changed()\n    more()"))
    return "\n".join(lines) + "\n", pairs
