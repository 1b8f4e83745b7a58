"""The user's files as one session's model sees them: with all that its proposals would do."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document
from kode_sidecar.infrastructure.workspace.file_changes import FileChange, FileChanges
from kode_sidecar.infrastructure.workspace.overlay import Overlay
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Purpose, TextView, Workspace

OPEN_SECONDS = 10.0
"""How long an editor may take to open a file that it was asked for."""


class SessionFiles:
    """`workspace.contracts.SessionFiles` of one session, over `overlay` and `changes`.

    `open_document` asks the editor to open a file and says whether it will, `refresh` has its
    document as the editor holds it now.
    """

    def __init__(
        self,
        workspace: Workspace,
        overlay: Overlay,
        changes: FileChanges,
        open_document: Callable[[str], Awaitable[bool]],
        refresh: Callable[[str], Awaitable[None]],
    ) -> None:
        self._open_document = open_document
        self._refresh = refresh
        self._workspace = workspace
        self._overlay = overlay
        self._changes = changes

    def document(self, path: str, *, purpose: Purpose) -> Document:
        """See `workspace.contracts.SessionFiles`."""
        if path.startswith("untitled:"):
            return self._workspace.document(path, purpose=purpose)
        location = self._locate(path, purpose)
        adding = self._changes.adding(location.real)
        if adding is not None:
            text = adding.text if adding.kind == "create" else self.source(adding, purpose).text
            return Document(location.uri, text, path=location.path)
        self._check_there(location)
        return self._existing(location, purpose)

    def _locate(self, path: str, purpose: Purpose) -> Location:
        """As `Workspace.locate`, with the files that are only proposed."""
        added = {place.path for place in self.added()}
        return self._workspace.locate(path, purpose=purpose, added=added)

    def known(self, path: str) -> Document:
        """What there is, whatever is pending, or what is proposed to be there.

        Raises KodeError as `document`.
        """
        try:
            location = self._workspace.locate(path)
            if self._changes.adding(location.real) is not None:
                return self.document(path, purpose="read")
            return self._existing(location, "read")
        except KodeError as error:
            if error.code != "NotFound":
                raise
            return self.document(path, purpose="read")

    def find(self, uri: str) -> Document | None:
        """The document as it is now, whatever is pending.

        None where it is gone, out of step with the editor, or out of bounds.
        """
        document = self._workspace.documents.get(uri)
        if document is not None:
            return document if document.synced else None
        try:
            return self._existing(self._workspace.locate(uri), "edit")
        except KodeError:
            return None

    async def fetch(self, uri: str) -> Document | None:
        """As `find`; a closed file is read and looked through beside the event loop."""
        if self._workspace.documents.get(uri) is None:
            is_open, found = await asyncio.to_thread(self._find_closed, uri)
            if not is_open and self._workspace.documents.get(uri) is None:
                return found
        return self.find(uri)

    def _find_closed(self, uri: str) -> tuple[bool, Document | None]:
        """As `find`, on a thread: of what is open it says only that it is.

        An open document changes while a thread would put its text or lines together.
        """
        try:
            location = self._workspace.locate(uri)
            if self._workspace.open_document(location) is not None:
                return True, None
            return False, self._existing(location, "edit", closed=True)
        except KodeError:
            return False, None

    async def load(self, path: str, purpose: Purpose) -> Document:
        """As `document`; the editor is asked to open a file whose encoding only it may know."""
        if not path.startswith("untitled:"):
            location = self._locate(path, purpose)
            await self._refresh(location.uri)
            opened = self._workspace.open_document(location)
            if opened is not None:
                await self._workspace.look_through(opened)
            elif _size(location) >= LARGE_CHARS:
                await asyncio.to_thread(self._find_closed, location.uri)
        try:
            document = self.document(path, purpose=purpose)
        except KodeError as error:
            if (error.details or {}).get("reason") != "encoding":
                raise
            if not await self.opened(path):
                raise
            return self.document(path, purpose=purpose)
        legacy = document.encoding != "utf-8" and not document.bom and not document.is_open
        if legacy and purpose == "edit" and await self.opened(path):
            document = self.document(path, purpose=purpose)
        return document

    async def opened(self, path: str) -> bool:
        """Have the editor open a closed file; whether its text is there."""
        location = self._locate(path, "read")
        there = asyncio.Event()

        def look(_change: object) -> None:
            document = self._workspace.open_document(location)
            if document is not None and document.synced:
                there.set()

        unsubscribe = self._workspace.documents.subscribe(look)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                if await self._open_document(location.uri):
                    await there.wait()
        except TimeoutError:
            return False
        finally:
            unsubscribe()
        return there.is_set()

    def edited(self, path: str) -> tuple[Document, FileChange | None]:
        """The document an edit of `path` belongs to, and the pending creation if that is all.

        Of a file that is to be moved it is the one at the old place, where its hunks stand.
        """
        document = self.document(path, purpose="edit")
        adding = self.adding(document)
        if adding is None or adding.kind == "create":
            return document, adding
        return self.source(adding, "edit"), None

    def source(self, change: FileChange, purpose: Purpose) -> Document:
        """The document that a pending move would move."""
        return self._existing(change.place, purpose)

    def view(self, document: Document) -> TextView:
        """See `workspace.contracts.SessionFiles`."""
        adding = self.adding(document)
        if adding is None:
            return self._overlay.view(document)
        if adding.kind == "create":
            note = "proposed by you as a new file, not yet created"
            return TextView(document.shown(adding.lf_text), note)
        view = self._overlay.view(self.source(adding, "read"))
        note = f"{view.note}, still at {adding.place.display}: your move is not yet applied"
        return TextView(view.text_lf, note)

    def pending_paths(self) -> Sequence[str]:
        """See `workspace.contracts.SessionFiles`."""
        moved = {change.key for change in self._changes.visible()}
        changed = [key for key in self._overlay.changed_keys() if key not in moved]
        return [*changed, *(place.uri for place in self.added())]

    def added(self) -> Sequence[Location]:
        """See `workspace.contracts.SessionFiles`."""
        return [change.adds for change in self._changes.visible() if change.adds is not None]

    def removed(self) -> Sequence[Location]:
        """See `workspace.contracts.SessionFiles`."""
        return [change.removes for change in self._changes.visible() if change.removes is not None]

    def adding(self, document: Document) -> FileChange | None:
        """The pending creation or move that a document given out by `document` stands for."""
        if document.is_open or document.path is None or not self._changes.visible():
            return None
        try:
            return self._changes.adding(self._workspace.locate(str(document.path)).real)
        except KodeError:
            return None

    def deleted(self, path: str) -> FileChange | None:
        """The pending deletion of the file there. Raises KodeError `PathOutsideRoots`."""
        removing = self._changes.removing(self._locate(path, "edit").real)
        return removing if removing is not None and removing.kind == "delete" else None

    def place_of(self, document: Document) -> Location:
        """Where a document's file is. Raises KodeError `PathOutsideRoots`."""
        return self._workspace.locate(str(document.path or document.uri))

    def new_place(self, path: str, *, leaving: str = "") -> Location:
        """Where a file may be put; there is none, or none once a pending move is done.

        A pending move, at `leaving`, may go back to where it left. Raises KodeError
        `PathOutsideRoots`, `Denied`, and `ToolFailed` where there is a file.
        """
        location = self._locate(path, "edit")
        if location.is_secret:
            raise KodeError("Denied", f"{location.display} holds credentials by its name.")
        if location.is_refused:
            raise KodeError("Denied", f"{location.display} belongs to Git and is never edited.")
        removing = self._changes.removing(location.real)
        if removing is not None and leaving:
            moving = self._changes.adding(self._locate(leaving, "edit").real)
            if moving is removing and self._changes.adding(location.real) is None:
                return location
        leaves = removing is not None and removing.kind == "rename" and not leaving
        if removing is not None and not leaves:
            raise KodeError(
                "ToolFailed",
                f"The file at {location.display} is there until the user accepts your "
                f"{'deletion' if removing.kind == 'delete' else 'move'}. Choose another path.",
            )
        self._check_parents(location)
        taken = self._changes.adding(location.real) is not None if leaves else self.exists(location)
        if taken:
            raise KodeError(
                "ToolFailed", f"{location.display} exists already. Edit it, or choose another path."
            )
        return location

    def _check_parents(self, location: Location) -> None:
        """Raise KodeError if a folder of the place is a file, or is proposed as one."""
        for folder in location.real.parents:
            if not folder.is_relative_to(location.root.real):
                return
            adding = self._changes.adding(folder)
            if adding is not None or (os.path.lexists(folder) and not folder.is_dir()):
                name = self._workspace.display_path(folder)
                raise KodeError("ToolFailed", f"{name} is a file, so nothing can be below it.")

    def exists(self, location: Location) -> bool:
        """Whether there is a file, or anything else, at a place; pending ones count."""
        return self._changes.adding(location.real) is not None or self.is_taken(location)

    def is_taken(self, location: Location) -> bool:
        """Whether there is something on disk or in the editor now, whatever is pending."""
        on_disk = os.path.lexists(location.real)
        return (
            on_disk
            or self._workspace.open_document(location) is not None
            or self._changes.unsaved(location.real) is not None
        )

    def _existing(self, location: Location, purpose: Purpose, *, closed: bool = False) -> Document:
        try:
            document = self._workspace.document_at(location, purpose=purpose, closed=closed)
        except KodeError as error:
            unsaved = self._changes.unsaved(location.real)
            if unsaved is None or error.code != "NotFound":
                raise
            return Document(unsaved.uri, unsaved.text, path=location.path)
        self._changes.forget_unsaved(location.real)
        return document

    def _check_there(self, location: Location) -> None:
        removing = self._changes.removing(location.real)
        if removing is None:
            return
        if removing.kind == "delete":
            text = f"You have proposed to delete {location.display}; it is not yet deleted."
        else:
            goal = removing.target.display if removing.target else ""
            text = f"You have proposed to move {location.display} to {goal}; read it there."
        raise KodeError("NotFound", text)


def _size(location: Location) -> int:
    try:
        return os.stat(location.real).st_size
    except OSError:
        return 0
