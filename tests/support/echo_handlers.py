"""The handlers of the echo app."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Any

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol import documents
from kode_sidecar.core.protocol.handshake import Handover
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp import Application, Connection, Features, HandlerReply, LoadStep, run


class EchoApp:
    """Registers `test/*`, and document sync that only remembers."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.seen: list[Any] = []
        self.broken: list[str | None] = []
        self.children: list[subprocess.Popen[bytes]] = []
        connection.on_broken_sync = self.broken.append
        for method, params_type, handler in self.requests():
            connection.on_request(method, params_type, handler)
        for method in ("didOpen", "didChange", "didSave", "didClose"):
            self.sync(f"textDocument/{method}")
        connection.on_notification("test/mark", dict[str, Any], lambda params: self.mark(params))

    def requests(self) -> list[tuple[str, Any, Any]]:
        anything = dict[str, Any]
        return [
            ("test/echo", anything, lambda params: params),
            ("test/typed", TurnStartParams, lambda params: {"sessionId": params.session_id}),
            ("test/later", anything, self.later),
            ("test/forever", anything, self.forever),
            ("test/raise", anything, self.fail),
            ("test/raiseLater", anything, self.fail_later),
            ("test/refuse", anything, self.refuse),
            ("test/unencodable", anything, lambda params: object()),
            ("test/surrogate", anything, lambda params: {"text": "a\ud800b"}),
            ("test/block", anything, lambda params: time.sleep(params["seconds"])),
            ("test/reply", anything, self.reply),
            ("test/deltas", anything, self.deltas),
            ("test/marks", anything, self.marks),
            ("test/broken", anything, lambda params: self.broken),
            ("test/print", anything, self.print),
            ("test/child", anything, self.child),
            ("test/ask", anything, self.ask),
            ("test/memory", anything, lambda params: memory()),
            ("test/log", anything, lambda params: print(params["text"])),  # noqa: T201
            ("test/stderr", anything, lambda params: sys.stderr.write("x" * params["size"])),
        ]

    def sync(self, method: str) -> None:
        types = {
            "didOpen": documents.DidOpenParams,
            "didChange": documents.DidChangeParams,
            "didSave": documents.DidSaveParams,
            "didClose": documents.DidCloseParams,
        }

        def handle(params: Any) -> None:
            if params.text_document.uri.endswith("refused"):
                raise ValueError("cannot be applied")
            self.seen.append([method, params.text_document.uri])

        self.connection.on_notification(method, types[method.split("/")[1]], handle)

    def mark(self, params: Any) -> None:
        self.seen.append(params["n"])

    def marks(self, params: Any) -> Any:
        return self.seen

    async def later(self, params: Any) -> Any:
        self.seen.append(params.get("n"))
        for _ in range(params.get("steps", 3)):
            await asyncio.sleep(0)
        return params

    async def forever(self, params: Any) -> None:
        self.connection.notify("test/running", {})
        await asyncio.Event().wait()

    def fail(self, params: Any) -> None:
        raise ValueError("secret sk-12345 in /etc/passwd")

    async def fail_later(self, params: Any) -> None:
        await asyncio.sleep(0)
        raise ValueError("secret sk-12345 in /etc/passwd")

    def refuse(self, params: Any) -> None:
        raise KodeError("TurnActive", "a turn is running: cancel it first", details={"a": 1})

    async def refuse_later(self, params: Any) -> None:
        self.refuse(params)

    async def reply(self, params: Any) -> Any:
        await asyncio.sleep(0)
        return HandlerReply(
            {"created": "x1"}, after=lambda: self.connection.notify("test/uses", {})
        )

    async def deltas(self, params: Any) -> Any:
        at = [0] * params.get("blocks", 1)
        text = params.get("text", "x" * 40)
        for n in range(params["count"]):
            block = n % len(at)
            self.connection.notify_delta(BlockDelta(f"b{block}", at[block], text))
            at[block] += len(text)
            if n % 50 == 0:
                if not params.get("stubborn"):
                    await self.connection.flow()
                await asyncio.sleep(0)
        self.connection.notify("test/done", {"at": at})
        return {"at": at}

    def print(self, params: Any) -> None:
        print("stray print")  # noqa: T201
        os.write(1, b"stray write\n")
        subprocess.run([sys.executable, "-c", "print('child speaks'); input()"], check=False)

    def child(self, params: Any) -> int:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.children.append(child)
        return child.pid

    def kill_children(self) -> None:
        for child in self.children:
            child.kill()

    async def ask(self, params: Any) -> Any:
        async with asyncio.timeout(params.get("timeout")):
            return await self.connection.request("client/ask", {"q": 1}, dict[str, int])

    async def close(self) -> None:
        self.connection.notify("test/closing", {})

    async def command(self, arguments: Any) -> Any:
        return {"arguments": list(arguments), "thread": threading.current_thread().name}


def memory() -> int:
    """Resident bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def serve(handover: Handover) -> int:
    """Run the app on a handover; never returns."""
    return run(handover, build)


def build(connection: Connection, handover: Handover) -> Application:
    app = EchoApp(connection)
    failing = os.environ.get("ECHO_FAILS")

    def load() -> None:
        if failing == "load":
            raise ImportError("no module named nothing")

    if failing == "build":
        raise ValueError("no good")
    notify = connection.notify
    features = Features(
        workspace_folders_changed=lambda added, removed: notify(
            "test/folders", {"added": added, "removed": removed}
        ),
        configuration_changed=lambda settings: notify("test/configuration", settings),
        watched_files_changed=lambda changes: notify("test/files", changes),
        progress_cancelled=lambda token: notify("test/progress", token),
        commands={
            "kode.doctor": app.command,
            "test.raise": app.fail_later,
            "test.refuse": app.refuse_later,
            "test.forever": app.forever,
        },
    )
    return Application(
        features=features,
        load=(LoadStep("first", load, lambda _: notify("test/loaded", {})),),
        close=app.close,
        kill_children=app.kill_children,
    )
