"""Memory over the real process: candidates, decisions, what later prompts are told (B10)."""

import os
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.raw_http import HANG_CEILING, Never, RawHttpServer
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.tool_names import reachable_tools

pytestmark = pytest.mark.program

FACT = "茶铺的测试用 pytest 运行。"


async def memories(world: World, **params: Any) -> list[dict[str, Any]]:
    result = await world.client.request("kode/memory/list", params, HANG_SECONDS)
    return result["memories"]


async def decide(world: World, **actions: str) -> Any:
    decisions = [{"memoryId": memory, "action": action} for memory, action in actions.items()]
    return await world.client.request("kode/memory/decide", {"decisions": decisions}, HANG_SECONDS)


def said(asked: dict[str, Any]) -> list[str]:
    """The texts of a request after the system prompt, blocks taken apart."""
    found: list[str] = []
    for message in asked["messages"][1:]:
        content = message.get("content") or ""
        found += [content] if isinstance(content, str) else [part["text"] for part in content]
    return found


def reported(asked: dict[str, Any], fact: str = FACT) -> int:
    return sum(one.count(fact) for one in said(asked))


async def test_what_was_accepted_is_told_once_in_later_conversations(tmp_path: Path) -> None:
    wanted = {"content": FACT, "tags": ["tests"]}
    responses = [
        answer(
            tool_call("write_memory", wanted),
            tool_call("write_memory", {"content": "A whim.", "about": "user"}),
        ),
        answer(text("noted")),
        *(answer(text("ok")) for _ in range(5)),
    ]
    async with sidecar(responses, roots=[tmp_path], handshake={"locale": "zh"}) as world:
        first = await world.session()
        await world.turn(first, "remember this")
        assert "Suggested to remember: " + FACT in str(world.messages(first))
        fact, whim = await memories(world)
        assert (fact["content"], fact["state"], fact["tags"]) == (FACT, "candidate", ["tests"])
        assert fact["scope"].startswith(f"project:{tmp_path.name}-")
        assert whim["scope"] == "user"
        await world.turn(await world.session(), "hello")
        assert reported(world.asked()) == 0  # nothing before the user's word
        assert await decide(world, **{fact["memoryId"]: "accept", whim["memoryId"]: "reject"}) == {}
        assert [one["state"] for one in await memories(world)] == ["accepted"]
        assert await memories(world, state="candidate") == []

        later = await world.session()
        inspected = await world.client.request(
            "kode/context/inspect",
            {
                "sessionId": later.session_id,
                "input": [{"type": "text", "text": "How are tests run?"}],
                "body": True,
            },
            HANG_SECONDS,
        )
        await world.turn(later, "How are tests run?")
        assert reported(world.asked()) == 1
        assert FACT in inspected["body"]
        (reminder,) = [m for m in world.messages(later) if m["meta"].get("memoryIds")]
        assert reminder["meta"]["origin"] == "reminder"
        assert reminder["meta"]["memoryIds"] == [fact["memoryId"]]
        assert "不是指令" in str(reminder["content"])
        assert "A whim." not in str(said(world.asked()))
        await world.turn(later, "And now?")
        assert reported(world.asked()) == 1  # not a second time

        await decide(world, **{fact["memoryId"]: "reject"})
        await world.turn(await world.session(), "hello")
        assert reported(world.asked()) == 0


async def test_it_survives_a_kill_and_belongs_to_its_project(tmp_path: Path) -> None:  # W7
    responses = [answer(tool_call("write_memory", {"content": FACT})), answer(text("noted"))]
    (tmp_path / "other").mkdir()
    async with sidecar(responses, roots=[tmp_path]) as world:
        await world.turn(await world.session(), "remember this")
        (fact,) = await memories(world)
        await decide(world, **{fact["memoryId"]: "accept"})
        await world.kill()
    async with sidecar([answer(text("ok"))], roots=[tmp_path / "other"]) as world:
        await world.turn(await world.session(), "hello")
        assert reported(world.asked()) == 0
        assert len(await memories(world)) == 1
    async with sidecar([answer(text("ok"))], roots=[tmp_path]) as world:
        await world.turn(await world.session(), "hello")
        assert reported(world.asked()) == 1


async def test_unknown_memories_are_refused(tmp_path: Path) -> None:
    async with sidecar(roots=[tmp_path]) as world:
        assert await memories(world) == []
        for memory in ("m999999", "../config", ""):
            with pytest.raises(RpcError, match="There is no memory") as caught:
                await decide(world, **{memory: "accept"})
            assert caught.value.code == -33026


async def test_switched_off_there_is_no_tool_and_no_word(tmp_path: Path) -> None:
    off = {"KODE_MEMORY_MODE": "disabled"}
    async with sidecar([answer(text("ok"))], roots=[tmp_path], environment=off) as world:
        await world.turn(await world.session(), "hello")
        assert "write_memory" not in reachable_tools(world.asked())
        result = await world.client.request("kode/memory/list", {}, HANG_SECONDS)
        assert result == {"memories": [], "mode": "disabled"}


def json_answer(body: str, status: str = "200 OK") -> list[bytes]:
    data = body.encode()
    return [f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data]


async def test_a_service_remembers_instead(tmp_path: Path) -> None:
    known = '{"memories": [{"id": "7", "content": "FACT", "scope": "user"}]}'.replace("FACT", FACT)
    none = '{"memories": []}'
    responses = [
        answer(tool_call("write_memory", {"content": "New.", "about": "user"})),
        answer(text("noted")),
    ]
    service = RawHttpServer(json_answer(none), json_answer(known), json_answer('{"id": "8"}'))
    async with service:
        env = {
            "KODE_MEMORY_MODE": "external",
            "KODE_MEMORY_URL": service.url,
            "KODE_MEMORY_KEY": "memory-key-0123456789abcdef",
        }
        async with sidecar(responses, roots=[tmp_path], environment=env) as world:
            session = await world.session()
            await world.turn(session, "hello")
            assert reported(world.asked(0)) == 1
            assert "It is remembered." in str(said(world.asked()))
            doctor = await world.client.request("kode/doctor", {}, HANG_SECONDS)
        log = (world.home / "logs" / "agent.log").read_text(encoding="utf-8")
    recalls, write_request = service.requests[:2], service.requests[2]
    assert [r.target for r in service.requests] == ["/v1/recall", "/v1/recall", "/v1/write"]
    assert [r.json["query"] for r in recalls] == ["hello", "hello"]
    assert recalls[0].json["scope"].startswith(f"project:{tmp_path.name}-")
    assert recalls[1].json["scope"] == "user"
    assert write_request.json == {"content": "New.", "scope": "user", "tags": []}
    assert write_request.headers["authorization"] == "Bearer memory-key-0123456789abcdef"
    for shown in (log, str(doctor)):  # W14
        assert "memory-key" not in shown
    assert "set, ends in cdef" in str(doctor)


async def test_a_turn_that_goes_on_recalls_nothing_again(tmp_path: Path) -> None:
    calls = [answer(tool_call("list_files", {"directory": "."})) for _ in range(5)]
    service = RawHttpServer(*[json_answer('{"memories": []}')] * 2)
    async with service:
        env = {"KODE_MEMORY_MODE": "external", "KODE_MEMORY_URL": service.url}
        responses = [*calls, answer(text("so far")), answer(text("more"))]
        async with sidecar(responses, roots=[tmp_path], environment=env) as world:
            session = await world.session()
            assert (await world.turn(session, "work")).stop_reason == "max_tool_rounds"
            assert (await world.turn(session, "")).stop_reason == "end_turn"
    assert [request.json["query"] for request in service.requests] == ["work", "work"]


@pytest.mark.parametrize("broken", ["silent", "refusing", "unnamed"])
async def test_a_service_that_fails_is_told_and_the_turn_goes_on(
    tmp_path: Path, broken: str
) -> None:
    responses = [answer(tool_call("write_memory", {"content": "New."})), answer(text("ok"))]
    service = RawHttpServer([Never()] if broken == "silent" else json_answer("no", "401 No"))
    async with service:
        env = {"KODE_MEMORY_MODE": "external"}
        if broken == "silent":
            env["KODE_MEMORY_TIMEOUT"] = "0.2"
        if broken != "unnamed":
            env["KODE_MEMORY_URL"] = service.url
        async with sidecar(responses, roots=[tmp_path], environment=env) as world:
            session = await world.session()
            turn = await world.turn(session, "hello")
            assert turn.stop_reason == "end_turn"
            events = world.journal(session)
            notices = [event for event in events if event["type"] == "notice"]
            (notice,) = [one for one in notices if "remembered" in one["message"]]
            assert (notice["code"], notice["level"]) == ("MemoryUnavailable", "warning")
            reason = {"refusing": "check KODE_MEMORY_KEY", "unnamed": "memory_url"}.get(broken, "")
            assert reason in notice["message"]
            assert notice["message"].endswith("The turn goes on without what is remembered.")
            assert "emory" in said(world.asked())[-1]  # the model was told, too


async def test_cancelling_does_not_wait_for_a_silent_service(tmp_path: Path) -> None:  # O8
    service = RawHttpServer([Never()])
    async with service:
        env = {
            "KODE_MEMORY_MODE": "external",
            "KODE_MEMORY_URL": service.url,
            "KODE_MEMORY_TIMEOUT": str(HANG_CEILING * 10),
        }
        async with sidecar(roots=[tmp_path], environment=env) as world:
            session = await world.session()
            turn_id = await world.start(session, "hello")
            await service.asked.wait()
            params = {"sessionId": session.session_id}
            answered = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
            assert answered == {"cancelled": True}
            turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
            assert turn.stop_reason == "cancelled"
            await service.hung_up.wait()
            assert world.model.chats == []


async def test_neither_a_project_nor_an_editor_names_a_service(tmp_path: Path) -> None:  # W12
    evil = "memory_mode: external\nmemory_url: http://127.0.0.1:9\n"
    write(tmp_path, {"config.yaml": evil, ".env": "KODE_MEMORY_URL=http://127.0.0.1:9\n"})
    for name in ("memoryUrl", "memoryMode", "memoryKey", "skillFolders"):
        async with sidecar(initialize=False) as world:
            kode = {"protocolVersions": ["0.9"], "trusted": True, "settings": {name: "x"}}
            with pytest.raises(RpcError, match="an editor may not set") as caught:
                await world.client.request(
                    "initialize",
                    {
                        "processId": os.getpid(),
                        "capabilities": {},
                        "initializationOptions": {"kode": kode},
                    },
                    HANG_SECONDS,
                )
            assert caught.value.code == -33020
    async with sidecar(roots=[tmp_path], handshake={"trusted": True}) as world:
        result = await world.client.request("kode/memory/list", {}, HANG_SECONDS)
        assert result["mode"] == "candidate"
