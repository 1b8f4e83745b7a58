"""What a session offers to its prompts: verbs, and commands and resources of MCP servers.

The server expands `/server:prompt words`; a resource `@server:uri` is read and attached.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from kode_sidecar.core.domain.message import PromptBlock, TextBlock
from kode_sidecar.core.protocol.mcp import McpBlocks, McpListResult, McpPromptParams, McpReadParams
from kode_sidecar.core.protocol.process import VerbView
from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.core.text.uris import named_resources
from kode_sidecar.servers.acp.commands import Command, available_commands
from kode_sidecar.servers.acp.tool_cards import Json

_NOT_IN_WORDS = re.compile(r"[^\w.-]+")


class ServerOffers:
    """Lists what is known of the offers; a server starts only when something is asked of it.

    `listed` returns the servers, None if there are none; `notify` sends an update to the client;
    `verbs` returns what a prompt `/name` calls.
    """

    def __init__(
        self,
        listed: Callable[[], McpListResult | None],
        fill: Callable[[McpPromptParams], Awaitable[McpBlocks]],
        read: Callable[[McpReadParams], Awaitable[McpBlocks]],
        notify: Callable[[Json], None],
        verbs: Callable[[], Sequence[VerbView]],
    ) -> None:
        self._listed = listed
        self._fill = fill
        self._read = read
        self._notify = notify
        self._verbs = verbs
        self._reported: Json | None = None

    def announce(self, *, again: bool = False) -> None:
        """Send the commands to the client, if they have changed or `again` is set."""
        verbs = [
            Command(one.name, f"{one.title}: {one.description}", one.arguments or "")
            for one in self._verbs()
        ]
        commands = available_commands((*verbs, *_prompts(self._listed())))
        if again or commands != self._reported:
            self._reported = commands
            self._notify(commands)

    async def expanded(self, blocks: tuple[PromptBlock, ...]) -> tuple[PromptBlock, ...]:
        """Return a prompt with the prompts and resources it names. Raises KodeError on failure."""
        texts = [_text(block) for block in blocks]
        named = any("@" in text or text.lstrip().startswith("/") for text in texts)
        listed = self._listed() if named else None
        names = {_alias(one.name): one.name for one in listed.servers} if listed else {}
        if not names:
            return blocks
        found: list[PromptBlock] = []
        for block in blocks:
            filled = _prompt_params(block.text, names) if isinstance(block, TextBlock) else None
            found += (await self._fill(filled)).input if filled else (block,)
        for text in texts:
            for name, uri in named_resources(text, names):
                found += (await self._read(McpReadParams(name=names[name], uri=uri))).input
        return tuple(found)


def _alias(server: str) -> str:
    """Return a server's name as one word of a command: no space, no colon."""
    return _NOT_IN_WORDS.sub("-", server)


def _prompt_params(text: str, servers: Mapping[str, str]) -> McpPromptParams | None:
    head, _, words = text.strip().partition(" ")
    server, colon, prompt = head.removeprefix("/").partition(":")
    if not head.startswith("/") or not colon or server not in servers:
        return None
    return McpPromptParams(name=servers[server], prompt=prompt, words=words.strip())


def _text(block: PromptBlock) -> str:
    return block.text if isinstance(block, TextBlock) else ""


def _prompts(listed: McpListResult | None) -> Iterator[Command]:
    for server in listed.servers if listed else ():
        for prompt in server.prompts if server.state not in ("unapproved", "refused") else ():
            hint = one_line(" ".join(one.name for one in prompt.arguments))
            name = one_line(f"{_alias(server.name)}:{prompt.name}")
            yield Command(name, one_line(prompt.description) or name, hint)
