"""Starts one configured server at its first use, sends it requests, and ends it.

Nothing runs until a tool is called or a list is needed that is not stored. A server that died is
started again at the next call, after a pause that grows with each failure in a row.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

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
    reason,
    server_error,
)
from kode_sidecar.infrastructure.mcp.header_params import are_sound, param_headers
from kode_sidecar.infrastructure.mcp.lists import Lists
from kode_sidecar.infrastructure.mcp.messages import call_result
from kode_sidecar.infrastructure.mcp.peer import STATEFUL, Channel, Peer
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists
from kode_sidecar.infrastructure.mcp.stdio import StdioChannel

State = Literal["idle", "starting", "ready", "failed"]
R = TypeVar("R")

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
        self.state: State = "failed" if config.unusable else "idle"
        self.last_error = config.unusable
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
        self._outdated = self._probed = False
        self._holds_until = math.inf
        self._version = ""
        self._retiring: set[asyncio.Task[None]] = set()

    def known(self) -> ServerListing | None:
        """Return what the server offers, if that is known without starting it."""
        return self._listing or self._remembered.get(self.config.fingerprint)

    async def listing(self, *, again: bool = False) -> ServerListing:
        """Return what the server offers, asked once per run and after each change.

        Raises KodeError `ToolFailed`.
        """
        if self._listing is None or again or self.changed:
            self._outdated = False
            try:
                self._listing, self._holds_until = await self._use(self._asked_lists)
            except BaseException:
                self._outdated = True
                raise
            self._remembered.put(self.config.fingerprint, self._listing)
            self._changed()
        return self._listing

    @property
    def changed(self) -> bool:
        """True if the list is older than the server's last word on it."""
        return self._outdated or self._now() >= self._holds_until

    async def _asked_lists(self, peer: Peer) -> tuple[ServerListing, float]:
        lists = Lists(peer)
        listing = ServerListing(
            version=peer.version,
            tools=self._offered(await lists.tools()),
            resources=await lists.optional("resources", McpResource),
            prompts=await lists.optional("prompts", McpPrompt),
            templates=await lists.optional("resources", McpTemplate, "templates"),
        )
        return listing, self._now() + lists.holds_seconds

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
        return call_result(result)

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
        if self._peer is not None and self._peer.lenient:
            tail += ("Some of its messages are no strict JSON; they were read leniently.",)
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
        for task in tuple(self._retiring):
            task.cancel()
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
        async def asked(peer: Peer) -> Json:
            seconds = self.config.call_seconds
            return await peer.request(
                method, params, seconds=seconds, progress=progress, headers=headers
            )

        return await self._use(asked)

    async def _use(self, ask: Callable[[Peer], Awaitable[R]]) -> R:
        """Ask the server; with a new session and once more if it has forgotten the old one."""
        peer = await self._ready()
        try:
            return await ask(peer)
        except KodeError as error:
            await self._noted(peer, error)
            if reason(error) != "session_lost":
                raise
        peer = await self._ready()
        try:
            return await ask(peer)
        except KodeError as error:
            await self._noted(peer, error)
            raise

    async def _noted(self, peer: Peer, error: KodeError) -> None:
        """Let go of a peer that can answer no more."""
        if reason(error) in ("session_lost", "incomplete") and self.config.url:
            if self._peer is peer:
                self._peer = None
                self._retire(peer)
        elif reason(error) in ("ended", "too_large", "too_many"):
            await self._lost(error, peer)

    def _retire(self, peer: Peer) -> None:
        """Close a peer once the other requests on it have ended, in the background."""
        task = asyncio.create_task(peer.retire())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _ready(self) -> Peer:
        async with self._starting:
            if self._peer is not None and self._peer.ended:  # between two calls: nobody's failure
                peer, self._peer = self._peer, None
                await peer.close()
            if self._peer is not None:
                return self._peer
            if self.config.unusable:
                raise KodeError("ToolFailed", self.config.unusable)
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
                await self._lost(failure, None)
                raise failure from None
            self._failures, self.last_error = 0, ""
            self._set("ready")
            return self._peer

    async def _start(self) -> Peer:
        """Start it; a program that did not survive the probe again, and without it."""
        known = self._remembered.get(self.config.fingerprint)
        version = self._version or (known.version if known else "")
        try:
            peer = await self._opened(version)
        except (KodeError, TimeoutError) as error:
            died = isinstance(error, TimeoutError) or reason(error) == "ended"
            if not died or not self._probed:
                raise
            peer = await self._opened(STATEFUL[0])
        self._version = peer.version
        return peer

    async def _opened(self, version: str) -> Peer:
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
                await peer.open(channel, version)
        except BaseException:
            await channel.close()
            raise
        finally:
            self._probed = peer.probed and not self.config.url
        return peer

    def _slow(self) -> KodeError:
        text = (
            f"did not start within {self.config.start_seconds:g} seconds. Try its command in a "
            "terminal, or give it more time with `start_seconds`."
        )
        return server_error(self.config.name, text, "slow_start", retryable=True)

    async def _lost(self, error: KodeError, peer: Peer | None) -> None:
        if peer is not self._peer:
            return  # another request has noticed it before
        self._peer = None
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
        if self._listing is not None and not self._outdated:  # a server may say so a thousand times
            self._outdated = True
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
