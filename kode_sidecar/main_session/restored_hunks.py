"""Pending hunks of an earlier process: where they stand today, if anywhere.

A hunk holds as far as its base does: the text it was made for is still the same, or the lines it
replaces are still there, once.
"""

from itertools import accumulate

from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.domain.line_diff import split_lines
from kode_sidecar.domain.text_edit import between_lines
from kode_sidecar.main_session.event_history import ToldChangeSet, ToldHunk
from kode_sidecar.main_session.proposed_hunk import ChangeSet, FileName, ProposedHunk
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.uris import canonical_key


def told_change_set(told: ToldChangeSet) -> ChangeSet:
    """A change set as its events have told it."""
    hunks = {hunk_id: _proposed_hunk(told.turn_id, hunk) for hunk_id, hunk in told.hunks.items()}
    return ChangeSet(told.id, told.turn_id, hunks)


def find_hunk(told: ToldHunk, document: Document) -> Hunk | None:
    """The hunk in today's text; None where its base does not hold any more."""
    text, view = document.text, told.view
    old, new = view.old_text or "", view.new_text or ""
    starts = list(accumulate(map(len, split_lines(text)), initial=0))
    base, span = told.file.base, view.range
    places: list[int] = []
    if base is not None and span is not None and base.sha256 == document.rev:
        places = starts[span.start.line : span.start.line + 1]
    elif old:
        places = starts
    found = [
        start
        for start in places
        if text.startswith(old, start) and between_lines(text, start + len(old))
    ]
    if len(found) != 1:
        return None
    return Hunk(view.hunk_id, found[0], found[0] + len(old), old, new)


def overlaps(hunk: Hunk, others: list[Hunk]) -> bool:
    """Whether it takes the place of one of the others."""
    return any(hunk.start < other.end and other.start < hunk.end for other in others)


def _proposed_hunk(turn_id: str, told: ToldHunk) -> ProposedHunk:
    view, file = told.view, told.file
    return ProposedHunk(
        id=view.hunk_id,
        turn_id=turn_id,
        file=FileName(file.uri, canonical_key(file.uri), file.path),
        old_text=view.old_text or "",
        new_text=view.new_text or "",
        flags=view.flags,
        code_points=view.code_points,
        was_open=False,
        announced=told.announced,
        state=view.state,
        superseded_by=view.superseded_by,
        reason=view.reason,
    )
