"""The user's files: document sync, what the user looks at, and which files others changed.

Source of document sync: LSP 3.17, "Text Document Synchronization", which also says to ignore
unknown fields.
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
    """LSP `OptionalVersionedTextDocumentIdentifier`."""

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


class NotebookCellRef(Struct, frozen=True, kw_only=True):
    """LSP `NotebookCell`: its kind, and the URI of the document with its source."""

    kind: int
    document: str


class NotebookDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    uri: str
    notebook_type: str = ""
    cells: tuple[NotebookCellRef, ...] = ()


class DidOpenNotebookParams(Struct, frozen=True, kw_only=True, rename="camel"):
    notebook_document: NotebookDocument
    cell_text_documents: tuple[TextDocumentItem, ...] = ()


class NotebookCellArrayChange(Struct, frozen=True, kw_only=True, rename="camel"):
    start: int
    delete_count: int
    cells: tuple[NotebookCellRef, ...] | None = None


class NotebookStructureChange(Struct, frozen=True, kw_only=True, rename="camel"):
    array: NotebookCellArrayChange
    did_open: tuple[TextDocumentItem, ...] | None = None


class CellTextChange(Struct, frozen=True, kw_only=True):
    document: TextDocumentRef
    changes: tuple[ContentChange, ...]


class NotebookCellsChange(Struct, frozen=True, kw_only=True, rename="camel"):
    structure: NotebookStructureChange | None = None
    data: tuple[NotebookCellRef, ...] | None = None
    text_content: tuple[CellTextChange, ...] | None = None


class NotebookChange(Struct, frozen=True, kw_only=True):
    cells: NotebookCellsChange | None = None


class DidChangeNotebookParams(Struct, frozen=True, kw_only=True, rename="camel"):
    notebook_document: TextDocumentRef
    change: NotebookChange


class DidSaveNotebookParams(Struct, frozen=True, kw_only=True, rename="camel"):
    notebook_document: TextDocumentRef


class DidCloseNotebookParams(Struct, frozen=True, kw_only=True, rename="camel"):
    notebook_document: TextDocumentRef


class OpenDocumentParams(Struct, frozen=True, kw_only=True):
    """Open a file inside an open folder."""

    uri: str


class OpenDocumentResult(Struct, frozen=True, kw_only=True):
    """`opened` is false if the editor cannot or will not open the file."""

    opened: bool


class SaveDocumentsParams(Struct, frozen=True, kw_only=True):
    """Save these open documents, each only if it still has this `version`.

    A document that the user has changed since then is left alone.
    """

    documents: tuple[TextDocumentRef, ...]


class SaveDocumentsResult(Struct, frozen=True, kw_only=True):
    """The URIs of the documents that are on disk now."""

    saved: tuple[str, ...]


class EncodingParams(Struct, frozen=True, kw_only=True):
    """The `encoding` in which the editor saves an open document, as the editor names it.

    `gbk`, `cp936`, `latin1`, `windows1252`, `utf8bom` and similar names are understood; an unknown
    name is ignored.
    """

    uri: str
    encoding: str


class EditorContextParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the user looks at; it replaces the earlier context.

    `uri` is the active document, absent when there is none. The model does not see an empty
    `selection`, a mere cursor; `visible_range` is reserved.
    """

    uri: str | None = None
    selection: Range | None = None
    visible_range: Range | None = None


class ShownParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The text that the client shows of a block; empty once the block is gone."""

    block_id: str
    text: str


class FreshnessGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`limit` is the number of important files to list, 1 to 100."""

    session_id: str
    limit: int = 10


class LineRange(Struct, frozen=True):
    """Lines from 1 on, `end` inclusive."""

    start: int
    end: int


class FileFreshness(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A file that the model has read or edited. Times are those of the latest read and edit.

    `sha256` is the hash of the text (LF, UTF-8, no BOM) in the editor, or else on disk, when last
    checked. The model has seen `lines` of that text as they are; `staleLines` have changed since it
    saw them. `mtime` and `size` are the file's if the text is from disk. `changed`: by somebody
    else since the model's last read or edit. `lost`: the text is gone or cannot be read.
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
    """A recently used file of the project."""

    uri: str
    path: str
    used_at: str


class FreshnessGetResult(Struct, frozen=True, kw_only=True):
    """Both lists start with the most recently used file.

    `important` leaves out dependency folders and deleted files.
    """

    files: tuple[FileFreshness, ...]
    important: tuple[ImportantFile, ...]


class FileSearchParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files whose paths have the letters of `query` in this order; `limit` is at most 500."""

    query: str = ""
    limit: int = 50


class FoundFile(Struct, frozen=True, kw_only=True):
    """A file of an open folder; `path` is as the model reads it."""

    uri: str
    path: str


class FileSearchResult(Struct, frozen=True, kw_only=True):
    """Open documents first, then the best matches. With `cut` there are more.

    What `.gitignore` names is left out, as for the model's own search.
    """

    files: tuple[FoundFile, ...]
    cut: bool
