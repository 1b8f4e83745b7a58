"""Holds all servers of this process: finds, searches, approves and ends them."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kode_sidecar.core.text.shown_text import cut_line, one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    Access,
    McpHost,
    McpTool,
    ServerConfig,
)
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import Approvals, RememberedLists

_WORD = re.compile(r"\w+")
MOST_CHARS = 64
"""The longest tool name that models accept."""
_REFUSED = re.compile(r"[^A-Za-z0-9_-]+")
_TAIL_CHARS = 8
_LINE_CHARS = 400


class Found(Struct, frozen=True):
    """A tool, the server that has it, and the name under which a model may call it directly."""

    server: Server
    tool: McpTool
    name: str


class Searched(Struct, frozen=True):
    """Tools that fit a search, and a line for each server that could not be asked."""

    found: tuple[Found, ...]
    failed: tuple[str, ...] = ()


class Offer(Struct, frozen=True):
    """What a session's model sees: the servers' names, and the tools it may call directly."""

    names: tuple[str, ...]
    direct: tuple[Found, ...]


class Servers:
    """The configured servers. Creating it starts nothing; programs get `environment`.

    `project` returns the servers that the open folders name; `approvals` says which of them may
    start. `access` says how to reach a server at an address, and how to answer its refusals.
    `problems` are the entries that no server could be made of.
    """

    def __init__(
        self,
        configs: Iterable[ServerConfig],
        host: McpHost,
        remembered: RememberedLists,
        *,
        environment: Mapping[str, str],
        now: Callable[[], float],
        find: Callable[[str], str] = str,
        changed: Callable[[], None] = lambda: None,
        project: Callable[[], Sequence[ServerConfig]] = tuple,
        approvals: Approvals | None = None,
        access: Callable[[ServerConfig], Access] = lambda _: NO_ACCESS,
        problems: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._servers: dict[str, Server] = {}
        self._frozen: dict[str, Offer] = {}
        self._project = project
        self._approvals = approvals or Approvals(None)
        self._problems = problems
        self._reported: dict[str, set[str]] = {}

        def make(config: ServerConfig) -> Server:
            return Server(
                config,
                host,
                remembered,
                environment=environment,
                now=now,
                find=find,
                changed=changed,
                access=access(config),
                allowed=partial(self._allowed, config),
            )

        self._make = make
        for config in configs:
            self._servers.setdefault(config.name, make(config))

    def refresh(self) -> None:
        """Read again which servers the open folders name; the user's own take precedence."""
        named = {config.name: config for config in self._project()}
        for name, server in list(self._servers.items()):
            if server.config.source == "project" and server.config != named.get(name):
                server.kill()
                del self._servers[name]
        for name, config in named.items():
            if name not in self._servers:
                self._servers[name] = self._make(config)

    def decide(self, name: str, fingerprint: str, *, allowed: bool) -> None:
        """Save the user's decision on a project's server whose entry has this fingerprint.

        Raises KodeError `NotFound`, `Storage`; `StaleBase` if the entry has changed since.
        """
        server = self.get(name)
        if server.config.fingerprint != fingerprint:
            text = f"The entry of the MCP server {name} has changed: look at it again."
            raise KodeError("StaleBase", text)
        self._approvals.put(fingerprint, allowed)
        if not allowed:
            server.kill()

    def _allowed(self, config: ServerConfig) -> bool | None:
        return config.source != "project" or self._approvals.get(config.fingerprint)

    def get(self, name: str) -> Server:
        """Return the server of that name. Raises KodeError `NotFound`."""
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            text = " ".join(
                (f"There is no MCP server {name!r}. Configured: {known}.", *self._wrong())
            )
            raise KodeError("NotFound", text)
        return server

    def offer(self, session_id: str) -> Offer:
        """Return the offer of a session, frozen at the first call.

        So the beginning of its requests stays identical, and hosts find it in their caches.
        """
        if session_id not in self._frozen:
            direct = tuple(
                Found(server, tool, tool_name(server.config.name, tool.name))
                for server in self._servers.values()
                if server.config.direct and server.allowed() and (known := server.known())
                for tool in known.tools
            )
            self._frozen[session_id] = Offer(tuple(self._servers), direct)
        return self._frozen[session_id]

    def forget(self, session_id: str) -> None:
        """Drop the frozen offer of a session that has ended."""
        self._frozen.pop(session_id, None)
        self._reported.pop(session_id, None)

    def news(self, session_id: str, texts: Sequence[str]) -> list[str]:
        """Return those texts that were not returned for this session before."""
        known = self._reported.setdefault(session_id, set())
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(new)
        return new

    async def search(self, query: str, server: str | None, most: int) -> Searched:
        """Return the tools that fit `query` best, at most `most`; an empty query fits all.

        Servers without a current list are started, in parallel. One that fails or waits for
        approval is reported. Raises KodeError `NotFound`, and `ToolFailed` if `server` names it.
        """
        failed: list[str] = []
        if server is not None:
            chosen = [self.get(server)]
            await chosen[0].listing()
        else:
            chosen = list(self._servers.values())
            failed += [line for line in await asyncio.gather(*map(_failure, chosen)) if line]
            failed += self._wrong()
        found = [
            Found(one, tool, tool_name(one.config.name, tool.name))
            for one in chosen
            if one.allowed() and (known := one.known())
            for tool in known.tools
        ]
        words = {word.casefold() for word in _WORD.findall(query)}
        scored = [(_score(one, words), -at, one) for at, one in enumerate(found)]
        fitting = [entry for entry in scored if entry[0] > 0 or not words]
        fitting.sort(key=lambda entry: entry[:2], reverse=True)
        return Searched(tuple(one for _, _, one in fitting[:most]), tuple(failed))

    def _wrong(self) -> list[str]:
        return [_line(f"Not usable: {problem}") for problem in self._problems()]

    def all(self) -> Sequence[Server]:
        """Return all servers, in the order of the settings."""
        return tuple(self._servers.values())

    def kill(self) -> None:
        """End all programs at once; safe from any thread."""
        for server in self._servers.values():
            server.kill()

    async def close(self) -> None:
        """Close all servers in parallel, giving each time to exit."""
        closing = (server.close() for server in self._servers.values())
        await asyncio.gather(*closing, return_exceptions=True)


async def _failure(server: Server) -> str:
    """Bring the list of a server up to date; return why that failed, empty if it did not."""
    name, allowed = server.config.name, server.allowed()
    if not allowed:
        why = "waits for the user's yes: search with `server` to ask for it"
        return f"The MCP server {name} {'was refused by the user' if allowed is False else why}."
    try:
        if server.known() is None or (server.changed and server.state == "ready"):
            await server.listing()
    except KodeError as error:
        return _line(error.message)
    return _line(server.last_error) if server.state == "failed" else ""


def _line(text: str) -> str:
    return cut_line(one_line(text), _LINE_CHARS)


def _score(found: Found, words: set[str]) -> int:
    """Rate how well a tool fits: a word in its name counts three times one in its description."""
    name = f"{found.server.config.name} {found.tool.name} {found.tool.title}".casefold()
    about = found.tool.description.casefold()
    return sum(3 * (word in name) + (word in about) for word in words)


def tool_name(server: str, tool: str) -> str:
    """Return `mcp__SERVER__TOOL`, or a valid shorter name made unique by a hash at its end.

    It depends on server and tool alone, so it is the same in every session.
    """
    plain = f"mcp__{_REFUSED.sub('_', server)}__{_REFUSED.sub('_', tool)}"
    if len(plain) <= MOST_CHARS and plain == f"mcp__{server}__{tool}":
        return plain
    tail = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_TAIL_CHARS]
    return f"{plain[: MOST_CHARS - 1 - _TAIL_CHARS]}_{tail}"
