"""Starts one configured server at its first use, sends it requests, and ends it.

Nothing runs until a tool is called or a list is needed that is not stored. A server that died is
started again at the next call, after a pause that grows with each failure in a row.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.core.text.shown_text import hides_nothing
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    Access,
    CallResult,
    Elicit,
    Json,
    McpHost,
    McpPrompt,
    McpResource,
    McpTemplate,
    McpTool,
    Progress,
    ServerConfig,
    ServerListing,
    as_object,
    cleaned,
    server_error,
)
from kode_sidecar.infrastructure.mcp.header_params import are_sound, param_headers
from kode_sidecar.infrastructure.mcp.kept import RememberedLists
from kode_sidecar.infrastructure.mcp.peer import Channel, Peer
from kode_sidecar.infrastructure.mcp.stdio import StdioChannel

State = Literal["idle", "starting", "ready", "failed"]
T = TypeVar("T", bound=Struct)

_LIST_SECONDS = 30.0
_MOST_PAGES, _MOST_ITEMS = 100, 2_000
_MOST_LIST_BYTES = 4_000_000
_MOST_PAUSE_SECONDS = 60.0


class ServerReport(Struct, frozen=True):
    """The state of a server as `doctor` and the editor show it."""

    name: str
    state: State
    version: str
    tools: int
    last_error: str
    stderr_tail: tuple[str, ...]


class Server:
    """One server of the user's. Its program gets `environment` besides its own variables.

    `find` turns the name of a program into its path, or raises KodeError. `now()` is a monotonic
    clock in seconds. `changed()` is called when state or tools change. `allowed()` is the user's
    decision on a server that a project names: None if they were not asked.
    """

    def __init__(
        self,
        config: ServerConfig,
        host: McpHost,
        remembered: RememberedLists,
        *,
        environment: Mapping[str, str],
        now: Callable[[], float],
        find: Callable[[str], str] = str,
        changed: Callable[[], None] = lambda: None,
        access: Access = NO_ACCESS,
        allowed: Callable[[], bool | None] = lambda: True,
    ) -> None:
        self.config = config
        self.allowed = allowed
        self.state: State = "idle"
        self.last_error = ""
        self._host = host if host.elicit else replace(host, elicit=self._elicit)
        self._elicits: list[Elicit] = []
        self._remembered = remembered
        self._environment = environment
        self._now = now
        self._find = find
        self._changed = changed
        self._access = access
        self._peer: Peer | None = None
        self._channel: Channel | None = None
        self._starting = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._listing: ServerListing | None = None

    def known(self) -> ServerListing | None:
        """Return what the server offers, if that is known without starting it."""
        return self._listing or self._remembered.get(self.config.fingerprint)

    async def listing(self, *, again: bool = False) -> ServerListing:
        """Return what the server offers, asked once per run. Raises KodeError `ToolFailed`."""
        if self._listing is None or again:
            peer = await self._ready()
            self._listing = ServerListing(
                version=peer.version,
                tools=self._offered(await _listed(peer, "tools", McpTool)),
                resources=await _listed(peer, "resources", McpResource),
                prompts=await _listed(peer, "prompts", McpPrompt),
                templates=await _templates(peer),
            )
            self._remembered.put(self.config.fingerprint, self._listing)
            self._changed()
        return self._listing

    async def call(
        self,
        tool: str,
        arguments: Json,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
    ) -> CallResult:
        """Call a tool; `elicit` answers the server's questions meanwhile.

        A server of the stateful generation does not say which call a question belongs to, so the
        newest running call answers. Raises KodeError `ToolFailed`, `UnknownTool`.
        """
        offered = self.config.tools
        if offered and tool not in offered:
            text = f"{tool} of the MCP server {self.config.name} is not on offer here."
            raise KodeError("UnknownTool", text)
        params = {"name": tool, "arguments": arguments}
        headers = await self._headers(tool, arguments)
        if elicit is not None:
            self._elicits.append(elicit)
        try:
            result = await self._ask("tools/call", params, progress, headers)
        finally:
            if elicit is not None:
                self._elicits.remove(elicit)
        return self._read(result, CallResult)

    async def read_resource(self, uri: str) -> Json:
        """Return the answer with a resource's `contents`. Raises KodeError `ToolFailed`."""
        return await self._ask("resources/read", {"uri": uri}, None)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Json:
        """Return the server's answer with a prompt's messages. Raises KodeError `ToolFailed`."""
        return await self._ask("prompts/get", {"name": name, "arguments": dict(arguments)}, None)

    def report(self) -> ServerReport:
        """Return its state, for people."""
        known = self.known()
        channel = self._channel
        tail = tuple(channel.stderr_tail) if isinstance(channel, StdioChannel) else ()
        return ServerReport(
            self.config.name,
            self.state,
            self._peer.version if self._peer else "",
            len(known.tools) if known else 0,
            self.last_error,
            tail,
        )

    def kill(self) -> None:
        """End its program at once; safe from any thread."""
        if isinstance(self._channel, StdioChannel):
            self._channel.kill()

    async def close(self) -> None:
        """Close the connection and end the program, giving it time to exit."""
        peer, self._peer = self._peer, None
        if peer is not None:
            await peer.close()
        self.state = "idle"

    async def _headers(self, tool: str, arguments: Json) -> dict[str, str]:
        """Return the headers that the tool's schema asks for."""
        if not self.config.url:
            return {}
        known = self.known() or await self.listing()
        nothing: Json = {}
        schema = next((one.input_schema for one in known.tools if one.name == tool), nothing)
        return param_headers(schema, arguments)

    async def _ask(
        self,
        method: str,
        params: Json,
        progress: Progress | None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        peer = await self._ready()
        try:
            return await peer.request(
                method,
                params,
                seconds=self.config.call_seconds,
                progress=progress,
                headers=headers,
            )
        except KodeError as error:
            if (error.details or {}).get("reason") in (
                "ended",
                "session_lost",
                "too_large",
                "too_many",
            ):
                await self._lost(error)
            raise

    async def _ready(self) -> Peer:
        async with self._starting:
            if self._peer is not None:
                return self._peer
            if not self.allowed():
                text = "is named by a file of this project and waits for the user's yes."
                raise server_error(self.config.name, text, "not_allowed")
            if self._now() < self._not_before:
                text = f"failed and is not started again yet. {self.last_error}"
                raise server_error(self.config.name, text, "pause", retryable=True)
            self._set("starting")
            try:
                self._peer = await self._start()
            except (KodeError, TimeoutError) as error:
                failure = error if isinstance(error, KodeError) else self._slow()
                await self._lost(failure)
                raise failure from None
            self._failures, self.last_error = 0, ""
            self._set("ready")
            return self._peer

    async def _start(self) -> Peer:
        peer = Peer(self.config.name, self._host, self._forget_listing)
        channel: Channel
        if self.config.url:
            # Imported late: it loads httpx, which servers that are programs do not need.
            from kode_sidecar.infrastructure.mcp.http import HttpChannel  # noqa: PLC0415

            channel = HttpChannel(self.config, peer, self._access)
        else:
            channel = StdioChannel(self.config, peer)
        self._channel = channel
        try:
            async with asyncio.timeout(self.config.start_seconds):
                if isinstance(channel, StdioChannel):
                    await channel.start(self._environment, self._find)
                known = self._remembered.get(self.config.fingerprint)
                await peer.open(channel, known.version if known else "")
        except BaseException:
            await channel.close()
            raise
        return peer

    def _slow(self) -> KodeError:
        text = (
            f"did not start within {self.config.start_seconds:g} seconds. Try its command in a "
            "terminal, or give it more time with `start_seconds`."
        )
        return server_error(self.config.name, text, "slow_start", retryable=True)

    async def _lost(self, error: KodeError) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            await peer.close()
        self._failures += 1
        pause = min(2.0 ** (self._failures - 1) - 1.0, _MOST_PAUSE_SECONDS)
        self._not_before = self._now() + pause
        self.last_error = error.message
        self._set("failed")

    async def _elicit(self, message: str, schema: Json) -> Json | None:
        async with self._asking:  # a user answers one question at a time
            return await self._elicits[-1](message, schema) if self._elicits else None

    def _forget_listing(self) -> None:
        if self._listing is not None:  # a server may say so a thousand times
            self._listing = None
            self._changed()

    def _set(self, state: State) -> None:
        self.state = state
        self._changed()

    def _offered(self, tools: Sequence[McpTool]) -> tuple[McpTool, ...]:
        wanted = self.config.tools
        return tuple(
            tool
            for tool in tools
            if (not wanted or tool.name in wanted)
            and (not self.config.url or are_sound(tool.input_schema))
        )

    def _read(self, result: Json, kind: type[T]) -> T:
        try:
            return msgspec.convert(result, kind, strict=False)
        except msgspec.ValidationError as error:
            text = f"answered with something else than the protocol says: {error}."
            raise server_error(self.config.name, text, "wrong_shape") from None


async def _listed(peer: Peer, what: str, kind: type[T]) -> tuple[T, ...]:
    """Return all pages of a list, without unusable items; empty if it was not announced."""
    return await _pages(peer, f"{what}/list", what, kind) if what in peer.capabilities else ()


async def _templates(peer: Peer) -> tuple[McpTemplate, ...]:
    """Return the resource templates; empty if the server does not support them."""
    if "resources" not in peer.capabilities:
        return ()
    try:
        return await _pages(peer, "resources/templates/list", "resourceTemplates", McpTemplate)
    except KodeError:
        return ()


async def _pages(peer: Peer, method: str, what: str, kind: type[T]) -> tuple[T, ...]:
    found: list[T] = []
    cursor: Any = None
    size = 0
    for _ in range(_MOST_PAGES):
        params: Json = {} if cursor is None else {"cursor": cursor}
        page = await peer.request(method, params, seconds=_LIST_SECONDS)
        items: object = page.get(what)
        for item in cast(list[Any], items) if isinstance(items, list) else ():
            size += len(msgspec.json.encode(item))
            if size > _MOST_LIST_BYTES or len(found) >= _MOST_ITEMS:
                return tuple(found)
            if _is_named_plainly(item):
                with suppress(msgspec.ValidationError):
                    found.append(msgspec.convert(cleaned(item), kind, strict=False))
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return tuple(found)


def _is_named_plainly(item: Any) -> bool:
    """Return whether a person sees every character of the names that we would call it by."""
    names = (as_object(item).get(key, "") for key in ("name", "uri", "uriTemplate"))
    return all(isinstance(name, str) and hides_nothing(name) for name in names)
