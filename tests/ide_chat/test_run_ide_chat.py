"""The importable conversation (A17), in a process of its own, as a program would use it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import kode_sidecar
from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.errors import KodeError
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS, read_jsonl, sidecar

Json = dict[str, Any]

SCRIPT = """
import json, sys
from kode_sidecar import run_ide_chat
from kode_sidecar.errors import KodeError
for call in json.loads(sys.argv[1]):
    try:
        result = run_ide_chat(**call)
    except KodeError as error:
        result = {"code": error.code, "message": error.message}
    print(json.dumps(result), flush=True)
"""


async def chat(
    responses: list[RecordedResponse], *calls: Json, environment: Json | None = None
) -> tuple[list[Json], ModelServer]:
    async with ModelServer(Recording(tuple(responses)), paced=False) as model:
        env = {**os.environ, "KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test"}
        env |= {"PYTHONPATH": str(ROOT), **(environment or {})}
        command = [sys.executable, "-c", SCRIPT, json.dumps(calls)]
        child = await asyncio.create_subprocess_exec(
            *command, env=env, cwd=Path.home(), stdout=subprocess.PIPE
        )
        async with asyncio.timeout(HANG_SECONDS):
            out, _ = await child.communicate()
        assert child.returncode == 0
        return [json.loads(line) for line in out.splitlines()], model


def prompts(model: ModelServer, index: int = -1) -> list[str]:
    return [m["content"] for m in model.chats[index].body["messages"] if m["role"] == "user"]


async def test_an_async_program_sees_it_grow_and_gets_what_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text("one\ntwo\n", encoding="utf-8")
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": "two", "new": "2"}]})
    grown: list[str] = []
    async with ModelServer(
        Recording((answer(text("I propose."), edit), answer(text("It is 2.", size=3)))), paced=False
    ) as model:
        monkeypatch.setenv("KIMI_BASE_URL", model.base_url)
        monkeypatch.setenv("KIMI_API_KEY", "sk-test")
        result = await kode_sidecar.run_ide_chat_async(
            "change it",
            meta={"projectRoot": str(tmp_path)},
            model="kimi-k2.6",
            agent="coder",
            on_text=grown.append,
        )
    assert "".join(grown) == "I propose.It is 2."
    assert len(grown) >= 2
    assert result["stop_reason"] == "end_turn"
    assert result["usage"]["inputTokens"] == 200
    assert result["cost"] is not None
    assert result["cost"]["amount"] > 0
    (edited,) = result["proposed_edits"]
    assert edited["path"] == "app.py"
    assert "-two\n+2\n" in edited["diff"]
    assert [hunk["newText"] for hunk in edited["hunks"]] == ["2\n"]
    assert (tmp_path / "app.py").read_bytes() == b"one\ntwo\n"
    assert {chat.body["model"] for chat in model.chats} == {"kimi-k2.6"}


async def test_a_conversation_over_calls_and_processes(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('嗨')\n", encoding="utf-8")
    meta = {"projectRoot": str(tmp_path), "ticket": 7}
    responses = [answer(tool_call("read_file", {"path": "app.py"})), answer(text("It prints 嗨."))]
    (first,), model = await chat(responses, {"user_input": "what is it?", "meta": meta})
    assert first["user_message"]["content"] == "what is it?"
    assert first["assistant_message"]["content"] == "It prints 嗨."
    results = [m for m in model.chats[1].body["messages"] if m["role"] == "tool"]
    assert "print('嗨')" in results[0]["content"]
    folder = Path(os.environ["KODE_HOME"]) / "conversations" / first["conversation_id"]
    prompt, *_, said = read_jsonl(folder / "messages.jsonl")
    assert prompt["id"] == first["user_message"]["id"]
    assert (prompt["meta"]["ticket"], said["id"]) == (7, first["assistant_message"]["id"])
    assert json.loads((folder / "meta.json").read_bytes())["meta"]["ticket"] == 7

    # With the same folder: else the model is told, in a message, that none is open now.
    here = {"conversation_id": first["conversation_id"], "meta": meta}
    second = {**here, "user_input": "and now?"}
    branch = {**here, "user_input": "else?", "focus_message_id": said["id"]}
    (later, other), model = await chat([answer(text("a")), answer(text("b"))], second, branch)
    assert prompts(model, 0) == ["what is it?", "and now?"]
    assert prompts(model, 1) == ["what is it?", "else?"]
    assert [later["assistant_message"]["content"], other["assistant_message"]["content"]] == [
        "a",
        "b",
    ]
    (newest,), model = await chat([answer(text("c"))], {**here, "user_input": "on"})
    assert prompts(model) == ["what is it?", "else?", "on"]  # the newest message is the leaf
    assert newest["conversation_id"] == first["conversation_id"]


@pytest.mark.program
async def test_a_conversation_keeps_an_agent_of_the_users_own(tmp_path: Path) -> None:  # A5
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True)
    own = "agents:\n  reviewer: {instructions: 只看不改。, tools: [read_file]}\n"
    (home / "config.yaml").write_text(own, encoding="utf-8")
    async with sidecar([answer(text("one"))], roots=[tmp_path]) as world:
        session = await world.session(agent="reviewer")
        await world.turn(session, "look")
        assert await world.client.close() == 0
    again = {"conversation_id": session.session_id, "user_input": "and now?"}
    _, model = await chat([answer(text("two"))], again)
    body = model.chats[-1].body
    assert body["messages"][0]["content"].endswith("\n\n只看不改。")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read_file"]


async def test_failures_are_typed() -> None:
    nobody = {"user_input": "x", "conversation_id": "nobody"}
    (missing,), _ = await chat([], nobody)
    assert missing["code"] == "SessionNotFound"
    (no_key,), _ = await chat([], {"user_input": "x"}, environment={"KIMI_API_KEY": ""})
    assert no_key["code"] == "AuthRequired"
    (first, lost), _ = await chat(
        [answer(text("hi"))],
        {"user_input": "x"},
        {"user_input": "x", "focus_message_id": "gone"},
    )
    assert (first["assistant_message"]["content"], lost["code"]) == ("hi", "MessageNotFound")


def test_the_import_stays_light() -> None:
    code = "import sys, kode_sidecar; print(sorted(n for n in sys.modules if 'kode' in n or n in "
    code += "('asyncio', 'msgspec', 'httpx')))"
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, env=env, check=True, cwd=Path.home())
    assert run.stdout.decode().strip() == "['kode_sidecar']"


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python.zh.md"])
async def test_the_examples_of_the_documentation_run(page: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def hello(): ...\n", encoding="utf-8")
    edit = {"path": "app.py", "edits": [{"old": "hello", "new": "greet"}]}
    propose = answer(text("Renamed."), tool_call("propose_edit", edit))
    scripts = {
        "run_ide_chat(": ([answer(text("It greets."))], ["It greets.", "inputTokens"]),
        "run_ide_chat_async(": (
            [propose, answer(text("Done.")), answer(text("Because."))],
            ["Renamed.", "+def greet(): ...", "Because."],
        ),
        "send_message(": ([answer(text("Hello there."))], ["Hello there."]),
    }
    examples = (ROOT / page).read_text(encoding="utf-8").split("```python\n")[1:]
    assert len(examples) == len(scripts)
    for example, (call, (responses, expected)) in zip(examples, scripts.items(), strict=True):
        assert call in example
        async with ModelServer(Recording(tuple(responses)), paced=False) as model:
            env = {**os.environ, "KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test"}
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-X", "utf8", "-c", example.split("```")[0]),
                env=env | {"PYTHONPATH": str(ROOT)},
                cwd=tmp_path,
                stdout=subprocess.PIPE,
            )
            async with asyncio.timeout(HANG_SECONDS):
                out, _ = await child.communicate()
        assert child.returncode == 0
        for shown in expected:
            assert shown in out.decode(), out.decode()


@pytest.mark.parametrize("rest", [(), (hold("ever"),)], ids=["all told", "more to come"])
async def test_what_on_text_raises_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, rest: tuple[Any, ...]
) -> None:
    received: list[str] = []

    def on_text(grown: str) -> None:
        received.append(grown)
        raise ValueError("mine")

    async with ModelServer(Recording((answer(text("Hi."), *rest),)), paced=False) as model:
        monkeypatch.setenv("KIMI_BASE_URL", model.base_url)
        monkeypatch.setenv("KIMI_API_KEY", "sk-test")
        async with asyncio.timeout(HANG_SECONDS):
            with pytest.raises(ValueError, match="mine"):
                await kode_sidecar.run_ide_chat_async("go", on_text=on_text)
    assert received == ["Hi."]


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    """A model that calls a tool, answers, and goes on."""
    responses = (answer(tool_call("list_files", {})), answer(text("Hi.")), answer(text("More.")))
    async with ModelServer(Recording(responses), paced=False) as server:
        monkeypatch.setenv("KIMI_BASE_URL", server.base_url)
        monkeypatch.setenv("KIMI_API_KEY", "sk-test")
        yield server


async def test_a_mode_that_waits_for_somebody_fails_at_once(model: ModelServer) -> None:
    modes = "`review`, `auto`, `keep` or `plan`"
    for mode, said in (("ask", "nobody is there"), ("yolo", "There is no mode `yolo`")):
        call: Json = {"user_input": "x", "mode": mode}
        with pytest.raises(KodeError) as raised:
            await kode_sidecar.run_ide_chat_async(**call)
        assert (raised.value.code, modes in raised.value.message) == ("InvalidParams", True)
        assert said in raised.value.message
    assert model.requests == []


async def test_a_mode_of_the_settings_that_waits_is_none_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text("one\n", encoding="utf-8")
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("mode: ask\n", encoding="utf-8")
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": "one", "new": "1"}]})
    async with ModelServer(Recording((answer(edit), answer(text("Done.")))), paced=False) as server:
        monkeypatch.setenv("KIMI_BASE_URL", server.base_url)
        monkeypatch.setenv("KIMI_API_KEY", "sk-test")
        async with asyncio.timeout(HANG_SECONDS):
            result = await kode_sidecar.run_ide_chat_async(
                "x", meta={"projectRoot": tmp_path}, agent="coder"
            )
    assert [edit["path"] for edit in result["proposed_edits"]] == ["app.py"]


async def test_a_path_is_a_project_and_events_are_blocks_and_calls(
    model: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("one\n", encoding="utf-8")
    events: list[Json] = []
    await kode_sidecar.run_ide_chat_async(
        "x", meta={"projectRoot": tmp_path}, on_event=events.append
    )
    blocks = [one["block"] for one in events if one["type"] == "block.completed"]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_result", "text"]
    assert blocks[1]["name"] == "list_files"
    assert "app.py" in blocks[2]["content"][0]["text"]
    assert events[-1]["type"] == "turn.completed"
    assert len(model.chats) == 2


async def test_the_blocking_functions_name_their_twins(model: ModelServer) -> None:
    with pytest.raises(RuntimeError, match="await run_ide_chat_async instead"):
        kode_sidecar.run_ide_chat("x")
    with pytest.raises(RuntimeError, match="await send_message_async instead"):
        kode_sidecar.send_message("x")
    assert model.requests == []


async def test_two_calls_on_one_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (answer(text("a")), answer(hold("later"), text("b")))
    async with ModelServer(Recording(script), paced=False) as server:
        monkeypatch.setenv("KIMI_BASE_URL", server.base_url)
        monkeypatch.setenv("KIMI_API_KEY", "sk-test")
        first = await kode_sidecar.run_ide_chat_async("x")
        here = first["conversation_id"]
        second = asyncio.ensure_future(kode_sidecar.run_ide_chat_async("y", here))
        await server.reached("later")
        with pytest.raises(KodeError) as raised:
            await kode_sidecar.run_ide_chat_async("z", here)
        server.release("later")
        assert (await second)["assistant_message"]["content"] == "b"
    assert raised.value.code == "ReadOnly"
    assert f"{here} is in use, by another call of this program" in raised.value.message


async def test_one_message_without_a_conversation(model: ModelServer) -> None:
    found = await kode_sidecar.send_message_async("Hi", system="Be brief.", model="kimi-k2.6")
    assert found.finish_reason == "tool_calls"
    found = await asyncio.to_thread(kode_sidecar.send_message, "Hi")
    assert [getattr(block, "text", "") for block in found.content] == ["Hi."]
    said = model.chats[0].body["messages"]
    assert [one["content"] for one in said] == ["Be brief.", "Hi"]
    conversations = Path(os.environ["KODE_HOME"]) / "conversations"
    assert not conversations.exists() or not list(conversations.iterdir())


async def test_one_message_that_fails_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KIMI_API_KEY", raising=False)
    with pytest.raises(KodeError) as raised:
        await kode_sidecar.send_message_async("Hi")
    assert raised.value.code == "AuthRequired"
