"""`replay --serve`: a recording as the server of a plugin's own tests."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.terminal.client.connection import Client, RpcError
from kode_sidecar.terminal.client.handshake import Handshake
from tests.support.mannered_editor import ManneredEditor
from tests.support.program import PROGRAM
from tests.support.session_fold import CheckedWatch, SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.transcripts import Case, Stage


class Offline:
    """The client of this package in front of a recording."""

    def __init__(self, recording: Path, project: Path) -> None:
        self._recording = recording
        self._project = project

    async def __aenter__(self) -> World:
        command = [*PROGRAM, "replay", str(self._recording), "--serve"]
        client = await Client.spawn(command)
        model = ModelServer(Recording(()))  # nobody asks it
        watch = CheckedWatch(client, SessionFold)
        world = World(client, ManneredEditor(client), watch, model, self._project)
        await world.editor.client.initialize(Handshake(roots=[self._project]))
        return world

    async def __aexit__(self, *_: object) -> None:
        """The test closes it."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere 项目"
    folder.mkdir()
    return folder


# E6
@pytest.mark.parametrize("name", ["plain_answer", "tools", "edits_decide_undo", "fork"])
async def test_who_recorded_it_meets_it_again(name: str, project: Path) -> None:
    """Its own script, in another folder: ids and places are those of this run."""
    case = Case(name)
    script: Any = case.script()
    for path, content in script.FILES.items():
        place = project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode())
    async with Offline(case.folder, project) as world:
        await script.play(Stage(world, project, project))
        assert await world.client.close() == 0, world.client.process.stderr_tail
        assert world.client.process.stderr_tail == ""


async def test_a_greased_recording_is_met_again(project: Path, tmp_path: Path) -> None:
    """It is for clients alone: a server does not say these things."""
    script: Any = Case("plain_answer").script()
    tape = tmp_path / "greased.jsonl"
    command = [*PROGRAM, "serve", "--record", str(tape), "--grease"]
    async with sidecar(script.RESPONSES, roots=[project], command=command) as world:
        await script.play(Stage(world, project, project))
    async with Offline(tape, project) as world:
        await script.play(Stage(world, project, project))
        assert await world.client.close() == 0, world.client.process.stderr_tail
    replay = [*PROGRAM, "replay", str(tape)]
    done = await asyncio.to_thread(subprocess.run, replay, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"`replay --serve`" in done.stderr


async def test_a_request_it_does_not_go_on_with_is_refused(project: Path) -> None:
    async with Offline(Case("plain_answer").folder, project) as world:
        with pytest.raises(RpcError, match="kode/session/new comes next") as refused:
            await world.client.request("kode/session/list", {}, HANG_SECONDS)
        assert refused.value.code == -32600
        assert await world.client.close() == 1
        reported = world.client.process.stderr_tail
        assert "does not go on with kode/session/list" in reported
        assert "the client never said kode/session/new, and 2 more after it" in reported


async def test_other_params_are_told(project: Path) -> None:
    async with Offline(Case("plain_answer").folder, project) as world:
        session = await world.session(title="Another", model="kimi-k2.6")
        await world.turn(session, "你好 🙏")
        assert [m.role for m in session.messages.values()] == ["user", "assistant"]
        assert await world.client.close() == 0
        reported = world.client.process.stderr_tail
        assert "kode/session/new: $.title was 'Greeting', now 'Another'" in reported
