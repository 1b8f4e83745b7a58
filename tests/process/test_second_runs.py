"""A recording has what it needs of the state folder, and plays where nothing of that is."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.recording.recorded_lines import StateFile
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.devtools.recording.replay import play
from kode_sidecar.devtools.recording.state_files import StateCopies
from kode_sidecar.terminal.client.handshake import Handshake
from tests.process.test_read_along import caught_up, seen
from tests.process.test_sessions import ask, refused
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import PROGRAM
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.transcripts import PATIENCE

EDIT = {"path": "app.py", "edits": [{"old": "ho", "new": "hey"}]}

any_storage = pytest.mark.usefixtures("a_storage")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\r\nprint('ho')\r\n")
    return folder


@asynccontextmanager
async def recorded(tape: Path, responses: Any = (), **options: Any) -> AsyncIterator[World]:
    command = [*PROGRAM, "serve", "--record", str(tape)]
    async with sidecar(responses, command=command, **options) as world:
        yield world


async def plays(tape: Path) -> None:
    difference = (await play(tape, read_recording(tape), PROGRAM, PATIENCE)).difference
    assert difference is None, f"\n{difference}"


def kept(tape: Path) -> list[str]:
    """The files of the state folder in a recording."""
    return [line.path for line in read_recording(tape).lines if isinstance(line, StateFile)]


async def test_retired_models_are_known_again(project: Path, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with recorded(tape, [answer(text("one"))], initialize=False) as world:
        host = world.model.base_url.removeprefix("http://").removesuffix("/v1")
        retired = ["kimi-k2.7-code", "kimi-k3", "kimi-k3.1-pro"]  # what a host says at first
        world.home.mkdir(parents=True, exist_ok=True)
        (world.home / "models.json").write_text(json.dumps({host: retired}))
        await world.editor.client.initialize(Handshake(roots=[project]))
        await world.turn(await world.session(), "go")
        assert [chat.status for chat in world.model.chats] == [200]
    assert kept(tape) == ["models.json"]
    await plays(tape)


@any_storage
async def test_sessions_that_were_listed_and_opened_are_there(
    project: Path, tmp_path: Path
) -> None:
    tape = tmp_path / "tape.jsonl"
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("done")), answer(text("x"))]
    async with sidecar(responses, roots=[project]) as world:
        first, second = await world.session(title="Tea"), await world.session(title="Milk")
        await world.turn(first, "edit")
        await world.turn(second, "remember sugar")
    async with sidecar(roots=[tmp_path / "elsewhere"]) as world:
        private = await world.session(title="Private")
    async with recorded(tape, [answer(text("on")), answer(text("in"))], roots=[project]) as world:
        world.editor.open(project / "app.py")
        listed = await ask(world, "session/list")
        assert [one["title"] for one in listed["sessions"]] == ["Milk", "Tea"]
        found = await ask(world, "session/list", query="sugar")
        assert [one["title"] for one in found["sessions"]] == ["Milk"]
        await ask(world, "tree/get", sessionId=second.session_id)
        fold = await world.watch.attach(first.session_id)
        await world.decide(only_change_set(fold), rest="accept", seenSeq=fold.seq)
        await world.turn(fold, "go on")
        fork = (await ask(world, "session/fork", sessionId=second.session_id))["sessionId"]
        await world.turn(await world.watch.attach(fork), "fork")
        await ask(world, "session/delete", sessionId=second.session_id)
        listed = await ask(world, "session/list")
        assert [one["title"] for one in listed["sessions"]] == ["Milk (2)", "Tea"]
        await ask(world, "message/list", sessionId=first.session_id)
        await ask(world, "usage/get", sessionId=first.session_id)
    await plays(tape)
    assert not any(private.session_id in path for path in kept(tape))
    assert "Private" not in tape.read_text(encoding="utf-8")


async def test_what_another_process_wrote_meanwhile_is_told_again(
    project: Path, tmp_path: Path
) -> None:
    tape = tmp_path / "tape.jsonl"
    responses = [
        answer(text("one ")),
        answer(text("and "), hold("gate"), text("two"), tool_call("propose_edit", EDIT)),
        answer(text("three")),
    ]
    async with (
        sidecar(responses, roots=[project]) as writer,
        recorded(tape, [answer(text("mine"))], roots=[project]) as reader,
    ):
        session = await writer.session(title="Tea")
        await writer.turn(session, "first")
        error = await refused(reader, "session/attach", sessionId=session.session_id)
        assert error.code == -33019
        fold = await reader.watch.attach(session.session_id, access="read")
        turn_id = await writer.start(session, "second")
        async with asyncio.timeout(HANG_SECONDS):
            await writer.model.reached("gate")
        await seen(reader, lambda: len(fold.messages) == 4)
        await ask(reader, "ping", echo="in between")
        writer.model.release("gate")
        await writer.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        await caught_up(reader, fold, writer)
        await ask(writer, "session/detach", sessionId=session.session_id)
        await caught_up(reader, fold, writer)
        own = await reader.watch.attach(session.session_id)
        await reader.turn(own, "third")
    await plays(tape)


def test_a_recording_writes_nothing_outside(tmp_path: Path) -> None:
    copies = StateCopies(tmp_path / "home", lambda value: value)
    for path in ("../models.json", "/etc/x", "conversations//x", "conversations/./x"):
        with pytest.raises(Exception, match="outside"):
            copies.write(StateFile(path=path, text="{}"))
    assert [*tmp_path.rglob("*")] == []
