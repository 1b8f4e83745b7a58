"""Asks the editor's own language servers over the wire, about places that a model names (F6).

Language servers see the editor's text. A model also sees its pending edits, so line numbers are
translated both ways; a line that only one side has is reported as such.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.core.domain.change_set import Position
from kode_sidecar.core.protocol.language import (
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    EditorHoverResult,
    EditorLocationsResult,
    EditorPlaceParams,
    EditorRenameParams,
    EditorRenameResult,
    EditorSymbolsParams,
    EditorSymbolsResult,
    FileDiagnostics,
)
from kode_sidecar.core.text.line_diff import diff_lines, split_lines
from kode_sidecar.core.text.text_lines import PositionEncoding, encoded_column
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document

EditorQuery = Literal["diagnostics", "definition", "references", "symbols", "hover", "rename"]

Ask = Callable[[str, Struct, Any], Awaitable[Any]]
"""`(method, params, type of the result)`: asks the editor. Raises KodeError."""

ANSWER_SECONDS = 20.0
_PLACES_NAMED = 5
_OUR_SOURCES = ("kode", "kode review")


async def _nobody(method: str, _params: Struct, _result: Any) -> Any:
    raise KodeError("CapabilityMissing", f"the editor does not know {method}")


class LanguageServers:
    """Queries to the editor's language servers; `served` are those the editor announced.

    Every method raises KodeError: `ToolFailed` without an answer in time, and as `ask` does.
    """

    def __init__(
        self,
        served: Collection[str] = (),
        ask: Ask = _nobody,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._served = frozenset(served)
        self._ask = ask
        self._answer_seconds = answer_seconds

    def serves(self, query: EditorQuery) -> bool:
        """Return whether the editor announced this query."""
        return query in self._served

    async def diagnostics(
        self, uri: str | None, *, after_edit: bool = False
    ) -> EditorDiagnosticsResult:
        """Return the diagnostics of a file, or of all files that the editor knows, but our own."""
        params = EditorDiagnosticsParams(uri=uri, after_edit=after_edit)
        result = await self._query("diagnostics", params, EditorDiagnosticsResult)
        return EditorDiagnosticsResult(
            files=tuple(
                FileDiagnostics(
                    uri=file.uri,
                    diagnostics=tuple(d for d in file.diagnostics if d.source not in _OUR_SOURCES),
                )
                for file in result.files
            )
        )

    async def definition(self, uri: str, position: Position) -> EditorLocationsResult:
        """Return where the symbol at a position is defined."""
        params = EditorPlaceParams(uri=uri, position=position)
        return await self._query("definition", params, EditorLocationsResult)

    async def references(self, uri: str, position: Position) -> EditorLocationsResult:
        """Return where the symbol at a position is used."""
        params = EditorPlaceParams(uri=uri, position=position)
        return await self._query("references", params, EditorLocationsResult)

    async def hover(self, uri: str, position: Position) -> EditorHoverResult:
        """Return the hover text of a position."""
        params = EditorPlaceParams(uri=uri, position=position)
        return await self._query("hover", params, EditorHoverResult)

    async def symbols(self, uri: str | None, query: str) -> EditorSymbolsResult:
        """Return the symbols of a file, or those of the workspace that match."""
        params = EditorSymbolsParams(uri=uri, query=query)
        return await self._query("symbols", params, EditorSymbolsResult)

    async def rename(self, uri: str, position: Position, new_name: str) -> EditorRenameResult:
        """Return the changes of a rename, without applying them."""
        params = EditorRenameParams(uri=uri, position=position, new_name=new_name)
        return await self._query("rename", params, EditorRenameResult)

    async def _query(self, query: EditorQuery, params: Struct, result: Any) -> Any:
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._ask(f"kode/editor/{query}", params, result)
        except TimeoutError:
            text = (
                f"The editor's language servers did not answer within {self._answer_seconds:.0f} s."
                " They may still be starting; search_code works without them."
            )
            raise KodeError("ToolFailed", text) from None


class LineMap:
    """Translates line numbers, from 0, between a model's text of a file and the editor's.

    Both are LF texts.
    """

    def __init__(self, seen: str, held: str) -> None:
        same = seen is held or seen == held
        self._runs = [] if same else diff_lines(split_lines(seen), split_lines(held))

    @property
    def differs(self) -> bool:
        """True if the two texts differ."""
        return bool(self._runs)

    def held(self, line: int) -> int | None:
        """Return the editor's line for a model's; None for a line that only the model sees."""
        shift = 0
        for a0, a1, _, b1 in self._runs:
            if line < a0:
                break
            if line < a1:
                return None
            shift = b1 - a1
        return line + shift

    def seen(self, line: int) -> int | None:
        """Return the model's line for an editor's; None for a line that pending edits replace."""
        shift = 0
        for _, a1, b0, b1 in self._runs:
            if line < b0:
                break
            if line < b1:
                return None
            shift = a1 - b1
        return line + shift


def place_of_symbol(
    document: Document, seen: str, line: int, symbol: str, encoding: PositionEncoding
) -> Position:
    """Return the editor's position of the `symbol` that a model sees in a line, from 1.

    `seen` is the document's text with pending edits. Raises KodeError `InvalidArguments`, which
    names other lines with the symbol, if it is not in this one.
    """
    lines = split_lines(seen)
    column = _column(lines[line - 1], symbol) if line <= len(lines) else None
    if column is None:
        others = [at for at, text in enumerate(lines, 1) if _column(text, symbol) is not None]
        said = ", ".join(map(str, others[:_PLACES_NAMED])) or "no line"
        text = f"Line {line} does not hold `{symbol}`; in this file {said} does."
        raise KodeError("InvalidArguments", text)
    held = LineMap(seen, document.lf_text).held(line - 1)
    if held is None:
        text = (
            f"Line {line} is part of your own pending edit, which the editor does not have yet. "
            "Ask about a place outside of it, or go on without."
        )
        raise KodeError("InvalidArguments", text)
    return Position(held, encoded_column(lines[line - 1], column, encoding))


def _column(line: str, symbol: str) -> int | None:
    """Return where a symbol begins in a line: as a whole word if there is one, else anywhere."""
    whole = re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", line)
    at = whole.start() if whole else line.find(symbol)
    return at if at >= 0 else None
