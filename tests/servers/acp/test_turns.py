"""A turn over ACP: text, thoughts, tool calls, usage, and every way it ends."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.acp_client import SESSION, AcpError, Json, prompt_params
from tests.support.acp_world import acp_world
from tests.support.model_script import answer, failure, hold, text, thinking, tool_call

FILES = {"app.py": "print('hi')\n"}


async def test_initialize_says_what_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = {"auth": {"terminal": True}}
    async with acp_world(tmp_path, monkeypatch, capabilities=terminal) as world:
        info = world.agent_info
        assert info["protocolVersion"] == 1
        assert [one["id"] for one in info["authMethods"]] == ["setup", "settings"]
        assert info["authMethods"][0]["type"] == "terminal"
        assert set(info["agentCapabilities"]["sessionCapabilities"]) >= {"list", "resume", "close"}


async def test_a_turn_streams_thought_text_and_a_tool_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [
        answer(thinking("hm, let me see"), tool_call("read_file", {"path": "app.py"})),
        answer(text("It prints hi.")),
    ]
    async with acp_world(tmp_path, monkeypatch, responses, files=FILES) as world:
        client = world.client
        session_id = await client.new(world.project)
        end = await client.prompt(session_id, "What does it do?")
        assert end["stopReason"] == "end_turn"
        assert end["_meta"]["kode"]["messageId"]
        assert client.said("agent_thought_chunk") == "hm, let me see"
        assert client.said() == "It prints hi."
        chunks = client.of_kind("agent_message_chunk")
        assert len({chunk["messageId"] for chunk in chunks}) == 1
        (call,) = client.of_kind("tool_call")
        updates = client.of_kind("tool_call_update")
        assert call["status"] == "pending"
        assert {u["toolCallId"] for u in updates} == {call["toolCallId"]}
        assert [u["status"] for u in updates if "status" in u] == ["in_progress", "completed"]
        reported = {key: value for update in updates for key, value in update.items()}
        assert reported["kind"] == "read"
        assert reported["title"] == "Read app.py"
        assert reported["rawInput"] == {"path": "app.py"}
        assert reported["locations"] == [{"path": str(world.project / "app.py")}]
        assert "print('hi')" in reported["content"][0]["content"]["text"]
        (usage,) = client.of_kind("usage_update")
        assert 0 < usage["used"] < usage["size"]
        assert usage["cost"]["currency"] in ("CNY", "USD")
        assert client.of_kind("session_info_update")[-1]["title"] == "What does it do?"
        assert client.kinds()[0] == "available_commands_update"


async def test_cancel_ends_the_turn_and_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [answer(text("Once upon"), hold("never"), text(" a time")), answer(text("Again."))]
    async with acp_world(tmp_path, monkeypatch, responses) as world:
        client = world.client
        session_id = await client.new(world.project)
        number = await client.send("session/prompt", prompt_params(session_id, "A story"))
        await client.until(lambda: client.said() == "Once upon")
        await client.notify("session/cancel", {"sessionId": session_id})
        assert (await client.wait_for(number))["stopReason"] == "cancelled"
        assert (await client.prompt(session_id, "Again"))["stopReason"] == "end_turn"


async def test_cancel_right_behind_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [answer(text("Once"), hold("never"))]
    async with acp_world(tmp_path, monkeypatch, responses) as world:
        client = world.client
        session_id = await client.new(world.project)
        number = await client.send("session/prompt", prompt_params(session_id, "A story"))
        await client.notify("session/cancel", {"sessionId": session_id})
        assert (await client.wait_for(number))["stopReason"] == "cancelled"


async def test_a_request_is_cancelled_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [answer(text("Once"), hold("never")), answer(text("Again."))]
    async with acp_world(tmp_path, monkeypatch, responses) as world:
        client = world.client
        session_id = await client.new(world.project)
        number = await client.send("session/prompt", prompt_params(session_id, "A story"), "p-1")
        await client.until(client.said)
        await client.notify("$/cancel_request", {"requestId": "p-1"})
        with pytest.raises(AcpError) as caught:
            await client.wait_for(number)
        assert caught.value.code == -32800
        assert (await client.prompt(session_id, "Again"))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")]
)
async def test_stop_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: str, reason: str
) -> None:
    async with acp_world(tmp_path, monkeypatch, [answer(text("So"), finish=finish)]) as world:
        session_id = await world.client.new(world.project)
        assert (await world.client.prompt(session_id, "Go"))["stopReason"] == reason


async def test_a_model_that_fails_answers_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = failure(401, "invalid_authentication_error", "no")
    async with acp_world(tmp_path, monkeypatch, [refused]) as world:
        session_id = await world.client.new(world.project)
        with pytest.raises(AcpError) as caught:
            await world.client.prompt(session_id, "Go")
        assert caught.value.code == -32000
        assert caught.value.error["data"]["code"] == "AuthRequired"


async def test_a_second_prompt_reaches_the_running_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [
        answer(text("One"), hold("go"), tool_call("list_files", {})),
        answer(text(" two")),
    ]
    async with acp_world(tmp_path, monkeypatch, responses) as world:
        client = world.client
        session_id = await client.new(world.project)
        first = await client.send("session/prompt", prompt_params(session_id, "Count"))
        await client.until(client.said)
        second = await client.send("session/prompt", prompt_params(session_id, "in English"))
        await asyncio.sleep(0)
        await client.request("session/list", {})
        world.model.release("go")
        assert (await client.wait_for(first))["stopReason"] == "end_turn"
        assert (await client.wait_for(second))["stopReason"] == "end_turn"
        assert "in English" in str(world.asked()["messages"])


async def test_errors_have_the_numbers_of_json_rpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch) as world:
        client = world.client
        for method, params, code in (
            ("session/prompt", prompt_params("nobody", "hi"), -32002),
            ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
            ("session/load", {"cwd": "/", "mcpServers": [], "sessionId": "nobody"}, -32002),
            ("session/set_mode", {"sessionId": "nobody", "modeId": "fly"}, -32602),
        ):
            with pytest.raises(AcpError) as caught:
                await client.request(method, params)
            assert caught.value.code == code, method


async def test_sign_in_and_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_API_KEY", "")
    async with acp_world(tmp_path, monkeypatch, [answer(text("Hello."))]) as world:
        client = world.client
        for _ in range(2):
            with pytest.raises(AcpError) as caught:
                await client.new(world.project)
            assert caught.value.code == -32000
            with pytest.raises(AcpError) as caught:
                await client.request("authenticate", {"methodId": "settings"})
            assert caught.value.code == -32000
        monkeypatch.setenv("KIMI_API_KEY", "sk-found-by-now")
        await client.request("authenticate", {"methodId": "settings"})
        session_id = await client.new(world.project)
        assert (await client.prompt(session_id, "Hi"))["stopReason"] == "end_turn"
        await client.request("logout", {})
        with pytest.raises(AcpError) as caught:
            await client.prompt(session_id, "Hi")
        assert caught.value.code == -32000


@pytest.mark.parametrize("capabilities", [SESSION, {}])
async def test_compaction_is_told_to_those_who_announce_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: Json
) -> None:
    answers = [*[answer(text("Done."))] * 3, answer(text("Work was asked for, and done."))]
    async with acp_world(tmp_path, monkeypatch, answers, capabilities=capabilities) as world:
        client = world.client
        session_id = await client.new(world.project)
        for _ in range(3):
            await client.prompt(session_id, "Work " * 200)
        await client.prompt(session_id, "/compact")
        assert "Summed up" in client.said()
        reported = client.of_kind("compaction_update")
        if not capabilities:
            assert not reported
            return
        assert [one["status"] for one in reported] == ["in_progress", "completed"]
        chunks = client.of_kind("compaction_summary_chunk")
        assert {one["compactionId"] for one in chunks} == {reported[0]["compactionId"]}
        assert "Work was asked for" in client.said("compaction_summary_chunk")


@pytest.mark.parametrize("capabilities", [SESSION, {}])
async def test_warnings_reach_every_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: Json
) -> None:
    monkeypatch.setenv("KODE_MEMORY_MODE", "external")
    monkeypatch.setenv("KODE_MEMORY_URL", "http://127.0.0.1:9/")
    answers = [answer(text("Done."))]
    async with acp_world(tmp_path, monkeypatch, answers, capabilities=capabilities) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Work")
        notices = world.client.of_kind("notice")
        if capabilities:
            assert notices[0]["severity"] == "warning"
        else:
            assert not notices
            assert "⚠" in world.client.said()


async def test_a_delta_costs_little_more_than_its_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least is what no agent can do without; ours has the id of its message besides."""
    async with acp_world(tmp_path, monkeypatch, [answer(text("word "))]) as world:
        await world.client.prompt(await world.client.new(world.project), "Say it")
        (chunk,) = [line for line in world.client.raw if b"agent_message_chunk" in line]
        reported = json.loads(chunk)
        assert reported["params"]["update"].pop("messageId")
        least = json.dumps(reported, separators=(",", ":")).encode() + b"\n"
        assert len(chunk) <= 1.2 * len(least)


async def test_verbs_are_in_the_menu_and_called_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # F15
    async with acp_world(tmp_path, monkeypatch, [answer(text("Done."))]) as world:
        client = world.client
        session_id = await client.new(world.project)
        menu = {
            one["name"]: one
            for one in client.of_kind("available_commands_update")[-1]["availableCommands"]
        }
        assert menu["explain"]["input"] == {"hint": "[要看的内容]"}
        own = tmp_path / "home" / "commands"
        own.mkdir(parents=True, exist_ok=True)
        (own / "fresh.md").write_text("Fresh $1\n")
        await client.prompt(session_id, "/fresh fish")
        reported = client.of_kind("available_commands_update")[-1]["availableCommands"]
        assert {one["name"] for one in reported} == {*menu, "fresh"}
        assert "Fresh fish" in str(world.asked())
