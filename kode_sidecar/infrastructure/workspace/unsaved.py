"""Knows which open files differ from the disk, and saves those that only our edits changed.

Commands read the disk, not the editor's buffers. So a file that was saved before an edit is saved
after it; a buffer that holds the user's own unsaved work is never saved unasked.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.domain.change_set import ProposedHunk
from kode_sidecar.core.protocol.documents import TextDocumentRef
from kode_sidecar.core.text.text_edit import apply_edits, to_lf
from kode_sidecar.core.text.uris import canonical_key, uri_to_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import decode
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.overlay import Overlay
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Workspace

SAVE_SECONDS = 30.0
"""How long an editor may take to save: some format the text first."""


SaveDocuments = Callable[[Sequence[TextDocumentRef]], Awaitable[Sequence[str]]]
"""Has the editor save documents that still have that version; returns the URIs of those it did."""


@dataclass(frozen=True)
class UnsavedFile:
    """An open file whose text is not on disk. `accepted`: only accepted edits are not saved."""

    document: Document
    path: str
    accepted: bool


class OpenTexts:
    """The open files of one session beside the disk.

    `editor_saves` and `save_documents` are the editor's part in it, `wanted` is the setting
    `save_accepted` (what the mode `keep` applies is saved without it), `pending` returns the
    undecided hunks of the branch.
    """

    def __init__(
        self,
        workspace: Workspace,
        overlay: Overlay,
        editor_saves: Callable[[], bool],
        save_documents: SaveDocuments,
        wanted: Callable[[], bool],
        pending: Callable[[], Iterable[ProposedHunk]],
    ) -> None:
        self._workspace = workspace
        self._overlay = overlay
        self._editor_saves = editor_saves
        self._save_documents = save_documents
        self._wanted = wanted
        self._pending = pending
        self._ours: dict[str, str] = {}  # revisions that differ from the disk by our edits only

    @property
    def can_save(self) -> bool:
        """Whether the editor saves when it is asked to."""
        return self._editor_saves()

    async def edited(self, uri: str, hunks: Sequence[ProposedHunk]) -> None:
        """Save a file that was saved before these hunks were applied, or taken back."""
        document = self._workspace.documents.get(uri)
        if not self.can_save or document is None or not document.synced:
            return
        before = self._before(document, hunks)
        location = self._place(document)
        if before is None or location is None:
            return
        if self._ours.get(document.key) != text_rev(before):
            rev, version = document.rev, document.version
            if (await self._on_disk(document, location) or "") != before:
                return
            if document.rev != rev or document.version != version:
                return  # the user has typed meanwhile
        self._ours[document.key] = document.rev
        if self._wanted() or any(hunk.kept is False for hunk in hunks):
            await self.save([document])

    async def unsaved(self, folder: Path) -> Sequence[UnsavedFile]:
        """Return the files below a folder whose open text is not the one on disk."""
        found: list[UnsavedFile] = []
        for document, location in self._workspace.open_files():
            if not document.synced or not location.real.is_relative_to(folder):
                continue
            if await self._on_disk(document, location) != document.lf_text:
                accepted = self._ours.get(document.key) == document.rev
                found.append(UnsavedFile(document, location.display, accepted))
        return found

    async def save(self, documents: Iterable[Document]) -> None:
        """Ask the editor to save documents as they are now; it does not save newer texts."""
        wanted = [TextDocumentRef(uri=one.uri, version=one.version) for one in documents]
        if not wanted:
            return
        try:
            async with asyncio.timeout(SAVE_SECONDS):
                saved = await self._save_documents(wanted)
        except TimeoutError:
            return
        for uri in saved:
            self._ours.pop(canonical_key(uri), None)

    def waiting(self, folder: Path) -> Mapping[str, int]:
        """Return the number of undecided hunks by path, of the files below a folder."""
        inside: dict[str, bool] = {}
        for uri in {hunk.file.uri for hunk in self._pending()}:
            path = uri_to_path(uri)
            real = Path(os.path.realpath(path)) if path is not None else None
            inside[uri] = real is not None and real.is_relative_to(folder)
        return Counter(hunk.file.path for hunk in self._pending() if inside[hunk.file.uri])

    def _before(self, document: Document, hunks: Sequence[ProposedHunk]) -> str | None:
        """Return the text (LF) without these hunks; None if they cannot be separated."""
        if any(hunk.kind == "create" for hunk in hunks):
            return ""
        spans = self._overlay.find_all(document, [hunk.id for hunk in hunks])
        if len(spans) < len(hunks) or any(span.touched for span in spans):
            return None
        return to_lf(apply_edits(document.text, [span.edit for span in spans]))

    def _place(self, document: Document) -> Location | None:
        try:
            return self._workspace.locate(str(document.path)) if document.path else None
        except KodeError:
            return None

    async def _on_disk(self, document: Document, location: Location) -> str | None:
        """Return the text (LF) on disk; None if there is none that can be read."""
        encoding = document.saved_as or self._workspace.file_encoding
        return await asyncio.to_thread(_read, location, encoding)


def _read(location: Location, encoding: str | None) -> str | None:
    try:
        return to_lf(decode(read_regular(location), location.display, encoding).text)
    except KodeError:
        return None
