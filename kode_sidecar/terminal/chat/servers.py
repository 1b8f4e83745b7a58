"""MCP servers at the prompt: `/mcp`, their prompts as commands, their resources after an `@`."""

from dataclasses import dataclass, field

from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.core.text.uris import named_resources
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.connection import Client, RpcError
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal

_DECISIONS = {"allow": True, "refuse": False}


@dataclass
class ChatServers:
    """`listed` are the servers as last listed, which starts none.

    Methods that ask the sidecar raise RpcError and ConnectionLost.
    """

    client: Client
    terminal: Terminal
    words: Words
    listed: list[Json] = field(default_factory=list[Json])
    _stale: bool = False

    async def begin(self, doctor: Json) -> None:
        """List the servers, if the doctor knows of any."""
        if any(check["name"] == "mcp" for check in doctor["checks"]):
            await self._list()
            self.client.subscribe(self._changed)

    async def obey(self, argument: str) -> None:
        """Carry out `/mcp`, or `/mcp start|allow|refuse NAME`."""
        problems = await self._list()
        word, _, name = argument.partition(" ")
        server = next((one for one in self.listed if one["name"] == name.strip()), None)
        if server is not None and word == "start":
            self._show(await self.client.request("kode/mcp/start", {"name": server["name"]}))
            await self._list()
        elif server is not None and word in _DECISIONS:
            decided = {"fingerprint": server["fingerprint"], "allowed": _DECISIONS[word]}
            await self.client.request("kode/mcp/decide", {"name": server["name"], **decided})
            await self._list()
            self._show(next(one for one in self.listed if one["name"] == server["name"]))
        elif argument:
            self.terminal.line(self.words.mcp_how, "yellow")
        else:
            for one in self.listed:
                self._show(one)
            for problem in problems:
                self.terminal.line(f"⚠ {one_line(problem)}", "red")
            self.terminal.line(self.words.mcp_how if self.listed else self.words.mcp_none, "dim")

    def commands(self) -> dict[str, str]:
        """Return the prompts of the servers as typed, with their descriptions."""
        return {
            one_line(f"/{server['name']}:{prompt['name']}"): one_line(
                " ".join(
                    [
                        *(f"[{one['name']}]" for one in prompt.get("arguments", ())),
                        prompt.get("description", ""),
                    ]
                )
            )
            for server in self.listed
            for prompt in server.get("prompts", ())
            if " " not in prompt["name"]
        }

    def resources(self) -> list[str]:
        """Return the resources of the servers as typed after an `@`.

        For a template this is the part before its first placeholder.
        """
        named = [
            (server["name"], uri)
            for server in self.listed
            for uri in (
                *(one["uri"] for one in server.get("resources", ())),
                *(one["uriTemplate"].partition("{")[0] for one in server.get("templates", ())),
            )
        ]
        return [one_line(f"{name}:{uri}") for name, uri in dict.fromkeys(named)]

    def named(self, command: str) -> bool:
        """Return whether a word names a prompt of a known server."""
        server, colon, _ = command.removeprefix("/").partition(":")
        return bool(colon) and command.startswith("/") and server in self._names()

    async def filled(self, command: str, words: str) -> list[Json]:
        """Return a server's prompt as blocks, filled in by the server, and show it."""
        server, _, prompt = command.removeprefix("/").partition(":")
        params = {"name": server, "prompt": prompt, "words": words}
        blocks: list[Json] = (await self.client.request("kode/mcp/prompt", params))["input"]
        for block in blocks:
            for line in block.get("text", "").splitlines():
                self.terminal.line(f"│ {one_line(line)}", "dim")
        return blocks

    async def attached(self, text: str) -> list[Json]:
        """Return the resources that a prompt names, as blocks; show those that cannot be read."""
        blocks: list[Json] = []
        for name, uri in named_resources(text, self._names()):
            try:
                read = await self.client.request("kode/mcp/read", {"name": name, "uri": uri})
                blocks += read["input"]
            except RpcError as error:
                self.terminal.line(f"⚠ {one_line(error.message)}", "yellow")
        return blocks

    async def refresh(self) -> None:
        """List the servers again if one has changed."""
        if self._stale:
            await self._list()

    def _names(self) -> set[str]:
        return {server["name"] for server in self.listed}

    async def _list(self) -> list[str]:
        self._stale = False
        reported = await self.client.request("kode/mcp/list", {})
        self.listed[:] = reported["servers"]
        return reported["problems"]

    def _changed(self, method: str, _params: object) -> None:
        self._stale = self._stale or method == "kode/mcp/changed"

    def _show(self, server: Json) -> None:
        where = server.get("url") or " ".join(server.get("command", ()))
        state = self.words.mcp_states[server["state"]]
        self.terminal.line(one_line(f"{server['name']} · {state} · {where}"))
        tools = ", ".join(tool["name"] for tool in server["tools"])
        for text in (tools, server.get("lastError", "")):
            if text:
                self.terminal.line(f"    {one_line(text)[:200]}", "dim")
