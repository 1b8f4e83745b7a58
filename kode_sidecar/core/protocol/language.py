"""Params and results of `kode/editor/*`: requests to the editor's own language servers.

Positions use the encoding agreed in `initialize`, whatever the language server itself uses.
"""

from msgspec import Struct

from kode_sidecar.core.domain.change_set import Position, Range


class EditorDiagnosticsParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Ask for the diagnostics of one file, or of all files that the editor has some for.

    `after_edit`: the text has just changed. Answer once the servers have checked it again, after
    five seconds at the latest with what is known.
    """

    uri: str | None = None
    after_edit: bool = False


class EditorDiagnostic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One diagnostic. `severity` as in LSP: 1 error, 2 warning, 3 information, 4 hint."""

    range: Range
    message: str
    severity: int = 1
    source: str = ""
    code: str = ""


class FileDiagnostics(Struct, frozen=True, kw_only=True):
    """The diagnostics of one file; a file without any may be left out."""

    uri: str
    diagnostics: tuple[EditorDiagnostic, ...]


class EditorDiagnosticsResult(Struct, frozen=True, kw_only=True):
    """The diagnostics that the editor shows now."""

    files: tuple[FileDiagnostics, ...]


class EditorPlaceParams(Struct, frozen=True, kw_only=True):
    """A place in a file inside an open folder; the editor may have to open the file to answer."""

    uri: str
    position: Position


class EditorLocation(Struct, frozen=True, kw_only=True):
    """A place in any file, even outside the open folders."""

    uri: str
    range: Range


class EditorLocationsResult(Struct, frozen=True, kw_only=True):
    """The places found, declarations included; empty if the servers know none."""

    locations: tuple[EditorLocation, ...]


class EditorSymbolsParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The symbols of the file `uri`, or those of the workspace that match `query`."""

    uri: str | None = None
    query: str = ""


class EditorSymbol(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A symbol. `kind` is LSP's `SymbolKind`, `range` that of the name, `container` its parent."""

    name: str
    kind: int
    uri: str
    range: Range
    container: str = ""


class EditorSymbolsResult(Struct, frozen=True, kw_only=True):
    """The symbols found; those of a file as a flat list in file order."""

    symbols: tuple[EditorSymbol, ...]


class EditorHoverResult(Struct, frozen=True, kw_only=True):
    """The servers' hover text for the place, Markdown or plain; empty if there is none."""

    text: str


class EditorRenameParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ask what a rename of the symbol there would change; apply nothing."""

    uri: str
    position: Position
    new_name: str


class EditorTextEdit(Struct, frozen=True, kw_only=True, rename="camel"):
    """LSP's `TextEdit`."""

    range: Range
    new_text: str


class RenamedFile(Struct, frozen=True, kw_only=True):
    """The changes of one file: in any order, not overlapping, all offsets in the present text."""

    uri: str
    edits: tuple[EditorTextEdit, ...]


class EditorRenameResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The changes, which become hunks of a change set. `refused` says why there are none."""

    files: tuple[RenamedFile, ...]
    refused: str = ""
