"""The user's files as the editor sees them: the text of an open document, else that on disk."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

from kode_sidecar.core.real_path import real_path
from kode_sidecar.core.text.look_alikes import other_characters
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.core.text.uris import path_to_uri, uri_to_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import character_set, decode, python_codec
from kode_sidecar.infrastructure.workspace.disk import (
    check_edit_size,
    check_second_names,
    read_with_status,
)
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.paths import (
    NATIVE_SEPARATOR,
    Location,
    Root,
    display_name,
    home_of,
    locate,
    make_roots,
    places,
)
from kode_sidecar.infrastructure.workspace.sensitive import runs_in_build, why_sensitive

Purpose = Literal["read", "edit"]
OpenFiles = Mapping[tuple[int, int], Sequence[Document]]
"""Open documents by device and inode."""
MAX_SUGGESTED_FROM = 1_000
"""The number of names in a folder that are searched for a misspelt one."""


@dataclass(frozen=True)
class TextView:
    """A text as one session sees it, LF line ends; `note` describes its source in a few words."""

    text_lf: str
    note: str


OnShown = Callable[[Document, str, int, int], None]
"""`(document, text, start, end)`: reports the lines of a text (LF), from 1, shown to the model.

The text is that of the document with pending edits in it.
"""


def default_view(document: Document) -> TextView:
    """Return the document's own text, without any session's pending edits."""
    return TextView(document.shown(document.lf_text), document.source)


class Workspace:
    """The open folders (`roots`), the open documents, and the one way to a file's text.

    The editor feeds `documents`. `file_encoding` is the setting of that name, for files that are
    not UTF-8. `own_files` are the sidecar's own settings and state: edits there are sensitive.
    `counts_lone_cr`: the editor ends a line at a lone carriage return, as LSP does but not all
    editors do. `looked_at` returns the URI of the document that the user looks at. Unless the roots
    are `several_projects`, a name means the first root that has it. Use it from one thread.
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
        several_projects: bool = False,
    ) -> None:
        self.documents = documents or Documents(position_encoding)
        self.position_encoding: PositionEncoding = position_encoding
        self.decode_as(file_encoding)
        self._counts_lone_cr = counts_lone_cr
        self._several_projects = several_projects
        self._own_files = tuple(real_path(path) for path in own_files)
        self._secrets: WeakKeyDictionary[Document, tuple[str, str | None]] = WeakKeyDictionary()
        self._looked_through: tuple[str, str | None] = ("", None)
        self.roots: tuple[Root, ...] = ()
        self.looked_at: Callable[[], str | None] = lambda: None
        self.set_roots(roots)

    def decode_as(self, file_encoding: str | None) -> None:
        """Read files that are not UTF-8 in this encoding from now on."""
        self.file_encoding = python_codec(file_encoding)
        self._file_charset = character_set(file_encoding) or ""

    def set_roots(self, paths: Sequence[Path]) -> None:
        """Set the open folders, absolute, in the editor's order. A UNC folder allows UNC paths."""
        self.roots = make_roots(paths)

    def locate(
        self, path: str, *, purpose: Purpose = "read", added: Collection[Path] = ()
    ) -> Location:
        """Return the guarded place of a path a model wrote.

        Of several places that it may mean, a read takes the one that the user is most likely at;
        an edit is refused. There will be files at the places `added`. Raises KodeError
        `PathOutsideRoots`, and `ToolFailed` if an edit may mean several places.
        """
        found = self.places(path, added)
        if len(found) == 1 or not self._several_projects:
            return found[0]
        if purpose == "edit":
            names = " or ".join(one.display for one in found)
            raise KodeError(
                "ToolFailed",
                f"{path} may mean {names}, for several folders are open. Write which one.",
                details={"reason": "ambiguous_path", "paths": [one.display for one in found]},
            )
        return min(found, key=self._distance)

    def places(self, path: str, added: Collection[Path] = ()) -> tuple[Location, ...]:
        """Return the places that a path may mean, at least one; raises as `locate` for a read."""
        if path.lower().startswith("file:"):
            named = uri_to_path(path)
            path = str(named) if named else path
        lone = self._lone_buffer(path)
        if lone is not None:
            return (lone,)
        return places(path, self.roots, lambda place: place in added or self._exists(place))

    def _distance(self, location: Location) -> int:
        """Return 0 for what the user looks at, more for what is farther from that."""
        uri = self.looked_at()
        looked_at = real_path(path) if uri and (path := uri_to_path(uri)) else None
        if looked_at == location.real:
            return 0
        if looked_at is not None and home_of(looked_at, self.roots) is location.root:
            return 1
        return 2 if self.open_document(location) is not None else 3

    def namesakes(self, path: str, chosen: Document) -> list[str]:
        """Return the other files that a path may mean, as the model knows them."""
        if path.startswith("untitled:"):
            return []
        found = self._there(self.places(path))
        return [one.display for one in found if one.path != chosen.path]

    def _lone_buffer(self, path: str) -> Location | None:
        """Return the place of an open file if no folder is open, by its path or its bare name.

        Its whole path decides whether it is sensitive or secret; the model never sees that path.
        """
        if self.roots:
            return None
        opened = (one.path for one in self.documents.all_open() if one.path is not None)
        named = next((one for one in opened if path in (str(one), one.name)), None)
        if named is None:
            return None
        location = locate(str(named), make_roots([Path(named.anchor)]), self._exists)
        return replace(location, display=named.name)

    def uri_of(self, path: str) -> str | None:
        """Return the URI of a path a model wrote; None if the guard refuses it."""
        if path in ("", ".", "./") and self.roots:
            return path_to_uri(self.roots[0].path)
        if not path.startswith("untitled:"):
            try:
                uri = path_to_uri(self.locate(path).path)
            except (KodeError, OSError, ValueError):
                return None
            opened = self.documents.get(uri)
            return opened.uri if opened is not None else uri
        return path if self.documents.get(path) is not None else None

    def targets(self, path: str) -> tuple[Location, ...]:
        """Return the existing places a folder or file name stands for: `.` is every root.

        Raises KodeError `PathOutsideRoots` and `NotFound`.
        """
        if path in ("", ".", "./") and self.roots:
            return tuple(self.locate(str(root.path)) for root in self.roots)
        found = self.places(path)
        there = self._there(found)
        if not there:
            raise self._not_found(found[0])
        return there

    def _there(self, found: Sequence[Location]) -> tuple[Location, ...]:
        exist = (os.path.lexists(one.real) or self.open_document(one) for one in found)
        return tuple(one for one, there in zip(found, exist, strict=True) if there)

    def document(self, path: str, *, purpose: Purpose) -> Document:
        """Return the document a model means by `path` (or by the URI of an open untitled buffer).

        That is the open document if there is one, else a new one read from disk. Raises KodeError
        `PathOutsideRoots`, `Denied`, `NotFound`, `TooLarge`, `NotEditable`, `Unsynced`.
        """
        untitled = self.documents.get(path) if path.startswith("untitled:") else None
        if untitled is not None:
            return self._usable(untitled, path, purpose)
        return self.document_at(self.locate(path, purpose=purpose), purpose=purpose)

    async def load(self, path: str, purpose: Purpose) -> Document:
        """As `document`. This and the next four methods are `SessionFileView` without a session."""
        return self.document(path, purpose=purpose)

    def view(self, document: Document) -> TextView:
        """Return the document's own text."""
        return default_view(document)

    def pending_paths(self) -> Sequence[str]:
        """Return nothing: there are no proposals without a session."""
        return ()

    def added(self) -> Sequence[Location]:
        """Return nothing: there are no proposals without a session."""
        return ()

    def removed(self) -> Sequence[Location]:
        """Return nothing: there are no proposals without a session."""
        return ()

    def document_at(
        self, location: Location, *, purpose: Purpose, closed: bool = False
    ) -> Document:
        """Return the document at a place that `locate` has returned; raises as `document` does.

        With `closed`, it is read from disk even if it is open.
        """
        if location.is_secret:
            raise _secret(location.display, "by its name it holds credentials")
        if purpose == "edit" and location.is_refused:
            raise KodeError("Denied", f"{location.display} belongs to Git and is never edited.")
        document = None if closed else self.open_document(location)
        if document is None:
            if purpose == "edit":
                check_second_names(location, editing=True)
            document = self._from_disk(location)
        elif self._is_secret(document):  # opened under another name of the same file
            raise _secret(location.display, "by another of its names it holds credentials")
        elif purpose == "edit":
            self._learn_encoding(document, location)
        return self._usable(document, location.display, purpose)

    def open_document(self, location: Location, opened: OpenFiles | None = None) -> Document | None:
        """Return the open document at a place, however the editor spelled it; it may be unsynced.

        For many places pass `opened`, so that the open files are looked up only once.
        """
        for uri in (location.uri, location.real_uri):
            document = self.documents.get(uri)
            if document is not None:
                return document
        status = _status(location.real)
        if status is None:
            return None
        opened = self.files_open_now() if opened is None else opened
        documents = opened.get((status.st_dev, status.st_ino), ())
        return next(filter(self._is_inside, documents), None)

    def files_open_now(self) -> OpenFiles:
        """Return the open documents by device and inode of their files at this moment."""
        files: dict[tuple[int, int], list[Document]] = {}
        for document in self.documents.all_open():
            status = _status(document.path) if document.path else None
            if status is not None:
                files.setdefault((status.st_dev, status.st_ino), []).append(document)
        return files

    def open_files(self) -> list[tuple[Document, Location]]:
        """Return the open documents that are files inside the roots, in order of opening."""
        found: list[tuple[Document, Location]] = []
        for document in self.documents.all_open():
            if document.path is not None:
                with suppress(KodeError):
                    found.append((document, self.locate(str(document.path))))
        return found

    def display_path(self, key_or_path: str | os.PathLike[str]) -> str:
        """Return a path as the model knows it: below its root, forward slashes.

        With several roots it starts with the root's name. For a file outside it is the bare name.
        """
        name = os.fspath(key_or_path)
        if name.lower().startswith("file:"):
            name = str(uri_to_path(name) or name.rpartition("/")[2])
        elif ":" in name and name in {document.key for document in self.documents.all_open()}:
            return name
        known = [(root, root.parts_of(name, NATIVE_SEPARATOR)) for root in self.roots]
        inside = [(root, parts) for root, parts in known if parts is not None]
        if inside:  # of roots inside each other, the innermost
            return display_name(*min(inside, key=lambda one: len(one[1])), self.roots)
        return Path(name).name if Path(name).is_absolute() else name.replace("\\", "/")

    def holds(self, key: str) -> bool:
        """Return whether a document is in an open folder, or open itself."""
        path = str(uri_to_path(key) or "")
        inside = any(root.parts_of(path) is not None for root in self.roots) if path else False
        return inside or self.documents.get(key) is not None

    def is_sensitive(self, path: str | os.PathLike[str]) -> bool:
        """Return whether an edit of a path or URI, in any spelling, needs an explicit yes."""
        return self.why_sensitive(path) is not None

    def why_sensitive(self, path: str | os.PathLike[str]) -> str | None:
        """Return why an edit there always needs an explicit yes, for the user, or None.

        A path that the guard refuses is sensitive.
        """
        try:
            location = self.locate(os.fspath(path))
        except KodeError:
            untitled = os.fspath(path).startswith("untitled:")
            return None if untitled else "The path leads out of the open folders."
        if any(location.real == own or own in location.real.parents for own in self._own_files):
            return "It belongs to the sidecar's own settings and records."
        return why_sensitive(location.named) or why_sensitive(location.below)

    def runs_in_build(self, path: str | os.PathLike[str]) -> bool:
        """Return whether such a file runs when the user builds or tests."""
        with suppress(KodeError):
            return runs_in_build(self.locate(os.fspath(path)).below) is not None
        return False

    def _usable(self, document: Document, name: str, purpose: Purpose) -> Document:
        """Return the document if its text may be used for that purpose, else raise KodeError."""
        if not document.synced:
            raise KodeError(
                "Unsynced",
                f"The editor's text of {name} is unknown: {document.unsynced_reason}. "
                "Ask the user to close the file and open it again.",
            )
        what = self._secret_in(document, document.text)
        if what is not None:
            raise _secret(name, f"it holds {what}")
        if purpose == "edit":
            check_edit_size(document.shown_lines, name)
            lone_cr = "\r" in document.text and "\r" in document.text.replace("\r\n", "")
            if lone_cr and not self._counts_lone_cr:
                raise KodeError(
                    "NotEditable",
                    f"{name} holds lone carriage returns, which editors count as lines in "
                    "different ways. Ask the user to convert its line ends first.",
                )
        return document

    def _is_secret(self, document: Document) -> bool:
        """Return whether an open file holds credentials by the name the editor uses."""
        with suppress(KodeError):
            return document.path is not None and self.locate(str(document.path)).is_secret
        return False

    def _secret_in(self, document: Document, text: str) -> str | None:
        """Return the kind of credential in a text, or None; an unchanged text is searched once."""
        known = self._secrets.get(document)
        if known is None or known[0] is not text:
            looked = self._looked_through  # of a closed file each document is a new one
            known = (text, looked[1] if looked[0] == text else find_secret(text))
            self._secrets[document] = self._looked_through = known
        return known[1]

    async def look_through(self, document: Document) -> None:
        """Look for credentials in a large text beside the event loop, before it is asked for."""
        text = document.text  # not on the thread: the user goes on typing
        if len(text) >= LARGE_CHARS and document.synced:
            await asyncio.to_thread(self._secret_in, document, text)

    def _is_inside(self, document: Document) -> bool:
        """Return whether an open file lies inside the roots, and is not merely linked there."""
        real = real_path(document.path) if document.path else None
        return real is not None and any(root.contains(real) for root in self.roots)

    def _exists(self, path: Path) -> bool:
        return os.path.lexists(path) or self.documents.get(path_to_uri(path)) is not None

    def _from_disk(self, location: Location) -> Document:
        try:
            data, status = read_with_status(location, second_names=True)
        except KodeError as error:
            if error.code == "NotFound":
                raise self._not_found(location) from None
            raise
        decoded = decode(data, location.display, self.file_encoding)
        return Document(
            location.uri,
            decoded.text,
            path=location.path,
            encoding=decoded.encoding,
            charset=self._charset(decoded.encoding),
            bom=decoded.bom,
            status=status,
        )

    def _learn_encoding(self, document: Document, location: Location) -> None:
        """Note the encoding of the file on disk; if unknown, UTF-8, which can hold any text."""
        try:
            if document.learned_at is not None and document.learned_at.still_holds(location.real):
                return
            data, status = read_with_status(location, second_names=True)
            decoded = decode(data, location.display, self.file_encoding)
        except (KodeError, OSError):
            return
        charset = self._charset(decoded.encoding)
        document.learn_encoding(decoded.encoding, charset, bom=decoded.bom, at=status)

    def _charset(self, encoding: str) -> str:
        return self._file_charset if encoding == self.file_encoding else encoding

    def _not_found(self, location: Location) -> KodeError:
        try:
            with os.scandir(location.real.parent) as entries:
                names = sorted(entry.name for entry in islice(entries, MAX_SUGGESTED_FROM))
        except OSError:
            names = []
        asked = location.path.name
        close = [
            display_name(location.root, (*location.below[:-1], name), self.roots)
            + other_characters(name, asked)
            for name in get_close_matches(asked, names, n=3)
        ]
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        return KodeError(
            "NotFound",
            f"There is no file {location.display}.{hint} Use list_files to see what there is.",
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
