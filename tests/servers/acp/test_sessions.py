"""Sessions over ACP: begun, listed, loaded, resumed, forked, rewound, closed and deleted."""

from pathlib import Path

import pytest

from kode_sidecar.core.settings import load_settings
from kode_sidecar.ide_chat import Conversations
from tests.support.acp_client import AcpError, Json
from tests.support.acp_world import acp_world
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.model_script import answer, text, thinking, tool_call

FILES = {"app.py": "one\ntwo\n"}
EDIT = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": "two", "new": "zwei"}]})
ELSEWHERE = {"mcpServers": []}


def echo() -> AnsweringModel:
    """A model that says what it was asked last."""
    return AnsweringModel(lambda body: answer(text(f"You said {user_texts(body)[-1]}")))


async def test_a_session_is_loaded_with_all_that_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [
        answer(thinking("hm"), tool_call("read_file", {"path": "app.py"})),
        answer(text("Now I edit."), EDIT),
        answer(text("Done.")),
    ]
    async with acp_world(tmp_path, monkeypatch, responses, files=FILES) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Translate")
        live = world.client.updates
    async with acp_world(tmp_path, monkeypatch) as world:
        client = world.client
        params = {"sessionId": session_id, "cwd": str(world.project), **ELSEWHERE}
        loaded = await client.request("session/load", params)
        assert loaded["modes"]["currentModeId"] == "ask"
        assert client.said("user_message_chunk") == "Translate"
        assert client.said("agent_thought_chunk") == "hm"
        assert client.said() == "Now I edit.Done."
        cards = {u["toolCallId"]: u["title"] for u in client.of_kind("tool_call")}
        assert list(cards.values()) == ["Read app.py", "Edit app.py"]
        assert cards.keys() == {u["toolCallId"] for u in live if u["sessionUpdate"] == "tool_call"}
        last = client.of_kind("tool_call_update")[-1]
        assert last["status"] == "completed"
        assert last["content"][0]["newText"] == "zwei\n"
        before = {u["messageId"] for u in live if u["sessionUpdate"] == "agent_message_chunk"}
        assert {u["messageId"] for u in client.of_kind("agent_message_chunk")} == before
        assert await client.prompt(session_id, "/usage")
        assert "input: 300 tokens" in client.said()


async def test_a_resumed_session_tells_nothing_again_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "first")
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        params = {"sessionId": session_id, "cwd": str(world.project)}
        await world.client.request("session/resume", params)
        await world.client.prompt(session_id, "second")
        assert world.client.said() == "You said second"
        assert "first" in user_texts(world.asked())


async def test_sessions_are_listed_closed_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        other = tmp_path / "other"
        other.mkdir()
        one = await client.new(world.project)
        two = await client.new(other, additionalDirectories=[str(world.project)])
        await client.prompt(one, "A title")
        listed = (await client.request("session/list", {}))["sessions"]
        assert [info["sessionId"] for info in listed] == [one, two]
        assert listed[0]["title"] == "A title"
        assert listed[1]["additionalDirectories"] == [str(world.project)]
        here = (await client.request("session/list", {"cwd": str(other)}))["sessions"]
        assert [info["sessionId"] for info in here] == [two]
        await client.request("session/close", {"sessionId": one})
        with pytest.raises(AcpError):
            await client.prompt(one, "Anybody?")
        await client.request("session/delete", {"sessionId": one})
        await client.request("session/delete", {"sessionId": two})
        assert (await client.request("session/list", {}))["sessions"] == []


async def test_a_long_list_has_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with acp_world(tmp_path, monkeypatch) as world:
        client = world.client
        made = {await client.new(world.project) for _ in range(52)}
        first = await client.request("session/list", {"cwd": str(world.project)})
        rest = await client.request("session/list", {"cursor": first["nextCursor"]})
        found = [info["sessionId"] for info in first["sessions"] + rest["sessions"]]
        assert set(found) == made
        assert len(found) == 52
        assert "nextCursor" not in rest


async def test_modes_and_options_mirror_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "plan"})
        await client.until(lambda: client.of_kind("config_option_update"))
        assert client.of_kind("current_mode_update")[-1]["currentModeId"] == "plan"
        reported = {o["id"]: o["currentValue"] for o in _options(client.updates)}
        assert reported["mode"] == "plan"
        change = {"sessionId": session_id, "configId": "mode", "value": "auto"}
        answered = await client.request("session/set_config_option", change)
        assert answered["configOptions"][0]["currentValue"] == "auto"
        await client.until(lambda: len(client.of_kind("config_option_update")) == 2)
        assert client.of_kind("current_mode_update")[-1]["currentModeId"] == "auto"
        change = {"sessionId": session_id, "configId": "model", "value": "kimi/kimi-k2.6"}
        answered = await client.request("session/set_config_option", change)
        assert answered["configOptions"][1]["currentValue"] == "kimi/kimi-k2.6"
        wrong = {"sessionId": session_id, "configId": "speed", "value": "fast"}
        with pytest.raises(AcpError) as caught:
            await client.request("session/set_config_option", wrong)
        assert caught.value.code == -32602


def _options(updates: list[Json]) -> list[Json]:
    return [u for u in updates if u["sessionUpdate"] == "config_option_update"][-1]["configOptions"]


async def test_an_earlier_prompt_is_edited_and_the_tree_stays_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "first")
        second = await client.prompt(session_id, "second")
        replaced = second["_meta"]["kode"]["messageId"]
        meta = {"_meta": {"kode": {"replaces": replaced}}}
        await client.prompt(session_id, "another", **meta)
        assert user_texts(world.asked()) == ["first", "another"]
        client.updates.clear()
        params = {"sessionId": session_id, "cwd": str(world.project), **ELSEWHERE}
        await client.request("session/load", params)
        assert client.said("user_message_chunk") == "firstanother"
        assert client.said() == "You said firstYou said another"


async def test_rewind_and_fork_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "first")
        await client.prompt(session_id, "second")
        await client.prompt(session_id, "/rewind")
        assert "1. first\n2. second" in client.said()
        await client.prompt(session_id, "/fork 2")
        await client.prompt(session_id, "/rewind 2")
        await client.prompt(session_id, "third")
        assert user_texts(world.asked()) == ["first", "third"]
        listed = (await client.request("session/list", {}))["sessions"]
        assert len(listed) == 2
        (copy,) = {info["sessionId"] for info in listed} - {session_id}
        client.updates.clear()
        params = {"sessionId": copy, "cwd": str(world.project), **ELSEWHERE}
        await client.request("session/load", params)
        assert client.said("user_message_chunk") == "first"
        with pytest.raises(AcpError) as caught:
            await client.prompt(session_id, "/rewind 99")
        assert caught.value.code == -32602


async def test_the_context_is_edited_by_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # F12
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "first")
        await client.prompt(session_id, "second")
        await client.prompt(session_id, "/context")
        listed = client.said().splitlines()
        (line,) = [line for line in listed if line.startswith("1. prompt")]
        assert line.endswith(": first")
        await client.prompt(session_id, "/context leave 1")
        assert "reads anew" in client.said()
        await client.prompt(session_id, "third")
        assert user_texts(world.asked())[-2:] == ["second", "third"]
        assert "first" not in user_texts(world.asked())
        client.updates.clear()
        await client.prompt(session_id, "/context")
        (number,) = [one.split(".")[0] for one in client.said().splitlines() if "left out" in one]
        await client.prompt(session_id, f"/context restore {number}")
        await client.prompt(session_id, "fourth")
        assert user_texts(world.asked())[0] == "first"
        for wrong in ("/context leave 99", "/context undo-compaction"):
            with pytest.raises(AcpError) as caught:
                await client.prompt(session_id, wrong)
            assert caught.value.code == -32602


async def test_a_summary_is_taken_back_by_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # F12
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        session_id = await client.new(world.project)
        first = "first " * 600  # the model echoes: only so is its summary shorter than its answer
        for prompt in (first, "second", "/compact", "third"):
            await client.prompt(session_id, prompt)
        # After the summary, which an echoing model makes of the question for one.
        assert user_texts(world.asked())[1:] == [first, "second", "third"]
        assert first not in str([m for m in world.asked()["messages"] if m["role"] == "assistant"])
        await client.prompt(session_id, "/context undo-compaction")
        assert "reads anew" in client.said()
        await client.prompt(session_id, "fourth")
        assert user_texts(world.asked()) == [first, "second", "third", "fourth"]


async def test_a_fork_begins_at_any_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "first")
        message_id = client.of_kind("agent_message_chunk")[0]["messageId"]
        await client.prompt(session_id, "second")
        params = {"sessionId": session_id, "cwd": str(world.project), **ELSEWHERE}
        meta = {"_meta": {"kode": {"messageId": message_id}}}
        forked = await client.request("session/fork", {**params, **meta})
        await client.prompt(forked["sessionId"], "other")
        assert user_texts(world.asked()) == ["first", "other"]


async def test_a_session_of_one_face_opens_in_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways: here it is the importable face, which has the LSP face's sessions without wire."""
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "over ACP")
    conversations = Conversations(load_settings(_environment(tmp_path)), [tmp_path / "project"])
    session = await conversations.sessions.open(session_id)
    said = session.conversation.path(session.conversation.head)
    assert [message.role for message in said] == ["user", "assistant"]
    await conversations.close()
    async with acp_world(tmp_path, monkeypatch, model=echo()) as world:
        listed = await world.client.request("session/list", {"cwd": str(world.project)})
        assert [info["sessionId"] for info in listed["sessions"]] == [session_id]


def _environment(tmp_path: Path) -> dict[str, str]:
    return {"KODE_HOME": str(tmp_path / "home"), "KIMI_API_KEY": "sk-test"}


async def test_pictures_links_and_resources_reach_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = [
        {"type": "text", "text": "Look"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "resource_link", "uri": "file:///a/notes.md", "name": "notes.md"},
        {"type": "resource", "resource": {"uri": "file:///a/b.py", "text": "unsaved = 1"}},
        {"type": "resource_link", "uri": "https://tracker/7", "name": "Crash on start"},
    ]
    async with acp_world(tmp_path, monkeypatch, [answer(text("Seen."))]) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.request("session/prompt", {"sessionId": session_id, "prompt": prompt})
        asked = str(world.asked()["messages"])
        assert "aGk=" in asked
        assert "notes.md" in asked
        assert "unsaved = 1" in asked
        assert "https://tracker/7 (Crash on start)" in asked
        client.updates.clear()
        params = {"sessionId": session_id, "cwd": str(world.project), **ELSEWHERE}
        await client.request("session/load", params)
        kinds = [u["content"]["type"] for u in client.of_kind("user_message_chunk")]
        assert kinds == ["text", "image", "resource_link", "resource", "resource_link"]
        named = [u["content"].get("name") for u in client.of_kind("user_message_chunk")]
        assert named[2::2] == ["notes.md", "Crash on start"]
        sound = [{"type": "audio", "mimeType": "audio/wav", "data": "aGk="}]
        with pytest.raises(AcpError) as caught:
            await client.request("session/prompt", {"sessionId": session_id, "prompt": sound})
        assert caught.value.code == -32602


ASK = tool_call("ask_user", {"question": "Which?", "choices": ["red", "blue"], "multi": True})


@pytest.mark.parametrize("forms", [True, False])
async def test_the_model_asks_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forms: bool
) -> None:
    capabilities = {"elicitation": {"form": {}}} if forms else {}
    responses = [answer(ASK), answer(text("So."))]
    async with acp_world(tmp_path, monkeypatch, responses, capabilities=capabilities) as world:
        client = world.client
        client.answer_form = lambda _: {"action": "accept", "content": {"answer": ["blue"]}}
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Paint")
        (method, params), *_ = client.asked
        expected = "blue" if forms else "red"
        assert expected in str(world.asked()["messages"][-1])
        if forms:
            assert method == "elicitation/create"
            assert params["requestedSchema"]["properties"]["answer"]["items"]["enum"]
        else:
            assert [option["name"] for option in params["options"]][:2] == ["red", "blue"]


async def test_the_models_own_steps_are_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*states: str) -> Json:
        return {
            "items": [{"text": f"step {at}", "state": state} for at, state in enumerate(states)]
        }

    script = [
        answer(tool_call("update_plan", plan("in_progress", "pending"))),
        answer(tool_call("update_plan", plan("done", "done"))),
        answer(text("Done.")),
    ]
    async with acp_world(tmp_path, monkeypatch, script, files=FILES) as world:
        await world.client.prompt(await world.client.new(world.project), "Go")
        reported = [
            [(entry["content"], entry["status"]) for entry in update["entries"]]
            for update in world.client.of_kind("plan")
        ]
        assert reported == [
            [("step 0", "in_progress"), ("step 1", "pending")],
            [("step 0", "completed"), ("step 1", "completed")],
        ]


async def test_scouts_are_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"title": "Find it", "question": "Where is it?"}]

    def respond(body: Json) -> object:
        tools = {tool["function"]["name"] for tool in body.get("tools", ())}
        if "explore" not in tools:
            report = {"summary": "There.", "findings": []}
            return answer(tool_call("report_findings", report))
        if body["messages"][-1]["role"] == "tool":
            return answer(text("Found."))
        return answer(tool_call("explore", {"tasks": tasks}))

    model = AnsweringModel(respond)  # type: ignore[arg-type]
    async with acp_world(tmp_path, monkeypatch, model=model, files=FILES) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Where?")
        plans = world.client.of_kind("plan")
        assert plans[0]["entries"][0]["content"] == "Find it"
        assert plans[-1]["entries"][0]["status"] == "completed"
