"""A client of ACP for tests: it holds every message, both ways, against the published schema."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.acp_schema import check, check_error
from tests.support.acp_terminals import Terminals

Json = dict[str, Any]
HANG_SECONDS = 60.0

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
SESSION = {"session": {"notices": {}, "compaction": {}}}


class AcpError(Exception):
    """An error answer."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code, self.error = error["code"], error


@dataclass
class Buffers:
    """What a client serves as `fs/*`: buffers first, the disk second, as Zed does.

    With `reads_disk` it answers reads from the disk and overwrites buffers all the same, as
    CodeCompanion for Neovim does.
    """

    texts: dict[str, str] = field(default_factory=dict[str, str])
    reads_disk: bool = False
    written: list[str] = field(default_factory=list[str])
    before_write: Callable[[str], None] | None = None

    def read(self, path: str) -> str:
        if path in self.texts and not self.reads_disk:
            return self.texts[path]
        return Path(path).read_bytes().decode().replace("\r\n", "\n")

    def write(self, path: str, content: str) -> None:
        if self.before_write is not None:
            self.before_write(path)
        self.written.append(path)
        if path in self.texts or not Path(path).exists():
            self.texts[path] = content
        if self.reads_disk or path not in self.texts:
            Path(path).write_text(content, newline="")


class AcpClient:
    """`updates` are all of `session/update`, `asked` all that the agent asked.

    `told` are its other notifications.

    `answer_permission` gives an option's kind, None for cancelled; a coroutine may wait.
    """

    def __init__(
        self, reader: asyncio.StreamReader, write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._reader, self._write = reader, write
        self._waiting: dict[Any, asyncio.Future[Json]] = {}
        self._methods: dict[Any, str] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.raw: list[bytes] = []
        self.updates: list[Json] = []
        self.asked: list[tuple[str, Json]] = []
        self.reported: list[tuple[str, Json]] = []
        self.files = Buffers()
        self.terminals = Terminals()
        self.answer_permission: Callable[[Json], Any] = lambda _: "allow_once"
        self.answer_form: Callable[[Json], Json] = lambda _: {"action": "cancel"}
        self.failure: BaseException | None = None
        self._reading = asyncio.create_task(self._read())

    async def initialize(self, **capabilities: Any) -> Json:
        info = {"name": "test", "version": "1"}
        params: Json = {"protocolVersion": 1, "clientInfo": info}
        return await self.request("initialize", {**params, "clientCapabilities": capabilities})

    async def request(self, method: str, params: Json, *, request_id: Any = None) -> Json:
        """Ask and return the result. Raises AcpError."""
        return await self.wait_for(await self.send(method, params, request_id))

    async def send(self, method: str, params: Json, request_id: Any = None) -> Any:
        """Send a request; its id."""
        check(method, "params", params)
        self._count += 1
        number = self._count if request_id is None else request_id
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._methods[number] = method
        await self._put({"id": number, "method": method, "params": params})
        return number

    async def wait_for(self, number: Any) -> Json:
        async with asyncio.timeout(HANG_SECONDS):
            answer = await self._waiting[number]
        if "error" in answer:
            check_error(answer["error"])
            raise AcpError(answer["error"])
        check(self._methods[number], "result", answer["result"])
        return answer["result"]

    async def notify(self, method: str, params: Json) -> None:
        check(method, "params", params)
        await self._put({"method": method, "params": params})

    async def new(self, folder: Path, **more: Any) -> str:
        """A new session; its id."""
        params = {"cwd": str(folder), "mcpServers": [], **more}
        return (await self.request("session/new", params))["sessionId"]

    async def prompt(self, session_id: str, text: str, **more: Any) -> Json:
        """Send a text and wait for the end of the turn."""
        return await self.request("session/prompt", prompt_params(session_id, text, **more))

    async def until(self, ready: Callable[[], Any]) -> Any:
        """Wait until what was said makes `ready()` true."""
        async with asyncio.timeout(HANG_SECONDS):
            while not (found := ready()):
                self._changed.clear()
                await self._changed.wait()
        return found

    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.updates]

    def of_kind(self, kind: str) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of a kind."""
        return "".join(update["content"].get("text", "") for update in self.of_kind(kind))

    def permissions(self) -> list[Json]:
        return [params for method, params in self.asked if method == "session/request_permission"]

    async def close(self) -> None:
        for task in (self._reading, *self._tasks):
            task.cancel()
        await asyncio.gather(self._reading, *self._tasks, return_exceptions=True)
        if self.failure is not None:
            raise self.failure

    async def _put(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        await self._write(body + b"\n")

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                self.raw.append(line)
                self._receive(json.loads(line))
                self._changed.set()
        except Exception as error:
            self.failure = error
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(error)

    def _receive(self, message: Json) -> None:
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method is None:
            waiting = self._waiting.get(message["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            return
        check(method, "params", message["params"])
        if method == "session/update":
            self.updates.append(message["params"]["update"])
        elif "id" in message:
            self.asked.append((method, message["params"]))
            task = asyncio.create_task(self._answer(message))
            self._tasks.add(task)
        else:
            self.reported.append((method, message["params"]))

    async def _answer(self, message: Json) -> None:
        method, params = message["method"], message["params"]
        try:
            result = await self._result(method, params)
            check(method, "result", result)
        except OSError as error:
            answer: Json = {"error": {"code": -32002, "message": str(error)}}
        else:
            answer = {"result": result}
        await self._put({"id": message["id"], **answer})

    async def _result(self, method: str, params: Json) -> Json:
        match method:
            case "fs/read_text_file":
                return {"content": self.files.read(params["path"])}
            case "fs/write_text_file":
                self.files.write(params["path"], params["content"])
                return {}
            case "session/request_permission":
                kind = self.answer_permission(params)
                if asyncio.iscoroutine(kind):
                    kind = await kind
                ids = [one["optionId"] for one in params["options"] if one["kind"] == kind]
                if not ids:
                    return {"outcome": {"outcome": "cancelled"}}
                return {"outcome": {"outcome": "selected", "optionId": ids[0]}}
            case _ if method.startswith("terminal/"):
                return await self.terminals.answer(method.partition("/")[2], params)
            case _:
                return self.answer_form(params)


def prompt_params(session_id: str, text: str, **more: Any) -> Json:
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text}], **more}
