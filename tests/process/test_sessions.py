"""Sessions on disk, of this process and of earlier ones: list, get, update, delete, messages."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import Recording
from kode_sidecar.terminal.client.connection import RpcError
from protocol.export import SCHEMA_FILE, generate
from tests.support.fsync_gate import with_faults
from tests.support.kept_messages import write_records
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

CHANGED = "kode/sessions/changed"

Json = dict[str, Any]
any_storage = pytest.mark.usefixtures("a_storage")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\n")
    return folder


async def ask(world: World, method: str, **params: Any) -> Json:
    return await world.client.request(f"kode/{method}", params, HANG_SECONDS)


async def refused(world: World, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await ask(world, method, **params)
    return caught.value


def titles(listed: Json) -> list[str]:
    return [session["title"] for session in listed["sessions"]]


async def pages(world: World, method: str, member: str, **params: Any) -> list[Json]:
    """All pages, one after the other."""
    found: list[Json] = []
    cursor: Json = {}
    while True:
        page = await ask(world, method, **params, **cursor)
        assert len(page[member]) <= params["limit"]
        found += page[member]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


# A7
@any_storage
async def test_sessions_of_the_open_folder_in_pages_newest_first(
    project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with sidecar([answer(text("hi"))], roots=[other]) as world:
        await world.session(title="elsewhere")
    async with sidecar([answer(text("hi"))], roots=[project]) as world:
        first = await world.session(title="Erste")
        for number in range(4):
            await world.session(title=f"n{number}")
        await world.turn(first, "hello")
    async with sidecar(roots=[project]) as world:  # a later process
        listed = await ask(world, "session/list")
        assert "nextCursor" not in listed
        times = [session["updatedAt"] for session in listed["sessions"]]
        assert times == sorted(times, reverse=True)
        assert set(titles(listed)) == {"Erste", "n0", "n1", "n2", "n3"}
        assert titles(listed)[0] == "Erste"
        paged = await pages(world, "session/list", "sessions", limit=2)
        assert paged == listed["sessions"]
        assert len((await ask(world, "session/list", all=True))["sessions"]) == 6
        assert titles(await ask(world, "session/list", query="ERST")) == ["Erste"]
        assert (await refused(world, "session/list", limit=0)).data["details"] == {
            "path": "$.limit"
        }
        assert (await refused(world, "session/list", cursor="x")).code == -32602
    async with sidecar() as world:  # no folder is open: nothing belongs to it
        assert titles(await ask(world, "session/list")) == []


# A7: a damaged head or message hides no session
async def test_foreign_and_damaged_sessions_are_listed_and_read(project: Path) -> None:
    async with sidecar(roots=[project]) as world:
        folder = world.home / "conversations" / "older-1"
        folder.mkdir(parents=True)
        meta = {"id": "older-1", "title": "老", "meta": {"projectRoot": project.as_uri()}}
        (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        record = {"id": "m1", "conversation_id": "older-1", "role": "user", "content": "hi"}
        lines = [json.dumps({**record, "created_at": "2020-01-01T00:00:00Z"}), "{torn"]
        (folder / "messages.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (world.home / "conversations" / "not a session").mkdir()
        (only,) = (await ask(world, "session/list"))["sessions"]
        assert (only["sessionId"], only["updatedAt"]) == ("older-1", "2020-01-01T00:00:00Z")
        (message,) = (await ask(world, "message/list", sessionId="older-1"))["messages"]
        assert message["content"] == [{"type": "text", "text": "hi"}]
        for method in ("get", "delete"):
            for name in ("nobody", "../conversations/older-1", "con"):
                assert (await refused(world, f"session/{method}", sessionId=name)).code == -33001


@any_storage
async def test_a_session_is_shown_with_branches_and_totals(project: Path) -> None:  # A4
    responses = [answer(text(str(number))) for number in range(3)]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(mode="auto", meta={"pinned": True})
        empty = await ask(world, "session/get", sessionId=session.session_id)
        assert (empty["heads"], empty["messages"]) == ([], 0)
        await world.turn(session, "one")
        await world.turn(session, "two")
        await world.turn(session, "other", parentId=None)
        live = await ask(world, "session/get", sessionId=session.session_id)
    async with sidecar(roots=[project]) as world:
        stored = await ask(world, "session/get", sessionId=session.session_id)
        assert stored == live
        assert (len(stored["heads"]), stored["messages"]) == (2, 6)
        assert stored["headId"] == stored["heads"][1]
        assert stored["usage"]["totalTokens"] == 360
        shown = stored["session"]
        assert (shown["mode"], shown["title"], shown["agent"]) == ("auto", "one", "ide-helper")
        assert shown["meta"] == {
            "roots": [project.as_uri()],
            "projectRoot": project.as_uri(),
            "pinned": True,
        }
        branch = await pages(
            world, "message/list", "messages", sessionId=session.session_id, limit=1
        )
        assert [m["content"][0]["text"] for m in branch] == ["other", "2"]
        params = {"sessionId": session.session_id, "leafId": stored["heads"][0]}
        branch = (await ask(world, "message/list", **params))["messages"]
        assert [m["content"][0]["text"] for m in branch] == ["one", "0", "two", "1"]
        params = {"sessionId": session.session_id, "all": True}
        assert await pages(world, "message/list", "messages", limit=4, **params) == [
            *branch,
            *(await ask(world, "message/list", **params))["messages"][4:],
        ]
        params["cursor"] = "gone"
        assert (await refused(world, "message/list", **params)).code == -33002


async def check_update(world: World, session: SessionFold, project: Path) -> None:
    """Absent is unchanged, null is cleared; told as an event, and in the journal before that."""
    session_id = session.session_id
    before = len(world.journal(session))
    assert await ask(world, "session/update", sessionId=session_id) == {}
    assert len(world.journal(session)) == before
    changes = {"title": "新", "mode": "plan", "model": "kimi-k3", "meta": {"a": 1}}
    assert await ask(world, "session/update", sessionId=session_id, **changes) == {}
    meta = json.loads((world.folder(session) / "meta.json").read_bytes())  # saved by now
    assert (meta["title"], meta["mode"], meta["model"]) == ("新", "plan", "kimi-k3")
    places = {"roots": [project.as_uri()], "projectRoot": project.as_uri()}
    assert meta["meta"] == {**places, "a": 1}
    event = world.journal(session)[before]
    assert (event["type"], event["seq"]) == ("session.updated", before + 1)
    assert {name: event[name] for name in changes} == {**changes, "meta": meta["meta"]}
    await ask(world, "session/update", sessionId=session_id, mode=None, model=None, meta=None)
    shown = (await ask(world, "session/get", sessionId=session_id))["session"]
    assert (shown["title"], shown["mode"], shown["model"]) == ("新", "review", "ide-chat")
    assert shown["meta"] == places
    event = world.journal(session)[before + 1]
    assert (event["mode"], event["model"], "title" in event) == ("review", "ide-chat", False)
    await world.watch.until(lambda: session.seq == before + 2, HANG_SECONDS)
    error = await refused(world, "session/update", sessionId=session_id, mode="yolo")
    assert (error.code, "$.mode" in error.message) == (-32602, True)


@any_storage
async def test_updates_of_sessions_here_and_of_earlier_processes(project: Path) -> None:  # O1 O3
    async with sidecar([answer(text("hi")), answer(text("ho"))], roots=[project]) as world:
        session = await world.session(title="old")
        await check_update(world, session, project)
        await ask(world, "session/update", sessionId=session.session_id, mode="plan", title=None)
        await world.turn(session, "named anew")
        assert "planning only" in world.asked()["messages"][0]["content"]
        shown = (await ask(world, "session/get", sessionId=session.session_id))["session"]
        assert (shown["title"], shown["mode"]) == ("named anew", "plan")
        await ask(world, "session/update", sessionId=session.session_id, mode=None)
        await world.watch.until(lambda: session.seq == len(world.journal(session)), HANG_SECONDS)
        seq = session.seq
    async with sidecar(roots=[project]) as world:
        assert seq == len(world.journal(session))
        again = world.watch.session(session.session_id, seq)
        await check_update(world, again, project)
        error = await refused(world, "turn/start", sessionId=session.session_id, input=[])
        assert error.code == -33001


@any_storage
async def test_deleting_a_session_ends_its_turn_and_leaves_nothing(project: Path) -> None:
    responses = [answer(text("a"), hold("gate"), text("b"))]
    async with sidecar(responses, roots=[project]) as world:
        session, fresh = await world.session(title="x"), await world.session(title="fresh")
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        listed = (await ask(world, "session/list"))["sessions"]
        assert {one["title"]: one.get("activeTurnId") for one in listed} == {
            "x": turn_id,
            "fresh": None,
        }
        for gone in (session, fresh):
            assert await ask(world, "session/delete", sessionId=gone.session_id) == {}
            assert not world.folder(gone).exists()
        assert session.turns[turn_id].stop_reason == "cancelled"
        assert (await ask(world, "session/list"))["sessions"] == []
        for method in ("session/get", "session/delete", "message/list", "turn/cancel"):
            error = await refused(world, method, sessionId=session.session_id)
            assert error.code == -33001
        kept = await world.session()
    async with sidecar(roots=[project]) as world:
        await ask(world, "session/delete", sessionId=kept.session_id)
        assert list((world.home / "conversations").iterdir()) == []


async def read_blob(world: World, blob: Json, length: int) -> str:
    found, offset = "", 0
    while True:
        page = await ask(world, "blob/read", ref=blob["ref"], offset=offset, length=length)
        assert page["bytes"] == blob["bytes"]
        found += page["text"]
        if "nextOffset" not in page:
            return found
        offset = page["nextOffset"]
        assert offset == len(found.encode())


@any_storage
async def test_large_texts_travel_as_their_head_and_are_kept_whole(project: Path) -> None:
    (project / "long.txt").write_text("茶铺 🍵 " * 400, encoding="utf-8")
    call = tool_call("read_file", {"path": "long.txt"})
    options = {"delivery": {"maxInlineBytes": 2000}}
    responses = [answer(call, hold("gate")), answer(text("ok")), answer(text("ok"))]
    async with sidecar(responses, roots=[project], handshake={"kode_options": options}) as world:
        session = await world.session()
        turn_id = await world.start(session, "read")
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        await world.turn(session, "长" * 1000)
        shown = [m.message() for m in world.client.frames if m.direction == "in"]
        (reported,) = [
            event["block"]
            for frame in shown
            if frame.get("method") == "kode/event"
            for event in frame["params"]["events"]
            if event["type"] == "block.completed" and event["block"]["type"] == "tool_result"
        ]
        (short,) = reported["content"]
        # The records and the model have it whole.
        (whole,) = world.messages(session)[2]["content"][0]["content"]
        assert [m["content"] for m in world.asked(1)["messages"] if m["role"] == "tool"] == [
            whole["text"]
        ]
        journalled = [e for e in world.journal(session) if e["type"] == "block.completed"]
        assert [
            e["block"]["content"] for e in journalled if e["block"]["id"] == reported["id"]
        ] == [[whole]]
        data = whole["text"].encode()
        assert (short["blob"]["bytes"], short["blob"]["sha256"]) == (
            len(data),
            hashlib.sha256(data).hexdigest(),
        )
        assert whole["text"].startswith(short["text"])
        assert 1000 < len(short["text"].encode()) <= 1024
        for length in (1, 1001, 1_000_000):
            if length > 1 or len(data) < 2000:
                assert await read_blob(world, short["blob"], length) == whole["text"]
        listed = (await ask(world, "message/list", sessionId=session.session_id))["messages"]
        assert listed[2]["content"][0]["content"] == [short]
        prompt = listed[4]["content"][0]
        assert await read_blob(world, prompt["blob"], 4096) == "长" * 1000
        ref = prompt["blob"]["ref"]
        assert (await ask(world, "blob/read", ref=ref, length=1))["text"] == "长"
        assert (await refused(world, "blob/read", ref=ref, offset=1)).data["details"] == {
            "path": "$.offset"
        }
        assert (await refused(world, "blob/read", ref=ref, offset=3001)).code == -32602
        assert (await refused(world, "blob/read", ref=ref, length=0)).code == -32602
        session_id = session.session_id
        for bad in ("", "x", "../../x.y.0", f"{session_id}.b.0", f"{session_id}..0", "a.b.c"):
            assert (await refused(world, "blob/read", ref=bad)).code == -33025
        prompted = [{"type": "text", "text": "x", "blob": prompt["blob"]}]
        turn = await ask(world, "turn/start", sessionId=session_id, input=prompted)
        await world.watch.turn_end(session_id, turn["turnId"], HANG_SECONDS)
        assert "blob" not in world.messages(session)[-2]["content"][0]
    write_records(world.folder(session), [])
    async with sidecar(roots=[project]) as world:  # a message that never became whole
        assert await read_blob(world, short["blob"], 999) == whole["text"]


async def test_models_are_listed_with_what_is_known_of_them(project: Path) -> None:  # A2
    recording = Recording((answer(text("hi")),), models=("kimi-k2.6", "kimi-k9"))
    async with sidecar(recording=recording, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "hi")
        listed = await ask(world, "models/list")
        kimi = listed["providers"][0]
        known, unknown, *rest = kimi["models"]
        assert known == {
            "name": "kimi/kimi-k2.6",
            "offered": True,
            "contextWindow": 262144,
            "images": True,
            "reasoning": True,
            "efforts": ["off", "high"],
            "price": {"input": 0.95, "cached": 0.16, "output": 4.0, "currency": "USD"},
        }
        assert (unknown["name"], unknown["contextWindow"]) == ("kimi/kimi-k9", 262144)
        assert not any(model.get("offered") for model in rest)
        others = {row["name"]: row["error"]["code"] for row in listed["providers"][1:]}
        assert others == dict.fromkeys(("kimi-intl", "openai", "anthropic"), "AuthRequired")
        (logical,) = listed["logical"]
        assert (logical["name"], listed["default"]) == ("ide-chat", "ide-chat")
        assert logical["candidates"][:3] == [
            {"name": "kimi/kimi-k3.1-pro", "retired": True, "offered": False},
            {"name": "kimi/kimi-k2.7-code", "retired": True, "offered": False},
            {"name": "kimi/kimi-k3", "retired": True, "offered": False},
        ]
        await world.model.__aexit__(None, None, None)
        kimi = (await ask(world, "models/list"))["providers"][0]
        assert (kimi["error"]["code"], kimi["error"]["retryable"]) == ("Network", True)
        assert {model["name"] for model in kimi["models"]} >= {"kimi/kimi-k2.6", "kimi/kimi-k3"}
    async with sidecar(roots=[project], environment={"KIMI_API_KEY": None}) as world:
        error = (await ask(world, "models/list"))["providers"][0]["error"]
        assert (error["code"], "KIMI_API_KEY" in error["message"]) == ("AuthRequired", True)


async def test_the_schema_is_the_generated_one(project: Path) -> None:  # E1
    async with sidecar(roots=[project]) as world:
        got = await ask(world, "schema/get")
        assert got["schema"].encode() == generate()[SCHEMA_FILE]
        assert got["sha256"] == world.client.kode["schemaSha256"]


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")
async def test_a_head_that_could_not_be_saved_is_as_before(tmp_path: Path) -> None:  # O3
    broken = tmp_path / "broken"
    environment = with_faults(KODE_TEST_BROKEN_FSYNC=str(broken))
    responses = [answer(text("one")), answer(text("two"))]
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        session = await world.session(title="before")
        await world.turn(session, "first")
        where = {"sessionId": session.session_id}
        broken.touch()
        assert (await refused(world, "tree/setHead", **where, messageId=None)).code == -33023
        assert (await refused(world, "session/update", **where, title="after")).code == -33023
        broken.unlink()
        got = await ask(world, "session/get", **where)
        assert got["session"]["title"] == "before"
        reported = [one for one in world.events() if one["type"] == "session.updated"]
        assert reported[-1]["title"] == "before", "what was told is taken back"
        await world.turn(session, "second")
        assert [one["role"] for one in world.asked()["messages"]][-3:] == [
            "user",
            "assistant",
            "user",
        ]
        assert session.anomalies == []


async def test_who_lists_sessions_learns_that_the_list_has_changed(tmp_path: Path) -> None:
    async with sidecar([answer(text("Hi."))], roots=[tmp_path]) as world:

        async def ask(method: str, **params: Any) -> Any:
            return await world.client.request(method, params, HANG_SECONDS)

        async def changes() -> list[str]:
            await ask("kode/ping")
            frames = [frame.message() for frame in world.client.frames]
            return [one["method"] for one in frames if one.get("method") == CHANGED]

        session = await world.session()
        assert await changes() == []
        named = {"sessionId": session.session_id}
        await ask("kode/session/list")
        await ask("kode/session/update", **named, title="Tea")
        assert len(await changes()) == 1
        await world.turn(session, "Hello")
        assert len(await changes()) == 2
        forked = await ask("kode/session/fork", **named)
        await ask("kode/session/new")
        assert len(await changes()) == 4
        await ask("kode/session/delete", sessionId=forked["sessionId"])
        assert len(await changes()) == 5
        frames = [f.message() for f in world.client.frames if f.direction == "in"]
        at = next(i for i, one in enumerate(frames) if one.get("result") == forked)
        assert frames[at + 1]["method"] == CHANGED  # after the answer that made it


async def test_what_the_client_does_without_is_not_sent_and_nothing_else_is_missing(
    tmp_path: Path,
) -> None:
    kode = {"delivery": {"omit": ["kode/delta", "budget.updated", "turn.started"]}}
    budget = {"currency": "USD", "turn": 50.0}
    for omits in (False, True):
        async with sidecar([answer(text("Hello."))], roots=[tmp_path], initialize=False) as world:
            params = {"capabilities": {}, "initializationOptions": {"kode": kode if omits else {}}}
            await world.client.request("initialize", params, HANG_SECONDS)
            world.client.notify("initialized", {})
            session = await world.session()
            await world.turn(session, "Hi", budget=budget)
            types = [event["type"] for event in world.events()]
            frames = [frame.message() for frame in world.client.frames]
            deltas = [frame for frame in frames if frame.get("method") == "kode/delta"]
            seen = [event["seq"] for event in world.events() if event.get("seq")]
        assert bool(deltas) is not omits
        assert ("budget.updated" in types) is not omits
        assert "turn.started" in types, "what is stored always comes"
        assert seen == list(range(1, len(seen) + 1))
