"""The ACP porch of this process with a recorded model behind it, over a real pipe."""

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.protocol.acp_handshake import initialize_result
from kode_sidecar.core.protocol.base_protocol import LineDecoder, result_body
from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.servers.acp import ACP
from kode_sidecar.servers.boot.acp_app import AcpApp
from kode_sidecar.servers.boot.agent import Agent
from kode_sidecar.servers.boot.system import System
from kode_sidecar.servers.lsp.connection import Connection
from kode_sidecar.servers.lsp.loader import load
from kode_sidecar.servers.lsp.outbox import Outbox
from kode_sidecar.servers.lsp.requests import IncomingRequests
from kode_sidecar.servers.lsp.standard_lane import StandardLane
from tests.support.acp_client import AcpClient, Json


@dataclass
class AcpWorld:
    """The client, its project and the model that answers."""

    client: AcpClient
    project: Path
    model: ModelServer
    agent_info: Json
    logged: list[str]

    def asked(self, index: int = -1) -> Json:
        """The body of a request that the model got."""
        return self.model.chats[index].body


class _Porch:
    """What `server.process` puts together for the same app, without the end of the process."""

    def __init__(self, logged: list[str]) -> None:
        self.read_fd, self._write_fd = os.pipe()
        self._bodies: deque[bytes] = deque()
        self.logged = logged
        self._decoder = LineDecoder()
        outbox = Outbox(self._write_fd, on_fatal=logged.append, dialect=ACP)
        self._outbox = outbox

        def log(line: str, error: BaseException | None) -> None:
            logged.append(f"{line}: {error!r}")

        requests = IncomingRequests(outbox.put, log)
        lane = StandardLane(requests.refuse, lambda: None)
        self._connection = Connection(
            outbox, requests, lane, log=log, on_exit=lambda: None, dialect=ACP
        )
        self._app: Any = None

    async def put(self, data: bytes) -> None:
        for body in self._decoder.feed(data):
            if self._app is None:
                self._begin(body)
                continue
            self._bodies.append(body)
            self._connection.pump()

    def _begin(self, body: bytes) -> None:
        """As `boot.stdio_handshake` does it."""
        message = json.loads(body)
        result = initialize_result(message["params"], "0")
        self._outbox.start()
        app = AcpApp(
            self._connection, message["params"], lambda: Agent, System(), None, trusted=False
        )
        self._app = app.start()
        self._connection.read_from(lambda: self._bodies.popleft() if self._bodies else None)
        self._loading = asyncio.create_task(load(self._app.load, self._failed))
        self._outbox.put(result_body(message["id"], result))

    def _failed(self, name: str, error: Exception) -> None:
        self.logged.append(f"{name} failed: {error!r}")

    async def close(self) -> None:
        await self._connection.close(0)
        if self._app is not None:
            await self._app.close()
        await asyncio.to_thread(self._outbox.flush, 5.0)
        os.close(self._write_fd)


@asynccontextmanager
async def acp_world(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    responses: Sequence[RecordedResponse] = (),
    *,
    capabilities: Json | None = None,
    model: ModelServer | None = None,
    files: dict[str, str] | None = None,
    client_name: str = "test",
    trusted: bool = False,
) -> AsyncIterator[AcpWorld]:
    """A client that has said `initialize`, and a project with `files`."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (project / name).write_bytes(text.encode())
    logged: list[str] = []
    async with model or ModelServer(Recording(tuple(responses)), paced=False) as server:
        monkeypatch.setenv("KODE_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("KIMI_BASE_URL", server.base_url)
        if "KIMI_API_KEY" not in os.environ:
            monkeypatch.setenv("KIMI_API_KEY", "sk-test-key-000")
        porch = _Porch(logged)
        reader = asyncio.StreamReader(limit=2**26)
        pipe = os.fdopen(porch.read_fd, "rb")
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        client = AcpClient(reader, porch.put)
        try:
            params: Json = {"protocolVersion": 1, "clientCapabilities": capabilities or {}}
            params |= {"_meta": {"kode": {"trusted": True}}} if trusted else {}
            info = {"name": client_name, "version": "1"}
            result = await client.request("initialize", {**params, "clientInfo": info})
            yield AcpWorld(client, project, server, result, logged)
        finally:
            await porch.close()
            await client.close()
            transport.close()
    assert not [line for line in logged if "failed" in line], logged
