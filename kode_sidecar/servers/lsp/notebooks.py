"""Notebooks that the editor holds as cells: one text for sessions, and its edits as those of cells.

Source: LSP 3.17, "Notebook Document Synchronization". The text is the JSON of the file with the
sources of the editor's cells, so that a session reads, edits and verifies it as any other. LSP has
edits for the texts of cells only: no cell can be added, moved or taken away.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from kode_sidecar.agent.event_log.editor_port import DocumentEdit
from kode_sidecar.core.domain.change_set import Range
from kode_sidecar.core.protocol.documents import (
    CellTextChange,
    ContentChange,
    DidChangeNotebookParams,
    DidCloseNotebookParams,
    DidOpenNotebookParams,
    DidSaveNotebookParams,
    NotebookCellRef,
    TextDocumentItem,
)
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.core.text.line_diff import diff_lines, split_lines
from kode_sidecar.core.text.notebook import (
    Notebook,
    NotebookCell,
    NotebookError,
    new_notebook,
    read_notebook,
)
from kode_sidecar.core.text.text_edit import Edit, minimal_edits, to_lf, with_eol
from kode_sidecar.core.text.uris import canonical_key, uri_to_path
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.documents import Documents

STRUCTURE = (
    "it is open as a notebook, where an edit changes the sources of the cells that are there: no "
    "cell can be added, moved, removed or made another kind"
)
_MARKUP = 1  # LSP's NotebookCellKind


@dataclass
class _Cell:
    """A cell of the editor: its `name` in the JSON, and the document with its source."""

    name: str
    is_markup: bool
    document: Document

    @property
    def as_json(self) -> NotebookCell:
        kind = "raw" if self.document.language_id == "raw" else "code"
        return NotebookCell(
            "markdown" if self.is_markup else kind, self.document.lf_text, self.name
        )


@dataclass
class _OpenNotebook:
    """A notebook with its cells. `book` is the file, None for one that is not Jupyter's."""

    uri: str
    book: Notebook | None
    cells: list[_Cell] = field(default_factory=list[_Cell])

    def json(self) -> str:
        assert self.book is not None
        return self.book.with_cells([cell.as_json for cell in self.cells])


class OpenNotebooks:
    """The notebooks that the editor holds; their texts are documents among `documents`."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._notebooks: dict[str, _OpenNotebook] = {}

    def find(self, uri: str) -> _OpenNotebook | None:
        """Return the open notebook of a URI."""
        return self._notebooks.get(canonical_key(uri))

    def opened(self, params: DidOpenNotebookParams) -> None:
        """Handle `notebookDocument/didOpen`."""
        reported = params.notebook_document
        uri, data = reported.uri, _data(reported.uri)
        notebook = _OpenNotebook(uri, None)
        self._notebooks[canonical_key(uri)] = notebook
        text = data.decode("utf-8", "replace")
        if Document(uri, "").is_notebook:
            notebook.book = _read(data)
            texts = {one.uri: one for one in params.cell_text_documents}
            notebook.cells = self._cells(
                notebook, reported.cells, texts, range(len(reported.cells))
            )
            text = notebook.json()
        self._documents.open(uri, reported.notebook_type, 1, text)
        document = self._documents.get(uri)
        if document is not None:
            document.notebook_type = reported.notebook_type

    def changed(self, params: DidChangeNotebookParams) -> None:
        """Handle `notebookDocument/didChange`."""
        notebook, news = self.find(params.notebook_document.uri), params.change.cells
        if notebook is None or notebook.book is None or news is None:
            return
        if news.structure is not None:
            array = news.structure.array
            texts = {one.uri: one for one in news.structure.did_open or ()}
            known = {cell.document.uri: cell for cell in notebook.cells}
            fresh = self._cells(notebook, array.cells or (), texts, ())
            notebook.cells[array.start : array.start + array.delete_count] = [
                cell if cell.document.uri in texts else known.get(cell.document.uri, cell)
                for cell in fresh
            ]
        by_uri = {cell.document.uri: cell for cell in notebook.cells}
        if not all(one.document.uri in by_uri for one in news.text_content or ()):
            self._documents.mark_unsynced(notebook.uri, "a cell changed that it does not have")
        for reported in news.data or ():
            if reported.document in by_uri:
                by_uri[reported.document].is_markup = reported.kind == _MARKUP
        for one in news.text_content or ():
            if one.document.uri in by_uri:
                self._change(notebook, by_uri[one.document.uri].document, one)
        self._show(notebook)

    def saved(self, params: DidSaveNotebookParams) -> None:
        """Handle `notebookDocument/didSave`: the file has new outputs, and ids of new cells."""
        notebook = self.find(params.notebook_document.uri)
        if notebook is None:
            return
        if notebook.book is not None:
            book = _read(_data(notebook.uri))
            if len(book.cells) == len(notebook.cells):
                notebook.book = book
                for cell, held in zip(notebook.cells, book.cells, strict=True):
                    cell.name = held.name
            self._show(notebook)
        self._documents.save(notebook.uri, None)

    def closed(self, params: DidCloseNotebookParams) -> None:
        """Handle `notebookDocument/didClose`."""
        uri = params.notebook_document.uri
        if self._notebooks.pop(canonical_key(uri), None) is not None:
            self._documents.close(uri)

    def cell_edits(self, edit: DocumentEdit) -> list[DocumentEdit] | str:
        """Return an edit of a notebook's text as edits of its cells, or why there are none."""
        notebook, document = self.find(edit.uri), self._documents.get(edit.uri)
        if notebook is None or notebook.book is None or document is None:
            return STRUCTURE
        try:
            text = edit.applied_to(document.text, self._documents.position_encoding)
            wanted = read_notebook(to_lf(text))
        except NotebookError as error:
            return f"it would be no notebook any more. {error}"
        if wanted.shape != read_notebook(document.lf_text).shape:
            return STRUCTURE
        return [
            DocumentEdit(edit.label, cell.document.uri, cell.document.version, edits)
            for cell, one in zip(notebook.cells, wanted.cells, strict=True)
            if (edits := self._edits(cell.document, one.source))
        ]

    def _cells(
        self,
        notebook: _OpenNotebook,
        reported: Sequence[NotebookCellRef],
        texts: Mapping[str, TextDocumentItem],
        known: Iterable[int],
    ) -> list[_Cell]:
        """Return cells as the editor describes them; `known` are their places in the file."""
        held = notebook.book.cells if notebook.book is not None else ()
        places = list(known)
        cells: list[_Cell] = []
        for at, one in enumerate(reported):
            item = texts.get(one.document)
            text, language = (item.text, item.language_id) if item else ("", "")
            version = item.version if item else None
            document = Document(one.document, text, version=version, language_id=language)
            same = bool(places) and len(places) == len(held)
            name = held[places[at]].name if same else _new_name(one.document)
            cells.append(_Cell(name, one.kind == _MARKUP, document))
        return cells

    def _change(self, notebook: _OpenNotebook, cell: Document, reported: CellTextChange) -> None:
        """Change the source of a cell; one that does not fit leaves the notebook unsynced."""
        cell.version = reported.document.version
        for change in reported.changes:
            try:
                if change.range is None:
                    cell.replace_all(change.text)
                else:
                    encoding = self._documents.position_encoding
                    cell.replace_range(change.range, change.text, encoding)
            except ValueError as error:
                self._documents.mark_unsynced(notebook.uri, f"a change does not fit: {error}")

    def _show(self, notebook: _OpenNotebook) -> None:
        document = self._documents.get(notebook.uri)
        if notebook.book is not None and document is not None and document.synced:
            text = notebook.json()
            if document.text != text:
                version = (document.version or 0) + 1
                self._documents.change(notebook.uri, version, [ContentChange(text=text)])

    def _edits(self, document: Document, source: str) -> list[EditorTextEdit]:
        """Return what makes `source` (LF) of a cell, in its line ends."""
        wanted = with_eol(source, document.eol)
        old, new = document.lines, split_lines(wanted)
        at = list(accumulate(map(len, old), initial=0))
        runs = diff_lines(old, new)
        edits = [Edit(at[a0], at[a1], "".join(new[b0:b1])) for a0, a1, b0, b1 in runs]
        encoding = self._documents.position_encoding
        return [
            EditorTextEdit(
                range=Range(
                    document.position_at(one.start, encoding),
                    document.position_at(one.end, encoding),
                ),
                new_text=one.text,
            )
            for one in minimal_edits(document.text, edits)
        ]


def _new_name(uri: str) -> str:
    """Return the name of a cell that is not in the file: the same for as long as it is open."""
    return f"id={hashlib.sha256(uri.encode()).hexdigest()[:8]}"


def _data(uri: str) -> bytes:
    """Return what a file holds; nothing where there is none."""
    path = uri_to_path(uri)
    try:
        return path.read_bytes() if path is not None else b""
    except OSError:
        return b""


def _read(data: bytes) -> Notebook:
    """Return the notebook in a file, or an empty one."""
    try:
        return read_notebook(to_lf(data.decode("utf-8-sig")))
    except ValueError:
        return read_notebook(new_notebook(""))
