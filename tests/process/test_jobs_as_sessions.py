"""A job is a session: it is summed up, sends scouts, keeps a plan, and can be read. F19"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.terminal.client.connection import RpcError
from tests.process.test_runs_over_the_wire import TRUSTED, ask, ended
from tests.support.chat_program import by_lines
from tests.support.headless_world import HEAD, RunFiles
from tests.support.model_script import TokenUsage, answer, hold, text, tool_call
from tests.support.scout_model import explore, is_scout, report, scout_model
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
CONFIG = f"{HEAD}model: kimi-k2.6\nworkspace: {{import: project}}\n"
WINDOW = 20_000
LONG = "value = 'wert'  # 值\n" * 400
EDIT = {"path": "workspace/long.py", "edits": [{"old": "first = 1", "new": "first = 2"}]}


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "long.py").write_text(f"first = 1\n{LONG}", encoding="utf-8")
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return str(path)


def types(found: Json) -> list[str]:
    return [event["type"] for event in found["events"]]


async def test_a_job_that_outgrows_the_window_is_summed_up(config: str) -> None:
    look = tool_call("read_file", {"path": "workspace/long.py"})
    responses = [
        answer(text("I read."), look),
        answer(text("I read it again."), look),
        answer(
            tool_call("list_files", {"directory": "workspace"}),
            usage=TokenUsage(prompt=18_500, completion=100),
        ),
        answer(text("# Task\nread and report"), usage=TokenUsage(prompt=18_700, completion=20)),
        answer(text("Done."), usage=TokenUsage(prompt=5_000)),
    ]
    small = {"KODE_CONTEXT_WINDOW": str(WINDOW), "KODE_LOCALE": "en"}
    async with sidecar(responses, handshake=TRUSTED, environment=small) as world:
        started = await ask(world, "start", config=config, prompt="Read it.")
        found = await ended(world, started["runId"])
        assert (found["run"]["status"], found["run"]["finalText"]) == ("completed", "Done.")
        assert types(found).count("context.compacted") == 1
        last = world.asked()["messages"]
        assert any("read and report" in str(message["content"]) for message in last)
        assert "I read." not in str(last)
        assert "Read it." in str(last)
        used = RunFiles(started["sandboxRoot"]).run["usage"]
        assert used["inputTokens"] >= 18_500 + 18_700 + 5_000


async def test_a_job_sends_scouts_and_keeps_a_plan(config: str) -> None:
    plan = {"items": [{"text": "Find it", "state": "done"}, {"text": "Say it", "state": "pending"}]}
    main = [
        answer(tool_call("update_plan", plan), explore("the value")),
        answer(text("Line 1.")),
    ]
    finding = ("workspace/long.py", 1, 1, "first = 1")
    scouts = {
        "the value": [
            answer(tool_call("read_file", {"path": "workspace/long.py"})),
            answer(report("It is on line 1.", finding)),
        ]
    }
    model = scout_model(main, scouts)
    async with sidecar(model=model, handshake=TRUSTED) as world:
        started = await ask(world, "start", config=config, prompt="Where?")
        found = await ended(world, started["runId"])
        assert (found["run"]["status"], found["run"]["finalText"]) == ("completed", "Line 1.")
        reported = str(world.asked()["messages"][-1])
    assert "It is on line 1." in reported
    assert "unverified" not in reported
    planned, scouted = (
        [event for event in found["events"] if event["type"] == kind]
        for kind in ("plan.updated", "scout.ended")
    )
    assert [item["text"] for item in planned[0]["data"]["items"]] == ["Find it", "Say it"]
    assert [event["data"]["state"] for event in scouted] == ["done"]
    files = RunFiles(started["sandboxRoot"])
    statuses = {line["tool_name"]: line["status"] for line in files.lines("logs/tools.jsonl")}
    assert statuses == {"update_plan": "ok", "explore": "ok"}
    answered = [e["data"]["usage"] for e in found["events"] if e["type"] == "model.answered"]
    main_tokens = sum(usage["inputTokens"] for usage in answered)
    assert files.run["usage"]["inputTokens"] > main_tokens, "scouts are paid by the run"


async def test_what_a_rule_denies_no_scout_reads_either(tmp_path: Path, config: str) -> None:
    rule = "tools: {permissions: [{tool: read_file, path: workspace/**, effect: deny}]}\n"
    Path(config).write_text(CONFIG + rule, encoding="utf-8")
    scouts = {
        "the value": [
            answer(tool_call("read_file", {"path": "workspace/long.py"})),
            answer(report("Nothing.")),
        ]
    }
    main = [answer(explore("the value")), answer(text("Nothing found."))]
    async with sidecar(model=scout_model(main, scouts), handshake=TRUSTED) as world:
        started = await ask(world, "start", config=config, prompt="Where?")
        assert (await ended(world, started["runId"]))["run"]["status"] == "completed"
        scout = [chat.body for chat in world.model.chats if is_scout(chat.body)]
    assert "is not allowed here" in str(scout[-1]["messages"])


def working() -> Sequence[RecordedResponse]:
    return [
        answer(text("I edit."), tool_call("propose_edit", EDIT)),
        answer(text("I "), hold("middle"), text("am done.")),
    ]


async def conversation(world: World, run_id: str) -> str:
    return (await ask(world, "get", runId=run_id))["run"]["conversationId"]


async def refused(world: World, method: str, **params: Any) -> Json:
    with pytest.raises(RpcError) as caught:
        await world.client.request(method, params, HANG_SECONDS)
    return caught.value.data


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_running_job_is_opened_and_only_read(
    tmp_path: Path, config: str, same_process: bool
) -> None:
    """It streams to whoever reads, in the process that runs it and in any other."""
    project = tmp_path / "project"
    async with (
        sidecar(working(), handshake=TRUSTED, roots=[project]) as runner,
        sidecar([answer(text("From here."))], handshake=TRUSTED, roots=[project]) as other,
    ):
        reader = runner if same_process else other
        started = await ask(runner, "start", config=config, prompt="Edit it.")
        async with asyncio.timeout(HANG_SECONDS):
            await runner.model.reached("middle")
        session_id = await conversation(runner, started["runId"])
        listed = await reader.client.request("kode/session/list", {}, HANG_SECONDS)
        assert [(one["sessionId"], one["kind"]) for one in listed["sessions"]] == [
            (session_id, "job")
        ]
        fold = await reader.watch.attach(session_id)
        assert fold.title == "Edit it."
        (change_set,) = fold.change_sets.values()
        assert [hunk.state for hunk in change_set.hunks()] == ["applied"]
        content = [{"type": "text", "text": "and then?"}]
        turn = {"sessionId": session_id, "input": content}
        error = await refused(reader, "kode/turn/start", **turn)
        assert error["code"] == "ReadOnly"
        runner.model.release("middle")
        assert (await ended(runner, started["runId"]))["run"]["status"] == "completed"
        await reader.watch.until(lambda: fold.active_turn is None, HANG_SECONDS)
        assert list(fold.messages.values())[-1].text == "I am done."
        for method, params in (
            ("kode/turn/start", turn),
            ("kode/session/update", {"sessionId": session_id, "title": "Mine"}),
            ("kode/tree/setHead", {"sessionId": session_id, "messageId": None}),
        ):
            error = await refused(reader, method, **params)
            assert error["code"] == "ReadOnly", method
        with pytest.raises(RpcError, match="kode/session/fork"):
            await reader.client.request("kode/turn/start", turn, HANG_SECONDS)


async def test_a_finished_job_is_gone_on_with_in_a_copy(tmp_path: Path, config: str) -> None:
    project = tmp_path / "project"
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("I am done."))]
    async with sidecar(responses, handshake=TRUSTED, roots=[project]) as world:
        started = await ask(world, "start", config=config, prompt="Edit it.")
        await ended(world, started["runId"])
        session_id = await conversation(world, started["runId"])
    async with sidecar([answer(text("More."))], handshake=TRUSTED, roots=[project]) as world:
        fold = await world.watch.attach(session_id)
        assert [message.text for message in fold.messages.values()][-1] == "I am done."
        params = {"sessionId": session_id}
        forked = await world.client.request("kode/session/fork", params, HANG_SECONDS)
        copy = await world.watch.attach(forked["sessionId"])
        got = await world.client.request(
            "kode/session/get", {"sessionId": copy.session_id}, HANG_SECONDS
        )
        assert "kind" not in got["session"]
        assert (got["session"]["mode"], got["session"]["agent"]) == ("review", "ide-helper")
        assert (await world.turn(copy, "And now?")).stop_reason == "end_turn"
        assert "Edit it." in str(world.asked()["messages"])


async def test_a_killed_job_is_read_as_one_that_ended(tmp_path: Path, config: str) -> None:
    async with sidecar(working(), handshake=TRUSTED) as world:
        started = await ask(world, "start", config=config, prompt="Edit it.")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("middle")
        session_id = await conversation(world, started["runId"])
        await world.kill()
    async with sidecar() as world:
        assert (await ask(world, "get", runId=started["runId"]))["run"]["status"] == "failed"
        params = {"sessionId": session_id}
        reported = await world.client.request("kode/session/attach", params, HANG_SECONDS)
    assert "activeTurnId" not in reported
    assert reported["lastTurn"]["stopReason"] == "interrupted"


async def test_a_chat_shows_a_job_and_says_how_to_go_on(tmp_path: Path, config: str) -> None:
    project = tmp_path / "project"
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("I am done."))]
    async with sidecar(responses, handshake=TRUSTED, roots=[project]) as world:
        started = await ask(world, "start", config=config, prompt="Edit it.")
        await ended(world, started["runId"])
        session_id = await conversation(world, started["runId"])
    lines = f"/session list\n/session {session_id}\nand then?\n/fork\nand then?\n"
    chat = await by_lines(project, lines, [answer(text("From here."))])
    assert f"{session_id}" in chat.out
    assert "[job] Edit it." in chat.out
    assert "session of a job" in chat.out + chat.err
    assert "From here." in chat.out
