"""Document synchronisation as the fast lane reads it.

Source: LSP 3.17, "Text Document Synchronization". Unknown fields are ignored, as LSP asks.
"""

from msgspec import Struct

from kode_sidecar.domain.change_set import Range


class TextDocumentItem(Struct, frozen=True, kw_only=True, rename="camel"):
    uri: str
    language_id: str = ""
    version: int
    text: str


class TextDocumentRef(Struct, frozen=True, kw_only=True):
    uri: str
    version: int | None = None


class ContentChange(Struct, frozen=True, kw_only=True):
    """Without `range` the text is the whole document."""

    text: str
    range: Range | None = None


class DidOpenParams(Struct, frozen=True, kw_only=True, rename="camel"):
    text_document: TextDocumentItem


class DidChangeParams(Struct, frozen=True, kw_only=True, rename="camel"):
    text_document: TextDocumentRef
    content_changes: tuple[ContentChange, ...]


class DidSaveParams(Struct, frozen=True, kw_only=True, rename="camel"):
    text_document: TextDocumentRef
    text: str | None = None


class DidCloseParams(Struct, frozen=True, kw_only=True, rename="camel"):
    text_document: TextDocumentRef


class OpenDocumentParams(Struct, frozen=True, kw_only=True):
    """A file inside an open folder."""

    uri: str


class OpenDocumentResult(Struct, frozen=True, kw_only=True):
    """`opened` is false where the editor cannot or will not."""

    opened: bool
