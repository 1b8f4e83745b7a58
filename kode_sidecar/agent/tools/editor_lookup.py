"""`diagnostics`, `definition`, `references`, `symbols`: query the editor's language servers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.language import EditorDiagnostic, EditorSymbol
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.language_servers import (
    LanguageServers,
    LineMap,
    place_of_symbol,
)
from kode_sidecar.infrastructure.workspace.workspace import OnShown, Workspace

MAX_LINES = 200
MAX_FILES = 60
MAX_LINE_CHARS = 300
MAX_HOVER_CHARS = 4_000

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
# LSP 3.17 SymbolKind, from 1 on.
_KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field"),
    *("constructor", "enum", "interface", "function", "variable", "constant", "string", "number"),
    *("boolean", "array", "object", "key", "null", "enum member", "struct", "event", "operator"),
    "type parameter",
)

PathField = Annotated[str, Meta(description="File, relative to the open folder")]
LineField = Annotated[int, Meta(ge=1, description="Line that holds the symbol, from 1")]
SymbolField = Annotated[
    str, Meta(min_length=1, max_length=200, description="The name, as it stands in that line")
]


class DiagnosticsParams(Struct, forbid_unknown_fields=True):
    """What the editor's language servers and linters find wrong, errors first.

    Of one file, or of all that the editor knows of, which may be only the open ones. They see the
    editor's text, without your pending edits.
    """

    path: (
        Annotated[str, Meta(description="File, relative to the open folder; left out: all")] | None
    ) = None


class DefinitionParams(Struct, forbid_unknown_fields=True):
    """Where a symbol is defined, and what the editor says of it: its type, its documentation.

    By the editor's language server: it follows imports and overloads, where a search finds text.
    """

    path: PathField
    line: LineField
    symbol: SymbolField


class ReferencesParams(Struct, forbid_unknown_fields=True):
    """Every place that uses a symbol, by the editor's language server: ask before you change it."""

    path: PathField
    line: LineField
    symbol: SymbolField


class SymbolsParams(Struct, forbid_unknown_fields=True):
    """The outline of a file, or the symbols of the workspace whose names match `query`."""

    path: (
        Annotated[str, Meta(description="File, relative to the open folder, for its outline")]
        | None
    ) = None
    query: Annotated[str, Meta(max_length=200, description="Part of a name, without path")] = ""


class _Line(NamedTuple):
    """A line of the answer: a displayed path, a line number from 1, and a text.

    `number` is 0 if the model does not see that line.
    """

    path: str
    number: int
    text: str

    def shown(self) -> str:
        return f"{self.path}:{self.number or '?'}: {self.text}".rstrip()


@dataclass(frozen=True)
class _Seen:
    """A file as the model sees it."""

    document: Document
    text: str
    lines: Sequence[str]
    map: LineMap


@dataclass
class EditorLookup:
    """The lookups of one session. `on_shown` gets the lines that were shown."""

    workspace: Workspace
    servers: LanguageServers
    files: SessionFileView
    on_shown: OnShown

    async def diagnostics(self, params: DiagnosticsParams, _call: ToolCall) -> ToolOutcome:
        """Run the `diagnostics` tool. Raises KodeError, as all methods here."""
        seen = None if params.path is None else await self.see(params.path)
        found = await self.servers.diagnostics(seen and seen.document.uri)
        reported: list[tuple[int, _Line]] = []
        count = 0
        for file in found.files[:MAX_FILES]:
            if seen is not None and canonical_key(file.uri) != seen.document.key:
                continue
            shown = await self._see_uri(file.uri)
            if shown is None:
                continue
            count += 1
            name = self.workspace.display_path(shown.document.key)
            reported += [
                (one.severity, _diagnostic(name, one, shown.map)) for one in file.diagnostics
            ]
        reported.sort(
            key=lambda item: item[0]
        )  # stable: files and places stay in the editor's order
        where = params.path or f"{count} file{'' if count == 1 else 's'}"
        head = f"{_number(len(reported), 'diagnostic')} in {where}"
        if seen is not None and seen.map.differs:
            head += "; your pending edits are not in the text that was looked at"
        return _outcome(head, (line.shown() for _, line in reported), len(reported))

    async def definition(self, params: DefinitionParams, _call: ToolCall) -> ToolOutcome:
        """Run the `definition` tool."""
        uri, position = await self.place(params.path, params.line, params.symbol)
        found = await self.servers.definition(uri, position)
        places = [(one.uri, one.range) for one in found.locations]
        lines = [line.shown() for line in await self._lines_at(places)]
        if self.servers.serves("hover"):
            text = (await self.servers.hover(uri, position)).text.strip()
            lines += ["", text[:MAX_HOVER_CHARS]] if text else []
        head = f"`{params.symbol}` is defined in {_number(len(places), 'place')}"
        return _outcome(head, lines, len(places))

    async def references(self, params: ReferencesParams, _call: ToolCall) -> ToolOutcome:
        """Run the `references` tool."""
        uri, position = await self.place(params.path, params.line, params.symbol)
        found = await self.servers.references(uri, position)
        places = [(one.uri, one.range) for one in found.locations]
        files = len({canonical_key(uri) for uri, _ in places})
        head = f"{_number(len(places), 'reference')} in {_number(files, 'file')}"
        lines = [line.shown() for line in await self._lines_at(places)]
        return _outcome(head, lines, len(places))

    async def symbols(self, params: SymbolsParams, _call: ToolCall) -> ToolOutcome:
        """Run the `symbols` tool."""
        if (params.path is None) == (not params.query):
            raise KodeError("InvalidArguments", "Give `path` or `query`, one of the two.")
        seen = None if params.path is None else await self.see(params.path)
        found = await self.servers.symbols(seen and seen.document.uri, params.query)
        lines = [await self._symbol(one) for one in found.symbols[:MAX_LINES]]
        name = seen and self.workspace.display_path(seen.document.key)
        where = f"in {name}" if name else f"for {params.query!r}"
        head = f"{_number(len(found.symbols), 'symbol')} {where}"
        return _outcome(head, (line.shown() for line in lines), len(found.symbols))

    async def see(self, path: str) -> _Seen:
        """Return a file as the model sees it. Raises KodeError `NotFound` if only proposed."""
        document = await self.files.load(path, "read")
        added = any(document.path == place.path for place in self.files.added())
        if added and not document.is_open:
            text = "This file is only proposed by you; the editor's servers do not know it yet."
            raise KodeError("NotFound", text)
        text = self.files.view(document).text_lf
        return _Seen(document, text, split_lines(text), LineMap(text, document.lf_text))

    async def place(self, path: str, line: int, symbol: str) -> tuple[str, Position]:
        """Return the editor's position of a symbol that the model sees."""
        seen = await self.see(path)
        encoding = self.workspace.position_encoding
        return seen.document.uri, place_of_symbol(seen.document, seen.text, line, symbol, encoding)

    async def _see_uri(self, uri: str) -> _Seen | None:
        """Return a file; None if the model may not see it: outside, deleted, with credentials."""
        try:
            return await self.see(uri)
        except KodeError:
            return None

    async def _lines_at(self, places: Sequence[tuple[str, Range]]) -> list[_Line]:
        """Return each place with the line that the model sees there."""
        seen: dict[str, _Seen | None] = {}
        lines: dict[tuple[str, int], _Line] = {}
        for uri, span in places[: 10 * MAX_LINES]:
            if uri not in seen and len(seen) < MAX_FILES:
                seen[uri] = await self._see_uri(uri)
            line = self._line_at(uri, span, seen.get(uri))
            lines[line.path, line.number or -span.start.line] = line
        return list(lines.values())

    def _line_at(self, uri: str, span: Range, file: _Seen | None) -> _Line:
        if file is None:
            name = self.workspace.display_path(uri)
            return _Line(name, span.start.line + 1, "(not shown: outside, or closed to you)")
        name = self.workspace.display_path(file.document.key)
        number = file.map.seen(span.start.line)
        if number is None or number >= len(file.lines):
            return _Line(name, 0, "(in text that your pending edit replaces)")
        line = file.lines[number].removesuffix("\n")
        if len(line) <= MAX_LINE_CHARS:
            self.on_shown(file.document, file.text, number + 1, number + 1)
        return _Line(name, number + 1, cut_line(line, MAX_LINE_CHARS, span.start.character))

    async def _symbol(self, symbol: EditorSymbol) -> _Line:
        kind = _KINDS[symbol.kind - 1] if 0 < symbol.kind <= len(_KINDS) else "symbol"
        text = one_line(f"{kind} {symbol.name}")
        text += f" (in {one_line(symbol.container)})" if symbol.container else ""
        file = await self._see_uri(symbol.uri)
        line = self._line_at(symbol.uri, symbol.range, file)
        return line._replace(text=cut_line(text, MAX_LINE_CHARS))


LookupName = Literal["diagnostics", "definition", "references", "symbols"]


def editor_lookup_tool(name: LookupName, lookup: EditorLookup) -> Tool:
    """Make one of the tools that only look up."""
    search = partial(Tool, name, read_only=True, kind="search")
    match name:
        case "diagnostics":
            run, card = lookup.diagnostics, _diagnostics_card
            return Tool(name, DiagnosticsParams, run, read_only=True, kind="read", card=card)
        case "definition":
            card = partial(_place_card, "Definition")
            return search(DefinitionParams, lookup.definition, card=card)
        case "references":
            card = partial(_place_card, "References")
            return search(ReferencesParams, lookup.references, card=card)
        case "symbols":
            return search(SymbolsParams, lookup.symbols, card=_symbols_card)


def _diagnostics_card(params: DiagnosticsParams) -> CallCard:
    if params.path is None:
        return CallCard("Diagnostics of the workspace")
    return CallCard(f"Diagnostics of {params.path}", (CallPlace(params.path),))


def _place_card(what: str, params: DefinitionParams | ReferencesParams) -> CallCard:
    return CallCard(f"{what} of {params.symbol}", (CallPlace(params.path, params.line),))


def _symbols_card(params: SymbolsParams) -> CallCard:
    if params.path is None:
        return CallCard(f"Symbols like {params.query}")
    return CallCard(f"Symbols of {params.path}", (CallPlace(params.path),))


def _diagnostic(name: str, found: EditorDiagnostic, lines: LineMap) -> _Line:
    number = lines.seen(found.range.start.line)
    return _Line(name, 0 if number is None else number + 1, diagnostic_text(found))


def diagnostic_text(found: EditorDiagnostic) -> str:
    """Return a diagnostic on one line, without its place."""
    source = "".join((found.source, f"({found.code})" if found.code else ""))
    reported = " ".join(filter(None, (_SEVERITIES.get(found.severity, "note"), source)))
    return cut_line(one_line(f"{reported}: {found.message}"), MAX_LINE_CHARS)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else f"no {what}"


def _outcome(head: str, lines: Iterable[str], count: int) -> ToolOutcome:
    head = without_controls(head)
    shown = list(_at_most(lines, count))
    return ToolOutcome(ok=True, summary=head, content=without_controls("\n".join([head, *shown])))


def _at_most(lines: Iterable[str], count: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == MAX_LINES:
            yield f"[{count - MAX_LINES} more are not shown]"
            return
        yield line
