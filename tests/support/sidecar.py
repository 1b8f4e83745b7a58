"""The real process with a recorded model behind it and an editor in front."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.sidecar_process import SidecarProcess
from tests.support.kept_messages import read_messages
from tests.support.mannered_editor import ManneredEditor
from tests.support.normal_form import notifications
from tests.support.processes import serving
from tests.support.program import BUILT, PROGRAM, ROOT, SERVE
from tests.support.session_fold import CheckedWatch, FoldedChangeSet, FoldedTurn, SessionFold
from tests.support.warm_parent import fork

READ_BYTES = 64 * 1024
HANG_SECONDS = 60.0
"""Nothing takes this long; a test that waits for it has found a hang."""


@dataclass
class World:
    """Everything around one running sidecar."""

    client: Client
    editor: ManneredEditor
    watch: CheckedWatch
    model: ModelServer
    home: Path
    seqs: dict[str, int] = field(default_factory=dict[str, int])

    async def session(self, **params: Any) -> SessionFold:
        """A new session, folded as it streams."""
        result = await self.client.request("kode/session/new", params, HANG_SECONDS)
        return self.watch.session(result["sessionId"], result["seq"])

    async def start(self, session: SessionFold, prompt: str, **params: Any) -> str:
        """Start a turn; its id."""
        content = [{"type": "text", "text": prompt}] if prompt else []
        result = await self.client.request(
            "kode/turn/start",
            {"sessionId": session.session_id, "input": content, **params},
            HANG_SECONDS,
        )
        return result["turnId"]

    async def turn(self, session: SessionFold, prompt: str, **params: Any) -> FoldedTurn:
        """Run a turn to its end."""
        turn_id = await self.start(session, prompt, **params)
        return await self.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)

    async def decide(self, change_set: FoldedChangeSet, **params: Any) -> dict[str, Any]:
        """`kode/changeSet/decide`; by default everything is accepted."""
        wanted = params or {"rest": "accept", "seenSeq": 1_000_000}
        return await self.client.request(
            "kode/changeSet/decide", {"changeSetId": change_set.id, **wanted}, HANG_SECONDS
        )

    @property
    def pid(self) -> int:
        """The process that serves."""
        return serving(self.client.process.pid)

    async def kill(self) -> None:
        """The process dies as it stands."""
        os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        await self.client.process.wait(HANG_SECONDS)

    def folder(self, session: SessionFold) -> Path:
        """Where the session's records are."""
        return self.home / "conversations" / session.session_id

    def messages(self, session: SessionFold) -> list[dict[str, Any]]:
        """The records of its messages."""
        return read_messages(self.folder(session))

    def journal(self, session: SessionFold) -> list[dict[str, Any]]:
        """The records of `journal.jsonl`."""
        events = read_jsonl(self.folder(session) / "journal.jsonl")
        return [{k: v for k, v in event.items() if k != "crc"} for event in events]

    def events(self) -> list[dict[str, Any]]:
        """All that `kode/event` told, in order."""
        reported = [p["events"] for m, p in notifications(self.client.frames) if m == "kode/event"]
        return [event for events in reported for event in events]

    def asked(self, index: int = -1) -> dict[str, Any]:
        """The body of a request the model got."""
        return self.model.chats[index].body


def only_change_set(session: SessionFold) -> FoldedChangeSet:
    """The one change set there is."""
    (change_set,) = session.change_sets.values()
    return change_set


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


async def start(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Client:
    """Start the program: forked from a warm parent where it is the source on Linux.

    It is truly spawned where the run is a full one, where something stands before the program in
    the command, and where the environment asks something of Python itself.
    """
    arguments = list(command[len(PROGRAM) :])
    new = env.keys() - os.environ.keys() - {"PYTHONPATH"}
    asks_python = any(name.startswith(("PYTHON", "LD_")) for name in new)
    plain = list(command[: len(PROGRAM)]) == PROGRAM and env["PYTHONPATH"] == str(ROOT)
    if (
        not sys.platform.startswith("linux")
        or BUILT
        or os.environ.get("KODE_TEST_FULL") == "1"
        or asks_python
        or not plain
    ):
        return await Client.spawn(command, env=env, cwd=cwd)
    forked: Any = await fork(arguments, env, str(cwd), READ_BYTES)
    return Client(SidecarProcess(forked))


@asynccontextmanager
async def sidecar(
    responses: Sequence[RecordedResponse] = (),
    *,
    roots: Sequence[Path] = (),
    environment: Mapping[str, str | None] | None = None,
    handshake: Mapping[str, Any] | None = None,
    recording: Recording | None = None,
    model: ModelServer | None = None,
    initialize: bool = True,
    command: Sequence[str] = SERVE,
    cwd: Path | None = None,
) -> AsyncIterator[World]:
    """Spawn it. `environment` adds variables, None removes one; KODE_HOME is the test's own.

    `cwd` is the user's home unless it is given.

    The model plays `responses` or `recording`, or it is a `model` of the test's making.
    """
    server = model or ModelServer(recording or Recording(tuple(responses)), paced=False)
    async with server as model:
        env = {**os.environ, "KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test-key-000"}
        env["PYTHONPATH"] = str(ROOT)
        for name, value in (environment or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        async with await start(command, env, cwd or Path.home()) as client:
            editor = ManneredEditor(client)
            watch = CheckedWatch(client, SessionFold)
            if initialize:
                options = {"roots": roots, **(handshake or {})}
                async with asyncio.timeout(HANG_SECONDS):
                    await editor.client.initialize(Handshake(**options))
            yield World(client, editor, watch, model, Path(env["KODE_HOME"]))
