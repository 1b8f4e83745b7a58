"""What the editor's own language servers know, asked of the client: `kode/editor/*`.

Positions count as agreed in `initialize`, whatever the language server behind the editor counts.
"""

from msgspec import Struct

from kode_sidecar.core.domain.change_set import Position, Range


class EditorDiagnosticsParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Of one file, or of all that the editor knows of.

    `after_edit`: the text was just changed. Answer once the servers have looked at it again, with
    what there is after five seconds at the latest.
    """

    uri: str | None = None
    after_edit: bool = False


class EditorDiagnostic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`severity` as LSP counts: 1 error, 2 warning, 3 information, 4 hint."""

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
    """What the editor shows now."""

    files: tuple[FileDiagnostics, ...]


class EditorPlaceParams(Struct, frozen=True, kw_only=True):
    """A place in a file inside an open folder; the file may have to be opened for the answer."""

    uri: str
    position: Position


class EditorLocation(Struct, frozen=True, kw_only=True):
    """A place in any file, also one outside the open folders."""

    uri: str
    range: Range


class EditorLocationsResult(Struct, frozen=True, kw_only=True):
    """The places found, none where the servers know of none. A declaration counts."""

    locations: tuple[EditorLocation, ...]


class EditorSymbolsParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The symbols of the file `uri`, or those of the workspace that match `query`."""

    uri: str | None = None
    query: str = ""


class EditorSymbol(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`kind` is LSP's `SymbolKind`, `range` that of its name, `container` what it belongs to."""

    name: str
    kind: int
    uri: str
    range: Range
    container: str = ""


class EditorSymbolsResult(Struct, frozen=True, kw_only=True):
    """The symbols found; those of a file flat, in the order of the file."""

    symbols: tuple[EditorSymbol, ...]


class EditorHoverResult(Struct, frozen=True, kw_only=True):
    """What the servers say of the place, as Markdown or plain text; empty for nothing."""

    text: str


class EditorRenameParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """What would a rename of the symbol there change? Nothing is to be applied."""

    uri: str
    position: Position
    new_name: str


class EditorTextEdit(Struct, frozen=True, kw_only=True, rename="camel"):
    """LSP's `TextEdit`."""

    range: Range
    new_text: str


class RenamedFile(Struct, frozen=True, kw_only=True):
    """The changes of one file, all by the same text, in any order, none over another."""

    uri: str
    edits: tuple[EditorTextEdit, ...]


class EditorRenameResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The changes become hunks of a change set. `refused` says why there are none."""

    files: tuple[RenamedFile, ...]
    refused: str = ""
