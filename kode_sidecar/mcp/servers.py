"""All servers of this process: found by name, searched, ended together."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kode_sidecar.errors import KodeError
from kode_sidecar.mcp.contracts import Host, McpTool, ServerConfig
from kode_sidecar.mcp.names import tool_name
from kode_sidecar.mcp.remembered import RememberedLists
from kode_sidecar.mcp.server import Server, ServerReport

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Found:
    """A tool, the server that has it, and the name under which a model may call it directly."""

    server: Server
    tool: McpTool
    name: str


class Servers:
    """The configured servers. Making it starts nothing; `environment` is what programs get."""

    def __init__(
        self,
        configs: Iterable[ServerConfig],
        host: Host,
        remembered: RememberedLists,
        *,
        environment: Mapping[str, str],
        now: Callable[[], float],
        find: Callable[[str], str] = str,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._servers: dict[str, Server] = {}
        self._frozen: dict[str, tuple[Found, ...]] = {}
        for config in configs:
            if config.name not in self._servers:  # the first that was named wins: the user's own
                self._servers[config.name] = Server(
                    config,
                    host,
                    remembered,
                    environment=environment,
                    now=now,
                    find=find,
                    changed=changed,
                )

    @property
    def names(self) -> Sequence[str]:
        """The names of all servers, in the order of the settings."""
        return tuple(self._servers)

    def get(self, name: str) -> Server:
        """Raises KodeError `NotFound`."""
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            text = f"There is no MCP server {name!r}. Configured: {known}."
            raise KodeError("NotFound", text)
        return server

    def direct_tools(self, session_id: str) -> tuple[Found, ...]:
        """What a session is offered one by one: frozen when it is first asked for.

        So the beginning of its requests stays the same, and hosts find it in their caches.
        """
        if session_id not in self._frozen:
            self._frozen[session_id] = tuple(
                Found(server, tool, tool_name(server.config.name, tool.name))
                for server in self._servers.values()
                if server.config.direct and (known := server.known())
                for tool in known.tools
            )
        return self._frozen[session_id]

    def forget(self, session_id: str) -> None:
        """A session is gone."""
        self._frozen.pop(session_id, None)

    async def search(self, query: str, server: str | None, most: int) -> list[Found]:
        """The tools that fit `query` best; all of the servers when it is empty.

        Servers whose lists nobody remembers are started, side by side; one that fails is left out
        unless it was named. Raises KodeError `NotFound`, `ToolFailed`.
        """
        if server is not None:
            chosen = [self.get(server)]
            await chosen[0].listing()
        else:
            chosen = list(self._servers.values())
            unknown = [one.listing() for one in chosen if one.known() is None]
            await asyncio.gather(*unknown, return_exceptions=True)
        found = [
            Found(one, tool, tool_name(one.config.name, tool.name))
            for one in chosen
            if (known := one.known())
            for tool in known.tools
        ]
        words = {word.casefold() for word in _WORD.findall(query)}
        scored = [(_score(one, words), -at, one) for at, one in enumerate(found)]
        fitting = [entry for entry in scored if entry[0] > 0 or not words]
        fitting.sort(key=lambda entry: entry[:2], reverse=True)
        return [one for _, _, one in fitting[:most]]

    def reports(self) -> list[ServerReport]:
        """How each of them is."""
        return [server.report() for server in self._servers.values()]

    def kill(self) -> None:
        """End all programs at once; from any thread."""
        for server in self._servers.values():
            server.kill()

    async def close(self) -> None:
        """End all servers in order, side by side."""
        closing = (server.close() for server in self._servers.values())
        await asyncio.gather(*closing, return_exceptions=True)


def _score(found: Found, words: set[str]) -> int:
    """How well a tool fits: words in its name count more than those that describe it."""
    name = f"{found.server.config.name} {found.tool.name} {found.tool.title}".casefold()
    about = found.tool.description.casefold()
    return sum(3 * (word in name) + (word in about) for word in words)
