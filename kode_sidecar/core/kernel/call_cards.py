"""Describes calls to clients that do not know the tool: kind, title, and the files concerned."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.domain.message import CallLocation, ToolUseBlock
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool
from kode_sidecar.core.text.shown_text import cut_line, one_line
from kode_sidecar.core.text.tool_arguments import fitted
from kode_sidecar.errors import KodeError

_TITLE_CHARS = 160
_MOST_PLACES = 20


def read_arguments(tool: Tool, arguments: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Parse arguments into what the tool's `run` gets, with notes of what was made of them.

    A command runs as it was meant, or not at all: its arguments have no other names.
    Raises msgspec.ValidationError.
    """
    if tool.accept is not None:
        return tool.accept(arguments), ()
    notes: tuple[str, ...] = ()
    if not tool.foreign and tool.kind != "run":
        arguments, notes = fitted(arguments, tool.params)
    return msgspec.convert(arguments, tool.params, strict=False), notes


class CallCards:
    """Adds kind, title and locations to the calls of `tools`.

    `uri_of` maps a path to the file's URI, None if it has none.
    """

    def __init__(
        self, tools: Sequence[Tool] = (), uri_of: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._uri_of = uri_of

    def begun(self, block: ToolUseBlock) -> ToolUseBlock:
        """Return the block of a call whose arguments have not arrived yet."""
        tool = self._tools.get(block.name)
        title = _shown(block.name.replace("_", " ").capitalize())
        return msgspec.structs.replace(block, kind=tool.kind if tool else "other", title=title)

    def whole(self, block: ToolUseBlock) -> ToolUseBlock:
        """Return the block of a complete call; wrong arguments leave kind and title as begun."""
        begun = self.begun(block)
        tool = self._tools.get(block.name)
        if tool is None or tool.card is None or block.invalid_input is not None:
            return begun
        try:
            card = tool.card(read_arguments(tool, block.input)[0])
        except (msgspec.ValidationError, KodeError):
            return begun  # running the call reports what is wrong
        return msgspec.structs.replace(
            begun, title=_shown(card.title), locations=self._locations(card)
        )

    def _locations(self, card: CallCard) -> tuple[CallLocation, ...]:
        found: list[CallLocation] = []
        for place in card.places[:_MOST_PLACES]:
            uri = self._uri_of(place.path)
            if uri is not None:
                found.append(CallLocation(uri=uri, range=_lines(place)))
        return tuple(found)


def _lines(place: CallPlace) -> Range | None:
    if place.first is None or place.first < 1:
        return None
    last = place.first if place.last is None else max(place.first, place.last)
    return Range(Position(place.first - 1, 0), Position(last, 0))


def _shown(title: str) -> str:
    return cut_line(one_line(title), _TITLE_CHARS)
