"""Three branches of one conversation edit one function three ways; nothing of it is on disk."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

CODE = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n\n\ndef leave():\n    pass\n"
WAYS = {
    "f-string": 'return f"hello {name}"',
    "format": 'return "hello {}".format(name)',
    "percent": 'return "hello %s" % name',
}


def responses() -> list[Any]:
    """A common beginning, then in each branch: edit, read back, say so."""
    script = [answer(text("Which way?"))]
    for new in WAYS.values():
        edit = {"old": "return 'hello ' + name", "new": new}
        script += [
            answer(tool_call("propose_edit", {"path": "a.py", "edits": [edit]})),
            answer(tool_call("read_file", {"path": "a.py"})),
            answer(text("Done.")),
        ]
    return script


async def branch_out(world: World) -> tuple[dict[str, str], list[str]]:
    """Run the branches; the turn of each way, and what each one read."""
    session = await world.session()
    await world.turn(session, "make greet nicer")
    root = next(m.id for m in session.messages.values() if m.role == "assistant")
    turns: dict[str, str] = {}
    read: list[str] = []
    for way in WAYS:
        turn = await world.turn(session, way, parentId=root)
        turns[way] = turn.id
        messages = world.asked()["messages"]
        read.append(next(m["content"] for m in reversed(messages) if m["role"] == "tool"))
    listed = await world.client.request(
        "kode/changeSet/list", {"sessionId": session.session_id}, HANG_SECONDS
    )
    assert [one["onHead"] for one in listed["changeSets"]] == [False, False, True]
    assert [one["turnId"] for one in listed["changeSets"]] == list(turns.values())
    return {one["turnId"]: one["changeSetId"] for one in listed["changeSets"]}, read


async def accept(world: World, change_set_id: str) -> dict[str, Any]:
    decide = {"changeSetId": change_set_id, "rest": "accept", "seenSeq": 1_000_000}
    return await world.client.request("kode/changeSet/decide", decide, HANG_SECONDS)


async def test_each_branch_reads_its_own_text_and_one_is_adopted(tmp_path: Path) -> None:  # A4 E3
    (tmp_path / "a.py").write_bytes(CODE.encode())
    async with sidecar(responses(), roots=[tmp_path]) as world:
        buffer = world.editor.open(tmp_path / "a.py")
        sets, read = await branch_out(world)
        for own, seen in zip(WAYS.values(), read, strict=True):
            assert own in seen
            assert not [new for new in WAYS.values() if new != own and new in seen]
        assert (tmp_path / "a.py").read_bytes() == CODE.encode()
        assert [path.name for path in tmp_path.iterdir()] == ["a.py"]
        assert buffer.text == CODE
        first, second, third = sets.values()
        assert (await accept(world, second))["verified"] is True
        adopted = CODE.replace("return 'hello ' + name", WAYS["format"])
        assert buffer.text == adopted
        for other in (first, third):
            result = await accept(world, other)
            assert (result["applied"], len(result["conflicts"])) == ([], 1)
        assert buffer.text == adopted
        assert len(world.editor.edits) == 1


async def test_undoing_the_adopted_branch_frees_no_other_silently(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE.encode())
    async with sidecar(responses(), roots=[tmp_path]) as world:
        buffer = world.editor.open(tmp_path / "a.py")
        sets, _ = await branch_out(world)
        first, second, _ = sets.values()
        await accept(world, second)
        undo = {"changeSetId": second}
        undone = await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        assert len(undone["undone"]) == 1
        assert buffer.text == CODE
        assert (await accept(world, first))["verified"] is True
        assert buffer.text == CODE.replace("return 'hello ' + name", WAYS["f-string"])
        refused = await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
        assert (refused["restored"], len(refused["conflicts"])) == ([], 1)
        assert "-    return f" in refused["conflicts"][0]["diff"]
        assert buffer.text == CODE.replace("return 'hello ' + name", WAYS["f-string"])


async def test_a_branch_elsewhere_in_the_file_is_rebased(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE.encode())
    script = [answer(text("ok"))]
    for old, new in (("import os\n", "import os\nimport re\n"), ("    pass", "    return None")):
        edit = {"path": "a.py", "edits": [{"old": old, "new": new}]}
        script += [answer(tool_call("propose_edit", edit)), answer(text("Done."))]
    async with sidecar(script, roots=[tmp_path]) as world:
        buffer = world.editor.open(tmp_path / "a.py")
        session = await world.session()
        await world.turn(session, "go")
        root = next(m.id for m in session.messages.values() if m.role == "assistant")
        for prompt in ("one", "two"):
            await world.turn(session, prompt, parentId=root)
        first, second = session.change_sets
        assert (await accept(world, first))["verified"] is True
        assert (await accept(world, second))["verified"] is True
        rebased = CODE.replace("import os\n", "import os\nimport re\n")
        assert buffer.text == rebased.replace("    pass", "    return None")


async def test_an_edit_says_what_it_replaces(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(CODE)
    said = [answer(text(word)) for word in ("one", "two", "three", "four")]
    context = {"uri": path_to_uri(file)}
    async with sidecar(said, roots=[tmp_path]) as world:
        session = await world.session()
        world.client.notify("kode/editor/didChangeContext", context)
        first = await world.turn(session, "first")  # a reminder goes before it
        second = await world.turn(session, "second")
        prompts = [world_prompt(world, first.id), world_prompt(world, second.id)]
        third = world_prompt(world, (await world.turn(session, "2nd", replaces=prompts[1].id)).id)
        fourth = world_prompt(world, (await world.turn(session, "1st", replaces=prompts[0].id)).id)
        last = world_prompt(world, (await world.turn(session, "1", replaces=fourth.id)).id)
        kept = {one["id"]: one for one in world.messages(session)}
        assert [kept[one.id].get("replaces") for one in (third, fourth, last)] == [
            prompts[1].id,
            prompts[0].id,
            fourth.id,
        ]
        assert [kept[one.id]["version"] for one in (third, fourth, last)] == [2, 2, 3]
        assert kept[third.id]["parent_id"] == kept[prompts[1].id]["parent_id"]
        asked = [one["content"] for one in world.asked()["messages"] if one["role"] == "user"]
        assert not [content for content in asked if "first" in content or "second" in content]
        answered = next(one["id"] for one in kept.values() if one["role"] == "assistant")
        for wrong, place in (
            ({"replaces": answered}, "$.replaces"),
            ({"replaces": prompts[1].id, "parentId": third.id}, "$.parentId"),
        ):
            with pytest.raises(RpcError) as refused:
                await world.start(session, "no", **wrong)
            assert refused.value.data["details"]["path"] == place


def world_prompt(world: World, turn_id: str) -> Any:
    """The message that opened a turn."""
    session = next(iter(world.watch.sessions.values()))
    started = next(
        e for e in world.events() if e["type"] == "turn.started" and e["turnId"] == turn_id
    )
    return session.messages[started["messageId"]]
