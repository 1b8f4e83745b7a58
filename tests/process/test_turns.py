"""A whole turn over real stdio, from the prompt to the records."""

import asyncio
import json
import socket
from pathlib import Path
from uuid import UUID

import pytest

from kode_sidecar.devtools.demo.model_server import Recording
from kode_sidecar.terminal.client.connection import RpcError
from tests.conftest import FULL
from tests.support.model_script import answer, failure, hold, text, thinking, tool_call
from tests.support.normal_form import normal_form, notifications
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.tool_names import reachable_tools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\nprint('bye')\n")
    (folder / "notes.txt").write_bytes("你好，世界\n".encode("gbk"))
    return folder


async def test_text_streams_from_prompt_to_screen(project: Path) -> None:  # E1 E2 C2 O2
    responses = [answer(thinking("let me think"), text("Hello 你好 😀, world"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(title="first")
        turn = await world.turn(session, "hi")
        assert turn.stop_reason == "end_turn"
        user, assistant = session.messages.values()
        assert (user.role, user.text) == ("user", "hi")
        assert [b.type for b in assistant.blocks] == ["thinking", "text"]
        assert assistant.text == "Hello 你好 😀, world"
        assert turn.result["usage"]["totalTokens"] == 120


async def test_the_records_say_what_was_said_and_what_was_sent(project: Path) -> None:  # A7 O3
    responses = [answer(tool_call("read_file", {"path": "app.py"})), answer(text("It prints."))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "what does app.py do?\nsecond line")
        messages = world.messages(session)
        assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"]
        assert messages[0]["conversation_id"] == session.session_id
        assert messages[1]["content"][0]["tool_use_id"] == "read_file:0"
        assert [m["parent_id"] for m in messages[1:]] == [m["id"] for m in messages[:-1]]
        assert [m["depth"] for m in messages] == [0, 1, 2, 3]
        sent = [event for event in world.events() if "seq" in event]
        assert world.journal(session) == sent
        assert [event["seq"] for event in sent] == list(range(1, len(sent) + 1))
        # A turn's end waits for the messages and the journal, from which this file is mended.
        assert await world.client.close() == 0
        meta = json.loads((world.folder(session) / "meta.json").read_bytes())
        assert meta["title"] == "what does app.py do?"
        assert meta["meta"]["roots"] == [project.as_uri()]


async def test_ids_of_messages_are_uuids_on_disk_and_wire(project: Path) -> None:  # C1
    async with sidecar([answer(text("Hi."))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "Hello")
        stored = [str(one["id"]) for one in world.messages(session)]
        streamed = [one["messageId"] for one in world.events() if one["type"] == "message.added"]
    assert streamed == stored
    assert [str(UUID(one)) for one in stored] == stored


async def test_half_a_character_in_a_call_poisons_nothing(project: Path) -> None:  # W10
    odd = "half \ud83d and \udc00"
    calls = [
        tool_call("read_file", {"path": odd}),
        tool_call("read_file", json.dumps({"path": odd})),
        tool_call("search_code", json.dumps({"query": odd, "\ud83d": 1})),
        tool_call("propose_file", {"action": "create", "path": "n.py", "content": odd}),
        tool_call("no \udc00 tool", {"x": [odd]}),
    ]
    responses = [answer(*calls), answer(text("So.")), answer(text("Fine."))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        assert (await world.turn(session, "go")).stop_reason == "end_turn"
        assert (await world.turn(session, "and on")).stop_reason == "end_turn"
    async with sidecar([answer(text("Again."))], roots=[project]) as world:
        again = await world.watch.attach(session.session_id)
        assert (await world.turn(again, "after all")).stop_reason == "end_turn"
        assert world.messages(again)[-1]["content"][0]["text"] == "Again."


async def test_reads_searches_and_lists_see_the_open_text_first(project: Path) -> None:  # A8
    calls = [
        tool_call("read_file", {"path": "app.py"}),
        tool_call("search_code", {"query": "unsaved"}),
        tool_call("list_files", {"directory": "."}),
        tool_call("search_code", {"query": "世界"}),
    ]
    async with sidecar([answer(*calls), answer(text("ok"))], roots=[project]) as world:
        world.editor.open(project / "app.py", "print('unsaved')\n")
        world.editor.open(project / "new.py", "fresh = 1\n")
        session = await world.session()
        await world.turn(session, "look")
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "unsaved" in results[0]
        assert "open buffer" in results[0]
        assert "app.py:1" in results[1]
        assert "new.py" in results[2]
        assert "notes.txt:1" in results[3]


async def test_reasoning_goes_back_and_no_pinned_field_is_sent(project: Path) -> None:
    responses = [
        answer(thinking("hm"), tool_call("list_files", {"directory": "."})),
        answer(text("done")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "list")
        asked = world.asked()
        assert asked["messages"][2]["reasoning_content"] == "hm"
        assert not {"temperature", "top_p", "n", "presence_penalty"} & set(asked)
        assert reachable_tools(asked) == [
            "read_file",
            "list_files",
            "search_code",
            "propose_edit",
            "propose_file",
            "explore",
            "ask_user",
            "run_command",
            "find_tools",
            "write_memory",
            "command_output",
            "command_wait",
            "command_stop",
            "web_fetch",
        ]


async def test_a_retired_model_is_passed_over_and_said_once(project: Path) -> None:  # A2
    recording = Recording((answer(text("one")), answer(text("two"))), models=("kimi-k2.6",))
    async with sidecar(recording=recording, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "a")
        await world.turn(session, "b")
        notices = [n for n in session.notices if "kimi-k3.1-pro" in n["message"]]
        assert len(notices) == 1
        assert "kimi-k2.6" in notices[0]["message"]
        refused = [r for r in world.model.requests if r.status == 404]
        assert len(refused) == 1


async def test_five_rounds_then_a_summary_then_go_on(project: Path) -> None:  # A15
    calls = [answer(tool_call("list_files", {"directory": "."})) for _ in range(5)]
    responses = [*calls, answer(text("so far")), answer(text("more"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn = await world.turn(session, "work")
        assert turn.stop_reason == "max_tool_rounds"
        assert world.asked()["tool_choice"] == "none"
        assert world.asked()["tools"] == world.asked(0)["tools"]
        again = await world.turn(session, "")
        assert again.stop_reason == "end_turn"
        with pytest.raises(RpcError) as caught:
            await world.start(session, "")
        assert caught.value.code == -32602


async def test_without_a_key_a_turn_says_what_to_set(project: Path) -> None:  # A3
    async with sidecar(roots=[project], environment={"KIMI_API_KEY": None}) as world:
        session = await world.session()
        with pytest.raises(RpcError) as caught:
            await world.start(session, "hi")
        assert caught.value.code == -33014
        assert "KIMI_API_KEY" in caught.value.message
        assert caught.value.data["code"] == "AuthRequired"
        assert (await world.client.request("kode/ping", {"echo": 1}, HANG_SECONDS))["echo"] == 1


async def test_a_refused_key_is_told_and_the_conversation_goes_on(project: Path) -> None:  # C8
    responses = [
        failure(401, "invalid_authentication_error", "Invalid Authentication"),
        answer(text("now it works")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn = await world.turn(session, "hi")
        assert turn.stop_reason == "error"
        assert turn.result["error"]["code"] == "AuthRequired"
        assert "sk-test" not in json.dumps(turn.result)
        assert world.messages(session)[-1]["is_api_error_message"] is True
        await world.turn(session, "again")
        roles = [m["role"] for m in world.asked()["messages"]]
        assert roles == ["system", "user", "user"]


async def test_the_system_proxy_is_ignored(project: Path) -> None:  # A3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: a proxy that refuses
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        proxies = {"HTTP_PROXY": dead, "http_proxy": dead, "ALL_PROXY": dead, "HTTPS_PROXY": dead}
        responses = [answer(text("direct"))]
        async with sidecar(responses, roots=[project], environment=proxies) as world:
            session = await world.session()
            assert (await world.turn(session, "hi")).stop_reason == "end_turn"


async def test_cancel_in_mid_stream(project: Path) -> None:  # O8
    responses = [answer(text("one two "), hold("gate"), text("three")), answer(text("after"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "count")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        await world.watch.until(
            lambda: any("two" in m.text for m in session.messages.values()), HANG_SECONDS
        )
        params = {"sessionId": session.session_id}
        answer_ = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        assert answer_ == {"cancelled": True}
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.chats[0].finished.wait()
        assert world.model.chats[0].outcome == "client_gone"
        answer_ = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        assert answer_ == {"cancelled": False}
        assert (await world.turn(session, "go on")).stop_reason == "end_turn"


async def test_one_turn_at_a_time_and_the_same_key_is_the_same_turn(project: Path) -> None:
    responses = [answer(text("a "), hold("gate"), text("b"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        first = world.client.start(
            "kode/turn/start",
            {
                "sessionId": session.session_id,
                "input": [{"type": "text", "text": "x"}],
                "clientTurnKey": "k",
            },
        )
        again = {
            "sessionId": session.session_id,
            "input": [{"type": "text", "text": "x"}],
            "clientTurnKey": "k",
        }
        second = await world.client.request("kode/turn/start", again, HANG_SECONDS)
        started = await first.answer
        assert second == {**started, "deduplicated": True}
        with pytest.raises(RpcError) as caught:
            await world.start(session, "another")
        assert caught.value.code == -33003
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
        assert len(world.model.chats) == 1


async def test_a_repeated_key_waits_for_a_start_that_reads_the_history(project: Path) -> None:
    kept = {"KODE_STORAGE": "sqlite"}  # of what an earlier process left, blocks are read when due
    async with sidecar([answer(text("one"))], roots=[project], environment=kept) as world:
        session = await world.session()
        await world.turn(session, "first")
        seq = world.journal(session)[-1]["seq"]
    async with sidecar([answer(text("two"))], roots=[project], environment=kept) as world:
        where = {"sessionId": session.session_id}
        await world.client.request("kode/session/attach", {**where, "afterSeq": seq}, HANG_SECONDS)
        prompt = {**where, "input": [{"type": "text", "text": "x"}], "clientTurnKey": "k"}
        starts = [world.client.start("kode/turn/start", prompt) for _ in range(3)]
        async with asyncio.timeout(HANG_SECONDS):
            started, *repeated = [await one.answer for one in starts]
        assert repeated == [{**started, "deduplicated": True}] * 2
        await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
        assert len(world.model.chats) == 1


async def test_an_edited_prompt_is_a_sibling_with_the_next_version(project: Path) -> None:  # A4
    responses = [answer(text("one")), answer(text("two"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "first")
        await world.turn(session, "first, edited", parentId=None)
        prompts = [m for m in world.messages(session) if m["role"] == "user"]
        assert [(p.get("parent_id"), p["version"]) for p in prompts] == [(None, 1), (None, 2)]
        assert [m["role"] for m in world.asked()["messages"]] == ["system", "user"]
        with pytest.raises(RpcError) as caught:
            await world.start(session, "x", parentId="no-such-message")
        assert caught.value.code == -33002


async def _replay(project: Path, home: str) -> list[dict[str, object]]:
    responses = [
        answer(
            thinking("I look at both."),
            text("先看一下。"),
            tool_call("read_file", {"path": "app.py"}),
            tool_call("search_code", {"query": "print"}),
            tool_call("list_files", {"directory": "."}),
        ),
        answer(
            tool_call(
                "propose_edit",
                {"path": "app.py", "edits": [{"old": "print('hi')", "new": "print('hello')"}]},
            )
        ),
        answer(text("Proposed.")),
    ]
    own = {"KODE_HOME": str(project.parent / home)}
    async with sidecar(responses, roots=[project], environment=own) as world:
        world.editor.open(project / "app.py", "print('hi')\nprint('open')\n")
        session = await world.session()
        await world.turn(session, "edit it")
        decided = await world.decide(only_change_set(session))
        assert decided["verified"] is True
        stream = list(notifications(world.client.frames))
        places = {project.as_uri(): "ROOT", world.model.base_url.split("/")[2]: "HOST"}
        return normal_form(stream, session.session_id, places)


async def test_a_recorded_turn_replays_identically(project: Path) -> None:
    # A home each: a host of an earlier round may have had the same port.
    rounds = 10 if FULL else 3
    first, *others = [await _replay(project, f"home-{number}") for number in range(rounds)]
    assert len(first) > 20
    for other in others:
        assert other == first


async def test_bad_requests_are_typed_errors_and_the_process_lives_on(project: Path) -> None:
    async def refused(world: World, method: str, params: object) -> RpcError:
        with pytest.raises(RpcError) as caught:
            await world.client.request(method, params, HANG_SECONDS)
        return caught.value

    async with sidecar(roots=[project]) as world:
        session = await world.session()
        error = await refused(world, "kode/session/new", {"mode": "yolo"})
        assert (error.code, "$.mode" in error.message) == (-32602, True)
        error = await refused(world, "kode/session/new", {"agent": "nobody"})
        assert (error.code, "ide-helper" in error.message) == (-33020, True)
        error = await refused(world, "kode/turn/start", {"sessionId": "no", "input": []})
        assert error.code == -33001
        error = await refused(world, "kode/changeSet/decide", {"changeSetId": "no"})
        assert error.code == -33024
        block = {"type": "tool_use", "toolUseId": "x", "name": "y"}
        params = {"sessionId": session.session_id, "input": [block]}
        error = await refused(world, "kode/turn/start", params)
        assert (error.code, "$.input[0]" in error.message) == (-32602, True)
        assert await world.client.request("kode/ping", None, HANG_SECONDS) == {"echo": None}


async def test_doctor_names_every_setting_and_no_key(project: Path) -> None:  # A11
    async with sidecar(roots=[project], handshake={"settings": {"mode": "auto"}}) as world:
        report = await world.client.request("kode/doctor", {}, HANG_SECONDS)
        sources = {s["name"]: (s["value"], s["source"]) for s in report["settings"]}
        assert sources["mode"] == ("auto", "editor")
        assert sources["base_url"][1].startswith("environment")
        assert "sk-test-key-000" not in json.dumps(report)
        command: dict[str, object] = {"command": "kode.doctor", "arguments": []}
        plain = await world.client.request("workspace/executeCommand", command, HANG_SECONDS)
        assert plain["settings"] == report["settings"]


async def test_steering_reaches_the_model_before_its_next_step(project: Path) -> None:  # O8
    responses = [
        answer(text("looking"), hold("gate"), tool_call("list_files", {"directory": "."})),
        answer(text("as you wish")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "look")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        word = {"input": [{"type": "text", "text": "only *.py"}]}
        params = {"sessionId": session.session_id, "turnId": turn_id, **word}
        wrong = {**params, "turnId": "another"}
        with pytest.raises(RpcError) as caught:
            await world.client.request("kode/turn/steer", wrong, HANG_SECONDS)
        assert caught.value.code == -33005
        assert await world.client.request("kode/turn/steer", params, HANG_SECONDS) == {}
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert [m["role"] for m in world.asked()["messages"]][-2:] == ["tool", "user"]
        assert world.asked()["messages"][-1]["content"] == "only *.py"
        with pytest.raises(RpcError) as caught:
            await world.client.request("kode/turn/steer", params, HANG_SECONDS)
        assert caught.value.code == -33004


async def test_a_cancelled_turn_keeps_what_the_user_said_to_it(project: Path) -> None:
    responses = [answer(text("a"), hold("gate"), text("b")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        word = {"input": [{"type": "text", "text": "stop at b"}]}
        params = {"sessionId": session.session_id, "turnId": turn_id}
        await world.client.request("kode/turn/steer", {**params, **word}, HANG_SECONDS)
        await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        await world.turn(session, "go on")
        said = [m["content"] for m in world.asked()["messages"] if m["role"] == "user"]
        assert said == ["go", "stop at b", "go on"]


async def test_the_model_gets_the_newest_messages_of_the_path(project: Path) -> None:  # A5
    responses = [answer(text(f"answer {n}")) for n in range(4)]
    window = {"KODE_WINDOW_MESSAGES": "4"}
    async with sidecar(responses, roots=[project], environment=window) as world:
        session = await world.session()
        for n in range(4):
            await world.turn(session, f"prompt {n}")
        said = [m["content"] for m in world.asked()["messages"][1:]]
        assert said == ["prompt 1", "answer 1", "prompt 2", "answer 2", "prompt 3"]
        coder = await world.session(agent="coder")
        assert coder.session_id != session.session_id
