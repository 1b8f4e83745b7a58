"""Stores the open documents as the editor holds them, fed by document sync.

Source: LSP 3.17, "Text Document Synchronization". A message that cannot be applied never
raises; it marks its document unsynced, and nothing reads or edits that document until the
editor sends `didOpen` or a full text.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from kode_sidecar.core.protocol.documents import ContentChange
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.infrastructure.workspace.decoding import editor_charset
from kode_sidecar.infrastructure.workspace.document import Document, TextChange

ChangeKind = Literal["opened", "changed", "saved", "closed", "unsynced"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DocumentChange:
    """An event of a document, reported while its text is still as right after it.

    A `didChange` is reported once per entry of its contentChanges, in order: `entries` holds that
    one change (none if it changed nothing) and `last` is true for the final one. `opened` is a
    new start, also when a full text resyncs an unsynced document: no offset in the old text
    remains valid. After `closed` and `unsynced` the text is no longer the editor's.
    """

    document: Document
    kind: ChangeKind
    entries: tuple[TextChange, ...] = ()
    last: bool = True


class Documents:
    """All open documents. Use it from one thread.

    `tell_fault` takes a line for the client's author about what was ignored or corrected.
    """

    def __init__(self, position_encoding: PositionEncoding) -> None:
        self.position_encoding: PositionEncoding = position_encoding
        self._documents: dict[str, Document] = {}
        self._listeners: dict[object, Callable[[DocumentChange], None]] = {}
        self._charsets: dict[str, str] = {}
        self.report_fault: Callable[[str], None] = lambda _line: None

    def get(self, uri_or_key: str) -> Document | None:
        """Return the open document of that URI in any spelling; it may be unsynced."""
        return self._documents.get(uri_or_key) or self._documents.get(canonical_key(uri_or_key))

    def all_open(self) -> list[Document]:
        """Return all open documents, unsynced ones too, in the order they were opened."""
        return list(self._documents.values())

    def subscribe(self, listener: Callable[[DocumentChange], None]) -> Callable[[], None]:
        """Call `listener` on every change, in order of subscription; return the unsubscriber."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def open(self, uri: str, language_id: str, version: int | None, text: str) -> None:
        """Handle `textDocument/didOpen`; opening an open document replaces it."""
        if (known := self.get(uri)) is not None and known.synced:
            self.report_fault(f"didOpen: {uri} is open already; the text sent now takes its place")
        document = Document(uri, text, version=version, language_id=language_id, is_open=True)
        document.saved_as = self._charsets.get(document.key, "")
        self._documents[document.key] = document
        self._report(document, "opened")

    def report_encoding(self, uri: str, name: str) -> None:
        """Note the encoding in which the editor saves a document, until it closes it.

        The call may come before the document is opened. An unknown name counts as none.
        """
        key = canonical_key(uri)
        self._charsets[key] = editor_charset(name)
        document = self.get(uri)
        if document is not None:
            document.saved_as = self._charsets[key]

    def change(self, uri: str, version: int | None, content_changes: Any) -> None:
        """Handle `textDocument/didChange`, full or incremental, as decoded dicts or structs."""
        document = self.get(uri)
        if document is None:
            self.report_fault(f"didChange: {uri} is not open; nothing reads it until it is opened")
            self.mark_unsynced(uri, "it was changed without having been opened")
            document = self._documents[canonical_key(uri)]
        try:
            changes = msgspec.convert(content_changes, list[ContentChange], from_attributes=True)
        except msgspec.ValidationError as error:
            self.mark_unsynced(uri, f"a change could not be read ({error})")
            return
        if version is not None and document.version is not None and version <= document.version:
            grown = f"version {version} came after {document.version}"
            self.report_fault(f"didChange: {uri}: {grown}; it is taken, but versions must grow")
        document.version = document.version if version is None else version
        for index, change in enumerate(changes):
            self._apply(document, change, last=index == len(changes) - 1)

    def save(self, uri: str, text: str | None) -> None:
        """Handle `textDocument/didSave`; a text that differs from ours counts as a full change."""
        document = self.get(uri)
        if document is None:
            self.report_fault(f"didSave: {uri} is not open; nothing was done")
            return
        if text is not None and (not document.synced or to_lf(text) != document.lf_text):
            self._apply(document, ContentChange(text=text), last=True)
        if document.synced:
            self._report(document, "saved")

    def close(self, uri: str) -> None:
        """Handle `textDocument/didClose`."""
        document = self.get(uri)
        if document is None:
            self.report_fault(f"didClose: {uri} is not open; nothing was done")
        else:
            del self._documents[document.key]
            self._charsets.pop(document.key, None)
            document.is_open = False
            self._report(document, "closed")

    def show(self, uri: str, base: str, text: str) -> None:
        """Open a document if needed, and change its text: as an editor that applies an edit."""
        document = self.get(uri)
        if document is None:
            self.open(uri, "", 1, base)
            document = self._documents[canonical_key(uri)]
        if document.text != text:
            version = (document.version or 0) + 1
            self.change(uri, version, [ContentChange(text=text)])

    def mark_unsynced(self, uri: str, reason: str) -> None:
        """Mark our text of `uri` as wrong until `didOpen` or a full text; `uri` may be unknown."""
        document = self.get(uri)
        if document is None:
            document = Document(uri, "", is_open=True)
            self._documents[document.key] = document
        document.unsynced_reason = reason
        self._report(document, "unsynced")

    def _apply(self, document: Document, change: ContentChange, *, last: bool) -> None:
        if change.range is None:
            entry = document.replace_all(change.text)
            if not document.synced:
                document.unsynced_reason = ""
                self._report(document, "opened", last=last)
                return
        elif not document.synced:
            return
        else:
            try:
                entry = document.replace_range(change.range, change.text, self.position_encoding)
            except ValueError as error:
                self.report_fault(
                    f"didChange: {document.uri}: a change does not fit the text: {error}; nothing "
                    "reads it until it is opened again or changed as a whole"
                )
                self.mark_unsynced(document.uri, f"a change does not fit its text: {error}")
                return
        self._report(document, "changed", (entry,) if entry else (), last=last)

    def _report(
        self,
        document: Document,
        kind: ChangeKind,
        entries: Sequence[TextChange] = (),
        *,
        last: bool = True,
    ) -> None:
        event = DocumentChange(document, kind, tuple(entries), last)
        for listener in list(self._listeners.values()):
            try:
                listener(event)
            except Exception:
                _log.exception("a listener to documents failed")
