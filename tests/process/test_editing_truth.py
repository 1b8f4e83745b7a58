"""What is told of edits, over the wire and of a real process: true late, and true after a kill."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

TEXT = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT, encoding="utf-8", newline="")
    return folder


def edit(old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": "a.txt", "edits": [{"old": old, "new": new}]})


def states(world: World) -> list[str]:
    files = (one["files"] for one in world.events() if one["type"] == "changeSet.updated")
    return [hunk["state"] for reported in files for file in reported for hunk in file["hunks"]]


WHOLE = {"action": "overwrite", "path": "a.txt", "content": TEXT.replace("two", "TWO")}
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** End Patch"


@pytest.mark.parametrize("form", ["edits", "patch", "whole"])
async def test_edits_show_while_the_model_writes_them(project: Path, form: str) -> None:
    calls = {
        "edits": edit("two", "TWO"),
        "patch": tool_call("propose_edit", {"patch": PATCH}),
        "whole": tool_call("propose_file", WHOLE),
    }
    read = answer(tool_call("read_file", {"path": "a.txt"}))
    responses = [read, answer(calls[form], hold("written")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        buffer = world.editor.open(project / "a.txt")
        turn_id = await world.start(session, "go")

        def forming() -> dict[str, Any] | None:
            reported = (one for one in world.events() if one["type"] == "changeSet.forming")
            return next(reported, None)

        event = await world.watch.until(forming, HANG_SECONDS)
        assert "seq" not in event
        assert event["hunks"][0]["newText"] == "TWO\n"
        assert not session.change_sets
        world.model.release("written")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert (await world.decide(only_change_set(session)))["verified"] is True
        assert buffer.text == TEXT.replace("two", "TWO")
        assert not any(one["type"] == "changeSet.forming" for one in world.journal(session))


async def test_what_the_told_encoding_cannot_hold_is_refused(project: Path) -> None:
    responses = [answer(edit("two", "二")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        uri = (project / "a.txt").as_uri()
        world.editor.open(project / "a.txt")
        world.client.notify("kode/editor/didChangeEncoding", {"uri": uri, "encoding": "latin1"})
        await world.turn(session, "go")
        assert not session.change_sets
        (result,) = [m for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "iso8859-1" in str(result["content"])


async def test_a_change_that_is_told_long_after_the_answer_is_the_last_word(
    project: Path,
) -> None:
    responses = [answer(edit("two", "TWO")), answer(text("ok")), answer(text("so"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        buffer = world.editor.open(project / "a.txt")
        await world.turn(session, "go")

        async def keep_silent(params: dict[str, Any]) -> dict[str, Any]:
            _, refusal = world.editor.carry_out(params["edit"])
            return {"applied": refusal is None}

        world.client.handle("workspace/applyEdit", keep_silent)
        decided = await world.decide(only_change_set(session))
        assert (decided["applied"], states(world)[-1]) == ([], "conflict")
        world.editor.report(buffer)
        await world.watch.until(lambda: states(world)[-1] == "applied", HANG_SECONDS)
        assert buffer.text == TEXT.replace("two", "TWO")
        await world.turn(session, "and now?")
        assert "accepted and applied" in str(world.asked()["messages"])
        assert "not applied" not in str(world.asked()["messages"])


@pytest.mark.parametrize("reported", ["before the answer", "after the answer"])
async def test_a_confirmation_that_comes_after_the_limit_is_the_last_word(
    project: Path, reported: str
) -> None:
    responses = [answer(edit("two", "TWO")), answer(text("ok")), answer(text("so"))]
    limit = {"KODE_EDIT_TIMEOUT": "0.2"}
    async with sidecar(responses, roots=[project], environment=limit) as world:
        session = await world.session()
        buffer = world.editor.open(project / "a.txt")
        await world.turn(session, "go")
        confirmed, answered = asyncio.Event(), asyncio.Event()

        async def ask_the_user(params: dict[str, Any]) -> dict[str, Any]:
            await confirmed.wait()
            _, refusal = world.editor.carry_out(params["edit"])
            if reported == "before the answer":
                world.editor.report(buffer)
            answered.set()
            return {"applied": refusal is None}

        world.client.handle("workspace/applyEdit", ask_the_user)
        decided = await world.decide(only_change_set(session))
        assert (decided["applied"], states(world)[-1]) == ([], "conflict")
        confirmed.set()
        await asyncio.wait_for(answered.wait(), HANG_SECONDS)
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        world.editor.report(buffer)
        await world.watch.until(lambda: states(world)[-1] == "applied", HANG_SECONDS)
        assert buffer.text == TEXT.replace("two", "TWO")
        await world.turn(session, "and now?")
        assert "accepted and applied" in str(world.asked()["messages"])
        assert "not applied" not in str(world.asked()["messages"])
        world.client.handle("workspace/applyEdit", world.editor.apply_edit)
        undo = {"changeSetId": only_change_set(session).id}
        undone = await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        assert len(undone["undone"]) == 1
        assert buffer.text == TEXT


async def test_an_undo_that_is_confirmed_late_is_an_undo(project: Path) -> None:
    responses = [answer(edit("two", "TWO")), answer(text("ok")), answer(text("so"))]
    limit = {"KODE_EDIT_TIMEOUT": "0.2"}
    async with sidecar(responses, roots=[project], environment=limit) as world:
        session = await world.session()
        buffer = world.editor.open(project / "a.txt")
        await world.turn(session, "go")
        await world.decide(only_change_set(session))
        confirmed = asyncio.Event()

        async def ask_the_user(params: dict[str, Any]) -> dict[str, Any]:
            await confirmed.wait()
            return await world.editor.apply_edit(params)

        world.client.handle("workspace/applyEdit", ask_the_user)
        undo = {"changeSetId": only_change_set(session).id}
        refused = await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        assert (refused["undone"], states(world)[-1]) == ([], "applied")
        confirmed.set()
        await world.watch.until(lambda: states(world)[-1] == "undone", HANG_SECONDS)
        assert buffer.text == TEXT
        again = await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        assert (len(again["restored"]), buffer.text) == (1, TEXT.replace("two", "TWO"))


async def test_an_edit_on_its_way_when_the_process_dies_is_found_in_the_text(
    project: Path,
) -> None:
    async with sidecar([answer(edit("two", "TWO")), answer(text("ok"))], roots=[project]) as world:
        session = await world.session()
        buffer = world.editor.open(project / "a.txt")
        await world.turn(session, "go")
        sent: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        async def never_answer(params: dict[str, Any]) -> dict[str, Any]:
            sent.set_result(params)
            return await asyncio.get_running_loop().create_future()

        world.client.handle("workspace/applyEdit", never_answer)
        deciding = asyncio.create_task(world.decide(only_change_set(session)))
        params = await asyncio.wait_for(sent, HANG_SECONDS)
        await world.kill()
        assert world.editor.carry_out(params["edit"])[1] is None
        with pytest.raises(Exception):  # noqa: B017, PT011 - the connection is gone
            await deciding
    async with sidecar([answer(text("so"))], roots=[project]) as world:
        world.editor.open(project / "a.txt", buffer.text)
        session = await world.watch.attach(session.session_id)
        asked = {"changeSetId": only_change_set(session).id}
        now = await world.client.request("kode/changeSet/get", asked, HANG_SECONDS)
        assert [hunk["state"] for file in now["files"] for hunk in file["hunks"]] == ["applied"]
        await world.turn(session, "and now?")
        assert "accepted and applied" in str(world.asked()["messages"])
