"""What a session needs from the editor's side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.domain.change_set import FileChangeKind
from kode_sidecar.core.protocol.documents import TextDocumentRef
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.core.text.text_edit import Edit, apply_edits
from kode_sidecar.core.text.text_lines import LineIndex, PositionEncoding


@dataclass(frozen=True)
class DocumentEdit:
    """One versioned edit of one document (LSP `TextDocumentEdit`); edits ascending and disjoint.

    `version` is None for a document that is not open. `label` names the undo stop.
    """

    label: str
    uri: str
    version: int | None
    edits: Sequence[EditorTextEdit]

    def applied_to(self, base: str, encoding: PositionEncoding) -> str:
        """Return a text after the edit."""
        index = LineIndex(base, encoding)
        edits = [
            Edit(
                index.offset(one.range.start.line, one.range.start.character),
                index.offset(one.range.end.line, one.range.end.character),
                one.new_text,
            )
            for one in self.edits
        ]
        return apply_edits(base, edits)


@dataclass(frozen=True)
class FileEdit:
    """Create a file with `text`, rename it to `new_uri`, or delete it (LSP `CreateFile` etc.).

    `ask`: the editor asks its user for confirmation, if it can.
    """

    label: str
    kind: FileChangeKind
    uri: str
    new_uri: str = ""
    text: str = ""
    ask: bool = False


@dataclass(frozen=True)
class ApplyAnswer:
    """The editor's answer to `workspace/applyEdit`. It is no proof: verify the text."""

    applied: bool
    reason: str | None = None


class EditorPort(Protocol):
    """The editor as a session sees it: one ordered stream out, a few questions."""

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events as one batch, in order with all other output; never blocks."""
        ...

    def publish_delta(self, delta: BlockDelta) -> None:
        """Send new text of a block; unsent deltas may be merged."""
        ...

    async def flow(self) -> None:
        """Wait until the outgoing queue has room."""
        ...

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Ask the editor to apply one edit. No time limit; a lost client counts as not applied."""
        ...

    def can_change_files(self, kind: FileChangeKind) -> bool:
        """Whether the editor can create, rename or delete files when asked to."""
        ...

    async def open_document(self, uri: str) -> bool:
        """Ask the editor to open a file; False if it cannot. It then sends `didOpen` itself."""
        ...

    def can_save(self) -> bool:
        """Whether the editor saves open documents when it is asked to."""
        ...

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        """Ask the editor to save documents that still have that version; return the saved URIs."""
        ...

    async def refresh(self, uri: str) -> None:
        """Fetch a file's current document from an editor that does not report changes itself.

        Called before the model reads the file or proposes an edit of it.
        """
        ...

    def warn(self, line: str) -> None:
        """Report a mistake of the editor's plugin to its developers; never on the wire."""
        ...

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Ask the user; return None without an answer in time."""
        ...

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Ask the user to choose; the answer is empty if they closed the question.

        No time limit. Raises KodeError when the editor cannot ask.
        """
        ...


class WithoutDocuments:
    """The part of `EditorPort` of whoever holds no document: all texts are those on disk."""

    def can_change_files(self, kind: FileChangeKind) -> bool:
        """Return True: the sidecar itself creates, moves and deletes files, or only proposes to."""
        del kind
        return True

    async def open_document(self, uri: str) -> bool:
        """Return False: nobody can be asked to open a file."""
        del uri
        return False

    def can_save(self) -> bool:
        """Return False: what is applied is on disk."""
        return False

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        """Save nothing, as `can_save` says."""
        del documents
        return ()
