"""What a session needs from the editor's side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.domain.change_set import FileChangeKind
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.core.protocol.questions import AskParams, PermissionRequestParams
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
        """Return what the edit makes of a text."""
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

    `ask` lets the editor ask its user once more, where it can.
    """

    label: str
    kind: FileChangeKind
    uri: str
    new_uri: str = ""
    text: str = ""
    ask: bool = False


@dataclass(frozen=True)
class ApplyAnswer:
    """What the editor said to `workspace/applyEdit`. It is not proof: verify the text."""

    applied: bool
    reason: str | None = None


class EditorPort(Protocol):
    """The editor as a session sees it: one ordered stream out, a few questions."""

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events together. In order with everything else; never blocks."""
        ...

    def publish_delta(self, delta: BlockDelta) -> None:
        """Send growth of a block; merged freely while unsent."""
        ...

    async def flow(self) -> None:
        """Wait until the outgoing queue has room."""
        ...

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Ask the editor to apply one edit. No time limit; a lost client answers not applied."""
        ...

    def can_change_files(self, kind: FileChangeKind) -> bool:
        """Whether the editor can create, rename or delete files when asked to."""
        ...

    async def open_document(self, uri: str) -> bool:
        """Ask the editor to open a file; False where it cannot. `didOpen` comes by itself."""
        ...

    async def refresh(self, uri: str) -> None:
        """Have the document of a file as the editor holds it now, where it does not tell by itself.

        Asked before the model reads the file, or proposes an edit of it.
        """
        ...

    def warn(self, line: str) -> None:
        """Tell whoever develops the editor's side what it does wrong; never on the wire."""
        ...

    async def ask_permission(self, question: PermissionRequestParams) -> str | None:
        """Ask the user; the chosen `option_id`, or None when nobody chose in time."""
        ...

    async def ask_choice(self, question: AskParams) -> Sequence[str]:
        """Put a choice to the user; what they chose, nothing when they closed it.

        No time limit. Raises KodeError when the editor cannot ask.
        """
        ...
