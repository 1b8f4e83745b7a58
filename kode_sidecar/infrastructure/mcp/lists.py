"""Asks a server for its lists, page by page, however it ends them.

A tool that exists must be found although a neighbour cannot be read, another list is refused, or
the cursor of the last page leads nowhere.
"""

import math
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.text.shown_text import hides_nothing
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import Json, McpTool, as_object, cleaned, reason
from kode_sidecar.infrastructure.mcp.messages import salvaged
from kode_sidecar.infrastructure.mcp.peer import Peer

T = TypeVar("T", bound=Struct)

_LIST_SECONDS = 30.0
_MOST_PAGES, _MOST_ITEMS = 100, 2_000
_MOST_LIST_BYTES = 4_000_000
_MOST_BARREN = 3
_KEYS = ("name", "uri", "uriTemplate")


class Lists:
    """The lists of one server. `holds_seconds` says how long they hold by the server's words."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.holds_seconds = math.inf

    async def tools(self) -> tuple[McpTool, ...]:
        """Return all tools. Raises KodeError if they were announced and cannot be listed."""
        announced = self._peer.capabilities
        if "tools" in announced:
            return await self._pages("tools/list", "tools", McpTool)
        # Some old servers announce nothing at all.
        return () if announced.keys() & {"resources", "prompts"} else await self._tried_tools()

    async def _tried_tools(self) -> tuple[McpTool, ...]:
        try:
            return await self._pages("tools/list", "tools", McpTool)
        except KodeError as error:
            if reason(error) != "refused":
                raise
            return ()

    async def optional(self, announced: str, kind: type[T], part: str = "") -> tuple[T, ...]:
        """Return a list that must not cost the tools: empty if it was not announced or fails."""
        if announced not in self._peer.capabilities:
            return ()
        method = f"{announced}/{part}/list" if part else f"{announced}/list"
        try:
            return await self._pages(method, "resourceTemplates" if part else announced, kind)
        except KodeError as error:
            if reason(error) in ("refused", "timeout", "unreadable"):
                return ()
            raise

    async def _pages(self, method: str, what: str, kind: type[T]) -> tuple[T, ...]:
        found: dict[str, T] = {}
        cursors: set[str] = set()
        params: Json = {}
        barren = size = 0
        for _ in range(_MOST_PAGES):
            try:
                page = await self._peer.request(method, params, seconds=_LIST_SECONDS)
            except KodeError as error:
                # An old server refuses the cursor that it meant as the end.
                if params and reason(error) == "refused":
                    break
                raise
            held = page.get("ttlMs")
            if isinstance(held, int | float) and not isinstance(held, bool) and held >= 0:
                self.holds_seconds = min(self.holds_seconds, held / 1000)
            before = len(found)
            listed: object = page.get(what)
            items = cast(list[object], listed) if isinstance(listed, list) else []
            for item in items:
                size += len(msgspec.json.encode(item))
                if size > _MOST_LIST_BYTES or len(found) >= _MOST_ITEMS:
                    return tuple(found.values())
                one = salvaged(cleaned(item), kind) if _is_named_plainly(item) else None
                if one is not None:
                    found.setdefault(_key(item), one)
            cursor = page.get("nextCursor")
            barren = 0 if len(found) > before else barren + 1
            repeats = barren > 0 and bool(items)
            if cursor is None or repr(cursor) in cursors or repeats or barren >= _MOST_BARREN:
                break
            cursors.add(repr(cursor))
            params = {"cursor": cursor}
        return tuple(found.values())


def _key(item: Any) -> str:
    return next(str(item[key]) for key in _KEYS if key in item)


def _is_named_plainly(item: Any) -> bool:
    """Return whether a person sees every character of the names that we would call it by."""
    names = (as_object(item).get(key) for key in _KEYS)
    return all(hides_nothing(name) for name in names if isinstance(name, str))
