"""`serve --record`: what a recording holds, what it never holds, and how it ends."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.devtools.recording.recorded_lines import (
    AnswerBytes,
    FilesLeftOut,
    FrameOut,
    InputEnded,
    RecordedFile,
    TimerRang,
)
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.devtools.recording.replay import play
from kode_sidecar.infrastructure.records.json_record import check, is_sealed
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.program import PROGRAM
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

KEY = "tk4711-of-the-user-0815-kept-to-herself"
ANTHROPIC_KEY = "sk-ant-0123456789abcdefghijklmnopqrst"


def recording(tape: Path, responses: Sequence[RecordedResponse], **more: Any) -> Any:
    command = [*PROGRAM, "serve", "--record", str(tape)]
    return sidecar(responses, command=command, **more)


async def talk(world: World, prompt: str) -> str:
    session = await world.session(model="kimi-k2.6")
    await world.turn(session, prompt)
    return session.session_id


async def test_a_recording_with_keys_in_it_holds_no_key(tmp_path: Path) -> None:  # W14
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text("TOKEN=very-secret-value\n")
    (project / "config.py").write_text(f'KEY = "{KEY}"\nafter = 1\n')
    (project / "other.py").write_text(f'OTHER = "{ANTHROPIC_KEY}"\nunread-beside-it = 1\n')
    (project / "旧.txt").write_bytes(f"钥匙 {KEY}\n".encode("gbk"))
    echo = answer(
        thinking(KEY, size=9),
        text(f"I was told {KEY}.", size=400),
        tool_call("read_file", {"path": "config.py"}),
    )
    tape = tmp_path / "tape.jsonl"
    environment = {"KIMI_API_KEY": KEY}
    handshake = {"settings": {"model": "kimi-k2.6"}}
    responses = (echo, answer(text("Done.")))
    async with recording(
        tape, responses, roots=[project], environment=environment, handshake=handshake
    ) as world:
        prompt = f"the keys are {ANTHROPIC_KEY} and then {KEY}; use them"
        session_id = await talk(world, prompt)
        exported = await world.client.request(
            "kode/session/export", {"sessionId": session_id, "format": "tape"}, HANG_SECONDS
        )
    written = tape.read_bytes()
    # The session's title is cut off inside of one.
    for secret in (
        KEY,
        KEY[:12],
        KEY[-12:],
        ANTHROPIC_KEY,
        "very-secret-value",
        "unread-beside",
        "uthorization",
    ):
        assert secret.encode() not in written
        assert secret not in exported["text"]
    transcript = read_recording(tape)
    files = [line for line in transcript.lines if isinstance(line, RecordedFile)]
    assert sorted(file.path for file in files) == ["config.py", "旧.txt"]
    for file in files:  # a star for every character: places stay as they are
        content = file.base64 or (file.text or "").encode()
        assert KEY.encode() not in content
        assert len(content) == len((project / file.path).read_bytes())
    assert [line.count for line in transcript.lines if isinstance(line, FilesLeftOut)] == [2]
    assert oct(tape.stat().st_mode & 0o777) == "0o600" or sys.platform == "win32"


async def test_it_plays_without_the_key(tmp_path: Path) -> None:  # E6
    tape = tmp_path / "tape.jsonl"
    environment = {"KIMI_API_KEY": KEY}
    responses = (answer(text("I will not repeat it.")),)
    async with recording(tape, responses, environment=environment) as world:
        await talk(world, f"my key is {KEY}")
    transcript = read_recording(tape)
    assert transcript.whole
    assert transcript.head.keyed == ("KIMI_API_KEY",)
    assert (await play(tape, transcript, PROGRAM, HANG_SECONDS)).difference is None


@pytest.mark.parametrize("chosen", [None, "0.3"])
async def test_only_sampling_that_was_chosen_is_told_when_it_is_not_sent(
    tmp_path: Path, chosen: str | None
) -> None:
    """The same number as a default is no news; a recording knows which it was."""
    tape = tmp_path / "tape.jsonl"
    environment = {"KODE_TEMPERATURE": chosen}
    async with recording(tape, (answer(text("ok")),), environment=environment) as world:
        session = await world.session()
        await world.turn(session, "go")
        dropped = [one for one in session.notices if one["code"] == "SamplingDropped"]
        assert len(dropped) == (chosen is not None)
    transcript = read_recording(tape)
    assert ("temperature" in transcript.head.defaults) == (chosen is None)
    assert (await play(tape, transcript, PROGRAM, HANG_SECONDS)).difference is None


async def test_a_killed_process_leaves_what_it_said_so_far(tmp_path: Path) -> None:  # E6
    tape = tmp_path / "tape.jsonl"
    responses = (answer(text("Half of"), hold("never"), text(" it")),)
    async with recording(tape, responses) as world:
        session = await world.session(model="kimi-k2.6")
        await world.start(session, "go")
        await world.watch.until(
            lambda: any(block.text == "Half of" for block in session.blocks.values()), HANG_SECONDS
        )
        await world.kill()
    with tape.open("ab") as file:
        file.write(b'{"lane":"out","t":9,"fra')  # a torn tail
    transcript = read_recording(tape)
    assert not transcript.whole
    assert any(isinstance(line, AnswerBytes) for line in transcript.lines)
    assert isinstance(transcript.lines[-1], FrameOut)
    assert (await play(tape, transcript, PROGRAM, HANG_SECONDS)).difference is None


async def test_a_recording_never_takes_the_place_of_another(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    for _ in range(3):
        async with recording(tape, ()):
            pass
    names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert names == ["tape-2.jsonl", "tape-3.jsonl", "tape.jsonl"]
    assert all(read_recording(tmp_path / name).whole for name in names)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a disk that is full")
async def test_a_full_disk_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    tape = tmp_path / "nowhere" / "tape.jsonl"
    command = [*PROGRAM, "serve", "--record", str(tape)]
    async with sidecar((), command=command, initialize=False) as world:
        world.client.start("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert await world.client.process.wait(HANG_SECONDS) == 1
        assert f"{tape} cannot be made or written: " in world.client.process.stderr_tail


async def test_without_a_recording_there_is_no_tape(tmp_path: Path) -> None:
    async with sidecar(()) as world:
        session = await world.session()
        with pytest.raises(RpcError, match="--record FILE") as refused:
            await world.client.request(
                "kode/session/export",
                {"sessionId": session.session_id, "format": "tape"},
                HANG_SECONDS,
            )
        assert refused.value.code == -33015


async def test_files_that_others_write_meanwhile_are_played_too(tmp_path: Path) -> None:  # E6
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("a = 1\n")
    reads = answer(tool_call("read_file", {"path": "a.py"}))
    tape = tmp_path / "tape.jsonl"
    responses = (reads, answer(text("one")), reads, answer(text("two")))
    async with recording(tape, responses, roots=[project]) as world:
        session = await world.session(model="kimi-k2.6")
        await world.turn(session, "read")
        (project / "a.py").write_text("a = 1000\n")
        (project / "b.py").write_text("b = 1\n")
        await world.turn(session, "read again")
        assert "a = 1000" in str(world.messages(session))
        await world.client.process.end(HANG_SECONDS)  # without a word
    transcript = read_recording(tape)
    assert isinstance(transcript.lines[-2], InputEnded)
    assert (await play(tape, transcript, PROGRAM, HANG_SECONDS)).difference is None


def with_long_patience(tape: Path, folder: Path) -> Path:
    """The recording of a user with all the time of the world, who was not given it."""
    whole = tape.read_text(encoding="utf-8")
    changed = whole.replace('"permission_timeout":0.3', '"permission_timeout":86400.0', 1)
    assert changed != whole
    changed = changed.replace("within 0.3 seconds", "within 86400 seconds")  # the model is told
    assert changed.count('"lane":"timer"') == changed.count('"seconds":0.3}') == 1
    changed = changed.replace('"seconds":0.3}', '"seconds":86400.0}')
    long = folder / "long.jsonl"
    long.write_text(changed, encoding="utf-8", newline="\n")
    return long


# E6: in a recording the time is over when it was over
@pytest.mark.parametrize(
    "call",
    [
        tool_call("ask_user", {"question": "Which?", "choices": ["this", "that"]}),
        tool_call("propose_edit", {"path": ".exrc", "edits": [{"old": "a", "new": "b"}]}),
    ],
    ids=["ask", "permission"],
)
async def test_a_question_nobody_answered_is_played_by_the_clock_of_the_recording(
    tmp_path: Path, call: Any
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".exrc").write_text("a\n")

    async def never(_params: Any) -> Any:
        return await asyncio.Future[Any]()

    tape = tmp_path / "tape.jsonl"
    environment = {"KODE_PERMISSION_TIMEOUT": "0.3"}
    responses = (answer(call), answer(text("done")))
    async with recording(tape, responses, roots=[project], environment=environment) as world:
        world.editor.answer_permission = world.editor.answer_choice = never
        await talk(world, "go")
    long = with_long_patience(tape, tmp_path)
    (rung,) = [line for line in read_recording(long).lines if isinstance(line, TimerRang)]
    assert rung.seconds == 86400.0
    replayed = await play(long, read_recording(long), PROGRAM, HANG_SECONDS)
    assert replayed.difference is None, f"\n{replayed.difference}"


async def test_an_edit_that_leaves_no_trace_is_played(tmp_path: Path) -> None:  # E6
    project = tmp_path / "project"
    project.mkdir()
    path = project / "a.py"
    path.write_text("a = 1\n")
    edit = {"path": "a.py", "edits": [{"old": "a = 1", "new": "a = 2"}]}
    tape = tmp_path / "tape.jsonl"
    responses = (answer(tool_call("propose_edit", edit)), answer(text("done")))
    async with recording(tape, responses, roots=[project]) as world:
        world.editor.manners.refuse = "not now"
        buffer = world.editor.open(path)
        session = await world.session(model="kimi-k2.6")
        await world.turn(session, "go")
        result = await world.decide(only_change_set(session))
        assert len(result["conflicts"]) == 1
        assert buffer.text == "a = 1\n"
    rung = [line.seconds for line in read_recording(tape).lines if isinstance(line, TimerRang)]
    assert rung == [0.25] * 2  # sent once more, in vain
    replayed = await play(tape, read_recording(tape), PROGRAM, HANG_SECONDS)
    assert replayed.difference is None, f"\n{replayed.difference}"


async def test_a_private_key_is_in_no_recording_export_or_log(tmp_path: Path) -> None:  # W14 W20
    """One that the user shows, that the model repeats in pieces, and that an open file holds."""
    body = ["aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 2, "q7W2e9R4t1Y6u3I8o5P0" * 3, "zXcVbNm7"]
    kind = "OPENSSH PRIVATE " + "KEY-----"
    key = "\n".join([f"-----BEGIN {kind}", *body, f"-----END {kind}", ""])
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text(f"before\n{key}after\n")
    (project / "secrets.env").write_text("PIN=4711-0815\n")
    tape = tmp_path / "tape.jsonl"
    responses = (answer(text(f"You said {key}", size=7)),)
    async with recording(tape, responses, roots=[project], environment={}) as world:
        for name in ("notes.txt", "secrets.env"):
            path = project / name
            document = {"uri": path.as_uri(), "languageId": "text", "version": 1}
            document["text"] = path.read_text()
            world.client.notify("textDocument/didOpen", {"textDocument": document})
        session_id = await talk(world, f"keep this: {key}")
        exports = [
            (await world.client.request("kode/session/export", params, HANG_SECONDS))["text"]
            for params in ({"sessionId": session_id, "format": one} for one in ("md", "jsonl"))
        ]
        await world.client.process.end(HANG_SECONDS)
        log = (world.home / "logs" / "agent.log").read_text(encoding="utf-8")
    for written in (tape.read_text(encoding="utf-8"), *exports, log):
        assert [line for line in (*body, "4711-0815") if line in written] == []
        pieces = [line[at : at + 5] for line in body for at in range(len(line) - 4)]
        left = [
            written[max(0, at - 200) : at + 60] for one in pieces if (at := written.find(one)) >= 0
        ]
        assert left == []
    records = exports[1].encode().splitlines()
    assert len(records) == 2
    assert all(is_sealed(check(record)) for record in records)  # the checksum is the masked text's
    transcript = read_recording(tape)
    assert transcript.whole
    assert [line.count for line in transcript.lines if isinstance(line, FilesLeftOut)] == [2]
