"""The user's files as somebody sees them."""

from collections.abc import Sequence
from typing import Protocol

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Purpose, TextView, Workspace


class SessionFileView(Protocol):
    """The user's files as one session's model sees them: with all that its proposals would do."""

    def document(self, path: str, *, purpose: Purpose) -> Document:
        """As `Workspace.document`, also for files that are only proposed.

        Such a document has the URI of the place where the file would be, and no version. Raises
        `NotFound` for a file whose deletion, or move to another place, is pending.
        """
        ...

    async def load(self, path: str, purpose: Purpose) -> Document:
        """As `document`; the editor may have to open a file whose encoding only it knows."""
        ...

    def view(self, document: Document) -> TextView:
        """Return the document's text with pending edits; its note says so."""
        ...

    def pending_paths(self) -> Sequence[str]:
        """URIs of the files whose text is another one than that of the editor or the disk."""
        ...

    def added(self) -> Sequence[Location]:
        """Places where a file would be created, or moved to."""
        ...

    def removed(self) -> Sequence[Location]:
        """Places whose file would be deleted, or moved away."""
        ...


def targets_seen(workspace: Workspace, files: SessionFileView, path: str) -> tuple[Location, ...]:
    """As `Workspace.targets`; a place also exists where a file is proposed there or below.

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
