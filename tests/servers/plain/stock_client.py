"""A client that knows LSP and nothing of kode, with a real process behind it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import uri_to_path
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.sidecar import HANG_SECONDS, World, sidecar

CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]},
    },
    "window": {"showDocument": {"support": True}, "workDoneProgress": True},
}
BARE: dict[str, Any] = {}


@dataclass
class StockClient:
    """What the editor was shown, and what its user does."""

    world: World
    shows_documents: bool
    has_requests: bool = True
    answers: list[str] = field(default_factory=list[str])
    messages: list[str] = field(default_factory=list[str])
    questions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    diagnostics: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    progress: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    received: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        client = self.world.client
        client.subscribe(self._notified)
        client.handle("window/showDocument", self._show_document)
        client.handle("window/showMessageRequest", self._ask)

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something that the editor was told makes it true; its value."""
        try:
            async with asyncio.timeout(HANG_SECONDS):
                while not (found := condition()):
                    await self.received.wait()
                    self.received.clear()
        except TimeoutError:
            shown = [one.text for one in self.world.editor.buffers]
            frames = [one.body.decode() for one in self.world.client.frames]
            raise AssertionError((self.messages, self.diagnostics, shown, frames[-6:])) from None
        return found

    async def actions(self, uri: str, first: int = 0, last: int = 0, **context: Any) -> list[Any]:
        """The code actions on these lines."""
        whole = {"start": _at(first), "end": _at(last, 0 if first == last else 1)}
        params: dict[str, Any] = {
            "textDocument": {"uri": uri},
            "range": whole,
            "context": {"diagnostics": [], **context},
        }
        return await self.world.client.request("textDocument/codeAction", params, HANG_SECONDS)

    async def choose(self, actions: Sequence[Any], title: str) -> None:
        """Run the code action whose title has these words."""
        (found, *_) = [one for one in actions if title in one["title"]]
        await self.run(found["command"]["command"], *found["command"]["arguments"])

    async def run(self, command: str, *arguments: Any) -> Any:
        """Run a command."""
        params = {"command": command, "arguments": list(arguments)}
        return await self.world.client.request("workspace/executeCommand", params, HANG_SECONDS)

    def said(self, words: str) -> bool:
        """Whether a message has these words."""
        return any(words in one for one in self.messages)

    def chat(self) -> Buffer:
        """The chat document."""
        return next(one for one in self.world.editor.buffers if one.uri.endswith(".md"))

    def chat_has(self, words: str) -> bool:
        """Whether the chat document is open and has these words."""
        shown = [one.text for one in self.world.editor.buffers if one.uri.endswith(".md")]
        return any(words in text for text in shown)

    def hunks(self, uri: str) -> list[Any]:
        """The diagnostics of ours in a file."""
        return self.diagnostics.get(uri, [])

    def _notified(self, method: str, params: Any) -> None:
        assert not method.startswith("kode/"), "a stock client knows no such method"
        if method == "window/showMessage":
            self.messages.append(params["message"])
        elif method == "textDocument/publishDiagnostics":
            self.diagnostics[params["uri"]] = params["diagnostics"]
        elif method == "$/progress":
            self.progress.append(params)
        self.received.set()

    async def _show_document(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.shows_documents:
            raise RpcError(-32601, "unknown")
        path = uri_to_path(params["uri"])
        assert path is not None
        known = [one.uri for one in self.world.editor.buffers]
        if params["uri"] not in known:
            self.world.editor.open(path, language_id="markdown")
        self.received.set()
        return {"success": True}

    async def _ask(self, params: dict[str, Any]) -> dict[str, Any] | None:
        if not self.has_requests:
            raise RpcError(-32601, "unknown")
        self.questions.append(params)
        self.received.set()
        return {"title": self.answers.pop(0)} if self.answers else None


@asynccontextmanager
async def stock_client(
    responses: Sequence[Any] = (),
    *,
    roots: Sequence[Path] = (),
    capabilities: dict[str, Any] = CAPABILITIES,
    has_requests: bool = True,
    locale: str = "en",
    **options: Any,
) -> AsyncGenerator[StockClient]:
    """Spawn the process, and connect without a word of kode."""
    environment = {"KODE_LOCALE": locale, **options.pop("environment", {})}
    async with sidecar(responses, initialize=False, environment=environment, **options) as world:
        folders = [{"uri": root.as_uri(), "name": root.name} for root in roots]
        client = world.client
        client.initialize_result = await client.request(
            "initialize",
            {"processId": None, "capabilities": capabilities, "workspaceFolders": folders},
            HANG_SECONDS,
        )
        client.notify("initialized", {})
        shown = bool(capabilities.get("window", {}).get("showDocument"))
        stock = StockClient(world, shows_documents=shown, has_requests=has_requests)

        async def applied(params: dict[str, Any]) -> dict[str, Any]:
            answer = await world.editor.apply_edit(params)
            asyncio.get_running_loop().call_soon(stock.received.set)
            return answer

        client.handle("workspace/applyEdit", applied)
        yield stock


def _at(line: int, character: int = 0) -> dict[str, int]:
    return {"line": line, "character": character}
