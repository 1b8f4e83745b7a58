"""What a session needs from the editor's side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kode_sidecar.domain.agent_event import BlockDelta, Event, PermissionOption
from kode_sidecar.domain.change_set import Range


@dataclass(frozen=True)
class TextEdit:
    """LSP TextEdit; positions in the negotiated encoding."""

    range: Range
    new_text: str


@dataclass(frozen=True)
class DocumentEdit:
    """One versioned edit of one document (LSP `TextDocumentEdit`); edits ascending and disjoint.

    `version` is None for a document that is not open. `label` names the undo stop.
    """

    label: str
    uri: str
    version: int | None
    edits: Sequence[TextEdit]


@dataclass(frozen=True)
class ApplyAnswer:
    """What the editor said to `workspace/applyEdit`. It is not proof: verify the text."""

    applied: bool
    reason: str | None = None


@dataclass(frozen=True)
class PermissionQuestion:
    """A question that only the user may answer. No answer in time means no."""

    request_id: str
    session_id: str
    turn_id: str
    tool_use_id: str
    title: str
    subject: str
    options: Sequence[PermissionOption]


class EditorPort(Protocol):
    """The editor as a session sees it: one ordered stream out, three questions."""

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events together. In order with everything else; never blocks."""
        ...

    def publish_delta(self, delta: BlockDelta) -> None:
        """Send growth of a block; merged freely while unsent."""
        ...

    async def flow(self) -> None:
        """Wait until the outgoing queue has room."""
        ...

    async def apply_edit(self, edit: DocumentEdit) -> ApplyAnswer:
        """Ask the editor to apply one edit. No time limit; a lost client answers not applied."""
        ...

    def warn(self, line: str) -> None:
        """Tell whoever develops the editor's side what it does wrong; never on the wire."""
        ...

    async def ask_permission(self, question: PermissionQuestion) -> str | None:
        """Ask the user; the chosen `option_id`, or None when nobody chose in time."""
        ...
