"""Hunks as workspace edits: right in every encoding, for every line end, byte for byte."""

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.event_log.editor_port import DocumentEdit
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf
from kode_sidecar.core.text.text_lines import PositionEncoding
from tests.support.edit_editor import Desk
from tests.support.edit_texts import lf_edit, texts

CALL = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")
ENCODINGS: list[PositionEncoding] = ["utf-8", "utf-16", "utf-32"]


@given(st.data(), texts(), st.sampled_from(ENCODINGS), st.booleans())
def test_accepted_hunks_make_the_text_and_touch_nothing_else(
    data: st.DataObject, text: str, encoding: PositionEncoding, some: bool
) -> None:
    target = data.draw(lf_edit(to_lf(text)))
    if target != to_lf(text):
        with tempfile.TemporaryDirectory() as root:
            asyncio.run(accept(Desk(Path(root).resolve(), encoding), text, target, some))


async def accept(desk: Desk, text: str, target: str, some: bool) -> None:
    buffer = desk.editor.open(desk.file("a.txt", ""), text)
    await desk.sets.proposals.propose("a.txt", lambda document, seen: target, CALL)
    hunks = desk.hunks[1:] if some and len(desk.hunks) > 1 else desk.hunks
    expected = apply_edits(text, [span(text, hunk.hunk_id, desk) for hunk in hunks])
    result = await desk.accept(*(hunk.hunk_id for hunk in hunks))
    assert len(result.applied) == len(hunks)
    assert buffer.text == expected
    if hunks == desk.hunks:
        assert to_lf(buffer.text) == target
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        assert buffer.text.count("\n") == buffer.text.count("\r\n")
    for edit in desk.editor.edits:
        check(edit, text, expected)


def span(text: str, hunk_id: str, desk: Desk) -> Edit:
    """Where a hunk stands, from the announced range: whole lines."""
    hunk = next(hunk for hunk in desk.hunks if hunk.hunk_id == hunk_id)
    assert hunk.range is not None
    lines = split_lines(text)
    start = sum(map(len, lines[: hunk.range.start.line]))
    end = start + len(hunk.old_text or "")
    assert text[start:end] == hunk.old_text
    return Edit(start, end, hunk.new_text or "")


def check(edit: DocumentEdit, text: str, expected: str) -> None:
    """R1: ascending, none touching. R2: no place behind the last line as Neovim counts lines."""
    for one, other in pairwise(edit.edits):
        assert (one.range.end.line, one.range.end.character) < (
            other.range.start.line,
            other.range.start.character,
        )
    mixed = 0 < text.count("\r\n") < text.count("\n")
    keeps_final = expected.endswith("\n") or not text.endswith("\n")
    if not mixed and keeps_final:
        last = max(len(split_lines(text)) - 1, 0)
        assert all(one.range.end.line <= last for one in edit.edits)
