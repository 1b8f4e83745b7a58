"""`kode-sidecar model`: scripts that play the same for all, and say what is wrong with them."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_script import ModelScript, read_script, script_names
from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.errors import KodeError
from tests.support.program import PROGRAM
from tests.support.sidecar import HANG_SECONDS, World, sidecar

# How the turn of each ready script ends, and what must have been told in it.
ENDS: dict[str, tuple[str, set[str]]] = {
    "ask": ("end_turn", {"ask.requested", "ask.resolved"}),
    "cut-stream": ("error", {"turn.completed"}),
    "damaged-event": ("end_turn", {"block.completed"}),
    "edits": ("end_turn", {"changeSet.updated"}),
    "endless": ("cancelled", {"block.started"}),
    "everything": ("end_turn", {"changeSet.updated", "permission.requested", "ask.requested"}),
    "hello": ("end_turn", {"block.completed"}),
    "parallel-calls": ("end_turn", {"block.completed"}),
    "permission": ("end_turn", {"permission.requested", "permission.resolved"}),
    "rate-limit": ("error", {"turn.completed"}),
    "report": ("end_turn", {"block.completed"}),
    "retry": ("end_turn", {"model.waiting"}),
    "scouts": ("end_turn", {"scout.updated"}),
    "slow": ("cancelled", {"block.started"}),
    "thinking": ("end_turn", {"block.completed"}),
    "wrong-call": ("end_turn", {"block.completed"}),
}


HI = "[[{text: hi}]]"

# Calls that are wrong, that the editor of the test refuses, or that only jobs have a tool for.
FAILED = {"wrong-call": 3, "parallel-calls": 1, "permission": 1, "everything": 1, "report": 1}


def test_every_ready_script_has_its_case() -> None:
    assert list(script_names()) == list(ENDS)


async def play(world: World, name: str) -> str:
    session = await world.session()
    if ENDS[name][0] != "cancelled":
        return (await world.turn(session, "go")).stop_reason or ""
    turn_id = await world.start(session, "go")
    await world.watch.until(lambda: any(block.text for block in session.blocks.values()))
    cancel = {"sessionId": session.session_id}
    await world.client.request("kode/turn/cancel", cancel, HANG_SECONDS)
    end = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    return end.stop_reason or ""


@pytest.mark.program
@pytest.mark.parametrize("name", ENDS)
async def test_a_ready_script_shows_what_it_says(tmp_path: Path, name: str) -> None:
    script = read_script(name)
    for path, content in script.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    answers = ModelScript(script).answer
    model = ModelServer(Recording((), script.models), script=answers)
    fast = {"KODE_HTTP_RETRY_BUDGET": "5"}
    async with sidecar(model=model, roots=[tmp_path], environment=fast) as world:
        reason, reported = ENDS[name]
        assert await play(world, name) == reason
        assert {event["type"] for event in world.events()} >= reported
        blocks = [event["block"] for event in world.events() if "block" in event]
        failed = [block for block in blocks if block.get("isError")]
        assert len(failed) == FAILED.get(name, 0)


def question(*rounds: str) -> dict[str, Any]:
    answers = [{"role": "assistant", "tool_calls": [one]} for one in rounds]
    return {"model": "kimi-k2.6", "messages": [{"role": "user", "content": "go"}, *answers]}


def test_a_step_follows_from_the_question_and_an_attempt_from_asking_again() -> None:
    script = ModelScript(read_script("retry"))
    assert [script.answer(question()).status for _ in range(3)] == [429, 200, 200]
    edits = ModelScript(read_script("edits"))
    for _ in range(2):  # whoever asks, and how often
        assert b"read_file" in edits.answer(question()).body
        assert b"propose_edit" in edits.answer(question("a")).body
        assert b"Plea" in edits.answer(question("a", "b", "c")).body


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("about: x", "steps"),
        ("about: x\nsteps: []", "no step"),
        ("about: x\nsteps:\n  - attempts: []", "$.steps[0].attempts"),
        ("about: x\nsteps:\n  - - sing: la", "sing"),
        (
            "about: x\nsteps:\n  - - sing: la",
            "of a part of `say` `text`, `thinking`, `call`, `with`",
        ),
        ("about: x\nsteps:\n  - {delay: 1}", "of an answer `say`, `status`, `message`"),
        ("about: [", "x.yaml"),
        (f"about: x\nsteps: {HI}\nturns: [{{steps: {HI}}}]", "not both"),
        (f"about: x\nturns: [{{steps: {HI}, when: {{word: x}}}}]", "of `when` `text`, `number`"),
        (f"about: x\nturns: [{{steps: {HI}}}, {{steps: {HI}}}]", "so turn 2 is never played"),
        (
            "about: x\nsteps:\n  - - text: hi\n  - - text: ho",
            "step 1 of `steps` calls no tool, so the turn ends there and step 2 is never played",
        ),
    ],
)
def test_a_wrong_script_names_its_place(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(KodeError) as wrong:
        read_script(str(file))
    assert wrong.value.code == "ConfigInvalid"
    assert says in wrong.value.message


TURNS = """
about: A greeting, then what the prompt asks for.
turns:
  - when: {number: 1}
    steps: [[{text: Hello}]]
  - when: {text: read}
    steps:
      - - {call: read_file, with: {path: notes.txt}}
      - - text: It is read
  - when: {text: write}
    steps: [[{text: I write}]]
"""


def test_a_turn_follows_from_its_prompt_and_its_number(tmp_path: Path) -> None:
    file = tmp_path / "turns.yaml"
    file.write_text(TURNS)
    script = ModelScript(read_script(str(file)))
    call = {"role": "assistant", "tool_calls": [{}]}
    result, done = {"role": "tool", "content": "write"}, {"role": "assistant", "content": "Hello"}

    def said(*messages: dict[str, Any]) -> bytes:
        return script.answer({"model": "kimi-k2.6", "messages": messages}).body

    def user(text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    assert b"Hell" in said(user("please read"))
    reminder = user("the user did write")
    assert b"read_file" in said(user("a"), done, reminder, user("please read"))
    assert b"It i" in said(user("a"), done, user("please read"), call, result)
    assert b"I wr" in said(user("a"), done, user("please read"), call, result, done, user("write"))
    assert b"script_has_no_turn" in said(user("a"), done, user("sing"))


@pytest.mark.program
async def test_a_script_is_checked_without_being_served(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(TURNS)
    bad.write_text(TURNS.replace("when", "if"))
    for file, code in ((good, 0), (bad, 1)):
        process = await asyncio.create_subprocess_exec(
            *(*PROGRAM, "model", str(file), "--check"), stderr=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == code


@pytest.mark.program
async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async with ModelServer(Recording(())) as model:
        port = model.base_url.split(":")[2].split("/")[0]
        command = (*PROGRAM, "model", "hello", "--port", port, "--folder", str(tmp_path))
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert f"Cannot serve on port {port}" in errors.decode()


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(KodeError, match=r"hello, parallel-calls"):
        read_script("no-such-script")


@pytest.mark.program
async def test_the_command_prints_what_to_set_and_lays_its_files_out(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "model", "edits", "--folder", str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANG_SECONDS):
            lines = [(await process.stdout.readline()).decode() for _ in range(6)]
    finally:
        process.kill()
        await process.wait()
    assert lines[-2].startswith("KIMI_BASE_URL=http://127.0.0.1:")
    assert (tmp_path / "notes.txt").read_text() == "one\ntwo\nthree\n"
