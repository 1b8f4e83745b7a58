"""The user's files: document sync, what the user looks at, and which files others changed.

Source of document sync: LSP 3.17, "Text Document Synchronization". Unknown fields are ignored, as
LSP asks.
"""

from typing import Literal

from msgspec import Struct

from kode_sidecar.core.domain.change_set import Range


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


class EncodingParams(Struct, frozen=True, kw_only=True):
    """In which `encoding` the editor saves an open document, by its own name for it.

    `gbk`, `cp936`, `latin1`, `windows1252`, `utf8bom` and their like are understood; an unknown
    name tells nothing.
    """

    uri: str
    encoding: str


class EditorContextParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the user looks at; it replaces what was said before.

    `uri` is the active document, absent when there is none. Of an empty `selection`, a mere
    cursor, the model is not told; `visible_range` is kept for later.
    """

    uri: str | None = None
    selection: Range | None = None
    visible_range: Range | None = None


class ShownParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the client shows of a block; empty once the block is gone."""

    block_id: str
    text: str


class FreshnessGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`limit` is how many important files to name, 1 to 100."""

    session_id: str
    limit: int = 10


class LineRange(Struct, frozen=True):
    """Lines from 1 on, `end` inclusive."""

    start: int
    end: int


class FileFreshness(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A file that the model has read or edited. Times are those of the latest read and edit.

    `sha256` is over the text the editor, or else the disk, had when it was last looked at (LF,
    UTF-8, no BOM); `lines` of that text the model has seen as they are, `staleLines` are others
    than it has seen. `mtime` and `size` are the file's, where the text is from the disk.
    `changed`: by somebody else since the last read or own edit. `lost`: there is no text any more.
    """

    uri: str
    path: str
    sha256: str
    lines: tuple[LineRange, ...] = ()
    stale_lines: tuple[LineRange, ...] = ()
    read_at: str | None = None
    edited_at: str | None = None
    mtime: str | None = None
    size: int | None = None
    changed: bool = False
    lost: Literal["deleted", "unreadable"] | None = None


class ImportantFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file of the project that was used lately."""

    uri: str
    path: str
    used_at: str


class FreshnessGetResult(Struct, frozen=True, kw_only=True):
    """Both lists have the file that was used last first.

    `important` leaves out dependency folders and files that are gone.
    """

    files: tuple[FileFreshness, ...]
    important: tuple[ImportantFile, ...]
