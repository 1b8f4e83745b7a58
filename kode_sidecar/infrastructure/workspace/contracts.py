"""The contract of a view of the user's files, with or without a session."""

from collections.abc import Sequence
from typing import Protocol

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Purpose, TextView, Workspace


class SessionFileView(Protocol):
    """The user's files as one session's model sees them: with its proposals applied."""

    def document(self, path: str, *, purpose: Purpose) -> Document:
        """As `Workspace.document`, but also for files that are only proposed.

        The document of a proposed file has the URI of its future place, and no version. Raises
        `NotFound` for a file whose deletion, or move to another place, is pending.
        """
        ...

    async def load(self, path: str, purpose: Purpose) -> Document:
        """As `document`; may ask the editor to open a file whose encoding only the editor knows."""
        ...

    def view(self, document: Document) -> TextView:
        """Return the document's text with pending edits; the view's note mentions them."""
        ...

    def pending_paths(self) -> Sequence[str]:
        """Return the URIs of files whose text differs from that of the editor or the disk."""
        ...

    def added(self) -> Sequence[Location]:
        """Return the places where a file would be created, or moved to."""
        ...

    def removed(self) -> Sequence[Location]:
        """Return the places whose file would be deleted, or moved away."""
        ...


def targets_seen(workspace: Workspace, files: SessionFileView, path: str) -> tuple[Location, ...]:
    """As `Workspace.targets`, but also for a place at or below which a file is proposed.

    Raises KodeError `PathOutsideRoots` and `NotFound`.
    """
    try:
        return workspace.targets(path)
    except KodeError as error:
        if error.code != "NotFound":
            raise
        place = workspace.locate(path)
        if not any(added.real.is_relative_to(place.real) for added in files.added()):
            raise
        return (place,)
