"""Edits where nobody has to decide: written at once, in folders that are the agent's own copy.

What a session proposes as hunks is written to disk here; a policy's permit stands where the user's
yes stands elsewhere.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.agent.tools.governed import Subject
from kode_sidecar.agent.tools.proposals import Proposed, Rewrite
from kode_sidecar.core.domain.hunk import compose
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf, with_one_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_saved, replace_file
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.freshness import Freshness
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Workspace

Permit = Callable[[str, Subject], None]
"""`(tool or tool:operation, subject)`: raises KodeError `Denied` for what must not be."""

PlaceCheck = Callable[[Location], None]
"""Raises KodeError where a place must not be written to."""


@dataclass
class AppliedEdits:
    """`Proposals` for the files of `workspace`, whose folders nobody else writes to.

    `check_place` is asked for every target, `check_free` for those of new files too; `done` is told
    of each file that was written or moved there.

    `origins` leads from where a moved file is to where it was at first; `touched` are the places
    of all files that were written.
    """

    workspace: Workspace
    freshness: Freshness
    permit: Permit
    check_place: PlaceCheck
    check_free: PlaceCheck
    done: Callable[[Location, ToolCall], None] = lambda _place, _call: None
    origins: dict[Path, Path] = field(default_factory=dict[Path, Path], init=False)
    touched: set[Path] = field(default_factory=set[Path], init=False)

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """Write what `rewrite` makes of the file."""
        document = self.workspace.document(path, purpose="edit")
        place = self.workspace.locate(path)
        before = document.lf_text
        after = to_lf(rewrite(document, before))
        self._allow(call, "", path)
        _check_faithful(place, document)
        self._write(place, document, with_line_ends(document, after))
        self.freshness.note_edit(document, before, after)
        self.freshness.applied(document.key, before, after)
        self.done(place, call)
        return _proposed(place, before, after, "Changed", "Your edit was applied to")

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """Write a new file."""
        place = self._new_place(path)
        after = to_lf(text)
        self._allow(call, "create", path)
        document = Document(place.uri, "", path=place.path)
        self._write(place, document, with_one_eol(text, text))
        self.freshness.created(document.uri, place.path, after)
        self.done(place, call)
        return _proposed(place, "", after, "Created", "Your file was created:")

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """Rename a file; `origins` tells where it was at first."""
        document = self.workspace.document(source, purpose="edit")
        leaving = self.workspace.locate(source)
        place = self._new_place(target)
        self._allow(call, "move", source)
        self._allow(call, "move", target)
        _make_folder(place)
        try:
            os.rename(leaving.real, place.real)
        except OSError as error:
            raise not_saved(place.display, error) from None
        self.origins[place.real] = self.origins.pop(leaving.real, leaving.real)
        self.touched.add(place.real)
        self.freshness.moved(document.key, place.uri, place.path)
        self.done(place, call)
        text = document.lf_text
        summary = f"Moved {leaving.display} to"
        return _proposed(place, text, text, summary, f"{leaving.display} was moved to")

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """Delete a file."""
        document = self.workspace.document(path, purpose="edit")
        place = self.workspace.locate(path)
        self._allow(call, "delete", path)
        try:
            os.unlink(place.real)
        except OSError as error:
            raise not_saved(place.display, error) from None
        self.origins.pop(place.real, None)
        self.freshness.removed(document.key)
        return _proposed(place, document.lf_text, "", "Deleted", "The file was deleted:")

    def _allow(self, call: ToolCall, operation: str, path: str) -> None:
        """Raises KodeError `Denied`, and what `check_place` raises."""
        place = self.workspace.locate(path)
        self.check_place(place)
        tool = f"{call.name}:{operation}" if operation else call.name
        self.permit(tool, Subject(place.display, self.workspace.is_sensitive(path)))

    def _new_place(self, path: str) -> Location:
        """Raises KodeError `PathOutsideRoots`, `Denied`, `ToolFailed` where there is something."""
        place = self.workspace.locate(path)
        if place.is_secret:
            raise KodeError("Denied", f"{place.display} holds credentials by its name.")
        if place.is_refused:
            raise KodeError("Denied", f"{place.display} belongs to Git and is never edited.")
        if os.path.lexists(place.real) or not place.below:
            raise KodeError(
                "ToolFailed", f"{place.display} exists already. Edit it, or choose another path."
            )
        self.check_free(place)
        return place

    def _write(self, place: Location, document: Document, text: str) -> None:
        """Write a text in the document's encoding. Raises KodeError `Storage`, `Unencodable`."""
        data = encoded(document, text, place.display)
        _make_folder(place)
        try:
            mode = _mode(place.real)
            replace_file(place.real, data, durable=False)
            os.chmod(place.real, mode)
        except OSError as error:
            raise not_saved(place.display, error) from None
        self.touched.add(place.real)


def with_line_ends(document: Document, after: str) -> str:
    """Return a new text (LF) of a document with the line ends of the lines that it keeps."""
    hunks = compose(document.text, document.eol, (), after).drafts
    return apply_edits(document.text, [Edit(hunk.start, hunk.end, hunk.new_text) for hunk in hunks])


def encoded(document: Document, text: str, name: str) -> bytes:
    """Return the bytes of a text in the encoding of its file. Raises KodeError `Unencodable`."""
    bom = "\ufeff" if document.bom else ""
    try:
        return (bom + text).encode(document.encoding)
    except UnicodeEncodeError as error:
        sign = text[max(error.start - len(bom), 0)]
        raise KodeError(
            "Unencodable", f"{name} is {document.encoding}, which has no {sign!r}."
        ) from None


def _check_faithful(place: Location, document: Document) -> None:
    """Raises KodeError `NotEditable` where the lines that stay would not keep their bytes."""
    if encoded(document, document.text, place.display) != read_regular(place):
        raise KodeError(
            "NotEditable",
            f"{place.display} holds bytes that {document.encoding} would not write back unchanged.",
        )


def _make_folder(place: Location) -> None:
    """Make the folders a file goes to. Raises KodeError `ToolFailed`, `Storage`."""
    try:
        place.real.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise KodeError(
            "ToolFailed", f"{place.display} cannot be there: something on the way is a file."
        ) from None
    except OSError as error:
        raise not_saved(place.display, error) from None


def _mode(path: Path) -> int:
    """Return the permissions a file has, or a new one gets."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return 0o644


def _proposed(place: Location, before: str, after: str, did: str, told: str) -> Proposed:
    return Proposed(
        path=place.display,
        before=before,
        after=after,
        text=after,
        summary=f"{did} {place.display}",
        message=f"{told} {place.display}.",
    )
