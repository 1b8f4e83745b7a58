"""The user's files as the editor sees them: open text first, disk second."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from kode_sidecar.errors import KodeError
from kode_sidecar.text.text_lines import PositionEncoding
from kode_sidecar.text.uris import path_to_uri, uri_to_path
from kode_sidecar.workspace.credentials import find_secret, is_secret_path
from kode_sidecar.workspace.decoding import character_set, decode, python_codec
from kode_sidecar.workspace.disk import MAX_FILE_BYTES, read_regular, read_with_status
from kode_sidecar.workspace.documents import Document, Documents
from kode_sidecar.workspace.paths import Location, Root, display_name, locate, make_roots
from kode_sidecar.workspace.sensitive import is_refused, sensitive_pattern

__all__ = ["OnShown", "Root", "TextView", "Workspace", "default_view"]

Purpose = Literal["read", "edit"]
MAX_EDIT_LINES = 200_000
MAX_EDIT_LINE_CHARS = 1_000_000


@dataclass(frozen=True)
class TextView:
    """A text as one session sees it, LF line ends; `note` says in a few words which text it is."""

    text_lf: str
    note: str


OnShown = Callable[[Document, str, int, int], None]
"""`(document, text, start, end)`: which lines of a text (LF) the model was shown, from 1.

The text is that of the document with pending edits in it.
"""


def default_view(document: Document) -> TextView:
    """The document's own text, without any session's pending edits."""
    note = "from the editor's open buffer" if document.is_open else "from disk"
    return TextView(document.lf_text, note)


class Workspace:
    """The open folders (`roots`), the open documents, and the one way to a file's text.

    `documents` are those the editor feeds. `file_encoding` is the setting of that name, for files
    that are not UTF-8. `own_files` are the sidecar's own settings and state: edits there are
    sensitive. `counts_lone_cr`: the editor ends a line at a carriage return alone, as LSP does and
    not all editors do. Use it from one thread.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        position_encoding: PositionEncoding,
        *,
        documents: Documents | None = None,
        file_encoding: str | None = None,
        own_files: Sequence[Path] = (),
        counts_lone_cr: bool = False,
    ) -> None:
        self.documents = documents or Documents(position_encoding)
        self.position_encoding: PositionEncoding = position_encoding
        self.file_encoding = python_codec(file_encoding)
        self._file_charset = character_set(file_encoding) or ""
        self._counts_lone_cr = counts_lone_cr
        self._own_files = tuple(Path(os.path.realpath(path)) for path in own_files)
        self.roots: tuple[Root, ...] = ()
        self.set_roots(roots)

    def set_roots(self, paths: Sequence[Path]) -> None:
        """Take other folders, absolute, in the editor's order. A UNC folder allows UNC paths."""
        self.roots = make_roots(paths)

    def locate(self, path: str) -> Location:
        """The guarded place of a path a model wrote. Raises KodeError `PathOutsideRoots`."""
        if path.lower().startswith("file:"):
            named = uri_to_path(path)
            path = str(named) if named else path
        return locate(path, self.roots, self._exists)

    def targets(self, path: str) -> tuple[Location, ...]:
        """The existing places a folder or file name stands for: `.` is every root.

        Raises KodeError `PathOutsideRoots` and `NotFound`.
        """
        if path in ("", ".", "./") and self.roots:
            return tuple(self.locate(str(root.path)) for root in self.roots)
        location = self.locate(path)
        if not os.path.lexists(location.real) and self.open_document(location) is None:
            raise self._not_found(location)
        return (location,)

    def document(self, path: str, *, purpose: Purpose) -> Document:
        """The document a model means by `path` (or by the URI of an open untitled buffer).

        The open document if there is one, else a new one read from disk. Raises KodeError
        `PathOutsideRoots`, `Denied`, `NotFound`, `TooLarge`, `NotEditable`, `Unsynced`.
        """
        untitled = self.documents.get(path) if path.startswith("untitled:") else None
        if untitled is not None:
            return self._usable(untitled, path, purpose)
        return self.document_at(self.locate(path), purpose=purpose)

    async def load(self, path: str, purpose: Purpose) -> Document:
        """As `document`: this and what follows is `SessionFiles` without a session."""
        return self.document(path, purpose=purpose)

    def view(self, document: Document) -> TextView:
        """The document's own text."""
        return default_view(document)

    def pending_paths(self) -> Sequence[str]:
        """None."""
        return ()

    def added(self) -> Sequence[Location]:
        """None."""
        return ()

    def removed(self) -> Sequence[Location]:
        """None."""
        return ()

    def document_at(self, location: Location, *, purpose: Purpose) -> Document:
        """The same for a place that `locate` has returned."""
        if is_secret_place(location):
            raise _secret(location.display, "by its name it holds credentials")
        refused = is_refused(location.named) or is_refused(location.below)
        if purpose == "edit" and refused:
            raise KodeError("Denied", f"{location.display} belongs to Git and is never edited.")
        document = self.open_document(location)
        if document is None:
            document = self._from_disk(location)
        elif purpose == "edit":
            self._learn_encoding(document, location)
        return self._usable(document, location.display, purpose)

    def open_document(self, location: Location) -> Document | None:
        """The open document at a place, however the editor spelled it; it may be unsynced."""
        for path in (location.path, location.real):
            document = self.documents.get(path_to_uri(path))
            if document is not None:
                return document
        status = _status(location.real)
        for document in self.documents.all_open() if status else ():
            other = _status(document.path) if document.path else None
            if status and other and os.path.samestat(status, other) and self._is_inside(document):
                return document
        return None

    def open_files(self) -> list[tuple[Document, Location]]:
        """The open documents that are files inside the roots, in the order they were opened."""
        found: list[tuple[Document, Location]] = []
        for document in self.documents.all_open():
            if document.path is not None:
                with suppress(KodeError):
                    found.append((document, self.locate(str(document.path))))
        return found

    def display_path(self, key_or_path: str | os.PathLike[str]) -> str:
        """A path as the model knows it: below its root, forward slashes.

        With several roots it starts with the root's name. Of a file outside only the name is told.
        """
        name = os.fspath(key_or_path)
        if name.lower().startswith("file:"):
            name = str(uri_to_path(name) or name.rpartition("/")[2])
        elif ":" in name and name in {document.key for document in self.documents.all_open()}:
            return name
        for root in self.roots:
            parts = root.parts_of(name)
            if parts is not None:
                return display_name(root, parts, self.roots)
        return Path(name).name if Path(name).is_absolute() else name.replace("\\", "/")

    def is_sensitive(self, path: str | os.PathLike[str]) -> bool:
        """Whether an edit there always needs an explicit yes. Any spelling of a path or URI."""
        return self.why_sensitive(path) is not None

    def why_sensitive(self, path: str | os.PathLike[str]) -> str | None:
        """Why an edit there always needs an explicit yes, for the user; None if it does not.

        A path that the guard refuses is sensitive.
        """
        try:
            location = self.locate(os.fspath(path))
        except KodeError:
            untitled = os.fspath(path).startswith("untitled:")
            return None if untitled else "The path leads out of the open folders."
        if any(location.real == own or own in location.real.parents for own in self._own_files):
            return "It belongs to the sidecar's own settings and records."
        pattern = sensitive_pattern(location.named) or sensitive_pattern(location.below)
        if pattern is None:
            return None
        return f"Files like {pattern} can run code or steer an agent."

    def _usable(self, document: Document, name: str, purpose: Purpose) -> Document:
        """The document, if its text may be used for that purpose."""
        if not document.synced:
            raise KodeError(
                "Unsynced",
                f"The editor's text of {name} is unknown: {document.unsynced_reason}. "
                "Ask the user to close the file and open it again.",
            )
        what = find_secret(document.text)
        if what is not None:
            raise _secret(name, f"it holds {what}")
        if purpose == "edit":
            _check_size(document, name)
            if not self._counts_lone_cr and "\r" in document.text.replace("\r\n", ""):
                raise KodeError(
                    "NotEditable",
                    f"{name} holds lone carriage returns, which editors count as lines in "
                    "different ways. Ask the user to convert its line ends first.",
                )
        return document

    def _is_inside(self, document: Document) -> bool:
        """Whether an open file is itself inside the roots, and not merely linked from there."""
        real = Path(os.path.realpath(document.path)) if document.path else None
        return real is not None and any(root.contains(real) for root in self.roots)

    def _exists(self, path: Path) -> bool:
        return os.path.lexists(path) or self.documents.get(path_to_uri(path)) is not None

    def _from_disk(self, location: Location) -> Document:
        try:
            data, status = read_with_status(location)
        except KodeError as error:
            if error.code == "NotFound":
                raise self._not_found(location) from None
            raise
        decoded = decode(data, location.display, self.file_encoding)
        return Document(
            path_to_uri(location.path),
            decoded.text,
            path=location.path,
            encoding=decoded.encoding,
            charset=self._charset(decoded.encoding),
            bom=decoded.bom,
            status=status,
        )

    def _learn_encoding(self, document: Document, location: Location) -> None:
        """Note the encoding of the file on disk; unknown stays UTF-8, which holds any text."""
        try:
            decoded = decode(read_regular(location), location.display, self.file_encoding)
        except KodeError:
            return
        document.encoding, document.bom = decoded.encoding, decoded.bom
        document.charset = self._charset(decoded.encoding)

    def _charset(self, encoding: str) -> str:
        return self._file_charset if encoding == self.file_encoding else encoding

    def _not_found(self, location: Location) -> KodeError:
        try:
            names = sorted(os.listdir(location.real.parent))
        except OSError:
            names = []
        close = [
            display_name(location.root, (*location.below[:-1], name), self.roots)
            for name in get_close_matches(location.path.name, names, n=3)
        ]
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        return KodeError(
            "NotFound",
            f"There is no file {location.display}.{hint} Use list_files to see what there is.",
        )


def is_secret_place(location: Location) -> bool:
    """Whether a file holds credentials by its name, as asked for or behind links."""
    return is_secret_path(location.named) or is_secret_path(location.below)


def _check_size(document: Document, name: str) -> None:
    too_large = (
        len(document.lines) > MAX_EDIT_LINES
        or max(map(len, document.lines), default=0) > MAX_EDIT_LINE_CHARS
        or len(document.text) > MAX_FILE_BYTES
    )
    if too_large:
        raise KodeError(
            "TooLarge",
            f"{name} is too large to edit: the limits are {MAX_FILE_BYTES:,} bytes, "
            f"{MAX_EDIT_LINES:,} lines and {MAX_EDIT_LINE_CHARS:,} characters in a line.",
        )


def _secret(name: str, why: str) -> KodeError:
    return KodeError(
        "Denied",
        f"{name} is not read: {why}. Ask the user for what you need to know from it.",
    )


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
