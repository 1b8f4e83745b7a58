"""What the tools need from a session: where proposals go, and what its model was shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kode_sidecar.kernel.contracts import ToolCall
from kode_sidecar.workspace.document import Document

Rewrite = Callable[[Document, str], str]
"""`(document, text)` → new text, both LF; `text` has the session's pending edits in it.

It may be called again on a later text. It raises KodeError where it does not fit.
"""


@dataclass(frozen=True)
class Proposed:
    """What became of a proposal. `before` and `after` are the session's text, LF line ends.

    `text` is the text the session sees now. `message` tells the model what was done with the
    hunks, `summary` says it in a few words. A file that was created has no text before, one that
    was deleted none after; `path` of a moved one is its new name.
    """

    path: str
    before: str
    after: str
    text: str
    summary: str
    message: str
    change_set_id: str = ""
    hunk_ids: tuple[str, ...] = ()


class Proposals(Protocol):
    """Where edits of text go: the change sets of a session."""

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """Propose what `rewrite` makes of the file, as hunks.

        A file whose creation is still pending is one like any other: the text to create it with
        changes. Raises KodeError: what `rewrite` raises, `Denied` when the user refuses a
        sensitive target, and what `SessionFiles.document` raises.
        """
        ...


class FileProposals(Proposals, Protocol):
    """Where files are created, moved and deleted: the same change sets.

    What exists is what `SessionFiles` says. Every method raises KodeError: `Denied` as above, and
    what `SessionFiles.document` raises.
    """

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """Propose a new file with this text (LF). Raises `ToolFailed` where there is one."""
        ...

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """Propose to rename a file. Raises `ToolFailed` where `target` exists."""
        ...

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """Propose to delete a file. One whose creation is pending is merely taken back."""
        ...


class ShownLines(Protocol):
    """What the model has been shown: lines of a text, by the text's revision.

    `key` is `Document.key`, `rev` the hex SHA-256 of the text or the beginning of it that the
    model was given; lines count from 1, `end` is inclusive.
    """

    def was_shown(self, key: str, rev: str, start: int, end: int) -> bool:
        """Whether every one of these lines was shown in that revision; an empty range was."""
        ...

    def text_of(self, key: str, rev: str) -> str | None:
        """The whole text (LF) of a revision of which some lines were shown; None if forgotten."""
        ...

    def note(self, document: Document, text: str, start: int, end: int) -> None:
        """The model was shown these lines of `text` (LF), the document's with pending edits."""
        ...

    def note_edit(self, document: Document, before: str, after: str) -> None:
        """The model turned `before` into `after`: it knows its own lines, and those it knew."""
        ...
