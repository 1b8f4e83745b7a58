"""What the editor's language servers know reaches the model, in the lines that the model sees."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.uris import path_to_uri
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.tool_names import reachable_tools
from tests.support.word_servers import WordServers, capabilities

MENU = "# 菜单 😀\r\ndef price(茶):\r\n    return 3\r\n\r\nBUG = 1\r\n"
MAIN = "from menu import price\n\n# 😀😀 两个\ntotal = price('茶') + price('😀')\n"
NAMES = {"diagnostics", "definition", "references", "symbols", "rename_symbol"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "茶 铺"
    folder.mkdir()
    (folder / "menu.py").write_bytes(MENU.encode())
    (folder / "main.py").write_bytes(MAIN.encode())
    return folder


def results(world: World) -> list[str]:
    """What the model got of its calls, in order."""
    return [one["content"] for one in world.asked()["messages"] if one["role"] == "tool"]


def edit(old: str, new: str) -> dict[str, Any]:
    return {"path": "menu.py", "edits": [{"old": old, "new": new}]}


def offered(world: World) -> set[str]:
    return {*reachable_tools(world.asked(0))} & NAMES


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_the_model_asks_the_editors_servers_and_renames_by_hunks(  # F6
    project: Path, encoding: str
) -> None:
    place = {"path": "main.py", "line": 4, "symbol": "price"}
    script = [
        answer(
            tool_call("definition", place),
            tool_call("references", place),
            tool_call("symbols", {"path": "menu.py"}),
            tool_call("symbols", {"query": "pri"}),
            tool_call("diagnostics", {}),
            tool_call("diagnostics", {"path": "main.py"}),
        ),
        answer(tool_call("rename_symbol", {**place, "new_name": "价格"})),
        answer(text("Done.")),
    ]
    hands = {"kode_options": capabilities(), "position_encodings": [encoding]}
    async with sidecar(script, roots=[project], handshake=hands) as world:
        WordServers(world.editor, project)
        main = world.editor.open(project / "main.py")
        session = await world.session()
        await world.turn(session, "rename")
        assert offered(world) == NAMES
        definition, references, outline, by_name, wrong, right, renamed = results(world)
        assert definition.startswith("`price` is defined in 1 place\nmenu.py:2: def price(茶):")
        assert "(price) is a word" in definition
        assert references.splitlines() == [
            "4 references in 2 files",
            "main.py:1: from menu import price",
            "main.py:4: total = price('茶') + price('😀')",
            "menu.py:2: def price(茶):",
        ]
        assert outline == "1 symbol in menu.py\nmenu.py:2: function price"
        assert by_name == "1 symbol for 'pri'\nmenu.py:2: function price"
        assert wrong == "1 diagnostic in 1 file\nmenu.py:5: error words: BUG is wrong"
        assert right == "no diagnostic in main.py"
        assert "+total = 价格('茶') + 价格('😀')" in renamed
        change_set = only_change_set(session)
        assert main.text == MAIN  # a proposal
        decided = await world.decide(change_set)
        assert (len(decided["applied"]), decided["conflicts"]) == (3, [])
        assert main.text == MAIN.replace("price", "价格")
        menu = world.editor.text(path_to_uri(project / "menu.py"))
        assert menu == MENU.replace("price", "价格")


async def test_lines_are_those_that_the_model_sees_with_its_pending_edits(project: Path) -> None:
    above = {"path": "main.py", "edits": [{"old": "\n# 😀😀 两个", "new": "\n# 一\n# 二\n# 三"}]}
    below = {"path": "main.py", "line": 6, "symbol": "price"}
    rename = {**below, "new_name": "cost"}
    script = [
        answer(tool_call("read_file", {"path": "main.py"})),
        answer(tool_call("propose_edit", above)),
        answer(
            tool_call("references", below),
            tool_call("definition", {**below, "line": 4, "symbol": "二"}),
            tool_call("definition", {**below, "line": 2}),
        ),
        answer(tool_call("rename_symbol", rename)),
        answer(text("Done.")),
    ]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        WordServers(world.editor, project)
        buffer = world.editor.open(project / "main.py")
        session = await world.session()
        await world.turn(session, "rename")
        _, _, references, pending, nowhere, _ = results(world)
        assert "main.py:6: total = price('茶') + price('😀')" in references
        assert "part of your own pending edit" in pending
        assert "in this file 1, 6 does" in nowhere
        assert (await world.decide(only_change_set(session)))["conflicts"] == []
        wanted = MAIN.replace("# 😀😀 两个", "# 一\n# 二\n# 三").replace("price", "cost")
        assert buffer.text == wanted


async def test_nothing_is_offered_that_the_editor_does_not_serve(project: Path) -> None:
    for options, names in (
        ({}, set[str]()),
        ({"kode_options": capabilities("diagnostics", "rename")}, {"diagnostics", "rename_symbol"}),
    ):
        async with sidecar([answer(text("ok"))], roots=[project], handshake=options) as world:
            await world.turn(await world.session(), "hi")
            assert offered(world) == names


async def test_what_an_editor_answers_wrongly_is_a_failed_call_that_says_so(project: Path) -> None:
    place = {"path": "main.py", "line": 4, "symbol": "price"}
    calls = [
        tool_call("definition", place),
        tool_call("references", place),
        tool_call("symbols", {"path": "main.py"}),
        tool_call("rename_symbol", {**place, "new_name": "no name"}),
        tool_call("rename_symbol", {**place, "new_name": "outside"}),
        tool_call("rename_symbol", {**place, "new_name": "behind"}),
    ]
    script = [*(answer(call) for call in calls), answer(text("Done."))]

    async def broken(_params: Any) -> Any:
        raise RuntimeError("the server crashed")

    async def shapeless(_params: Any) -> Any:
        return {"locations": [{"uri": 1}]}

    async def rename(params: dict[str, Any]) -> Any:
        if params["newName"] == "no name":
            return {"files": [], "refused": "that is no name"}
        start, end = {"line": 70, "character": 0}, {"line": 70, "character": 1}
        uri = "file:///etc/hosts" if params["newName"] == "outside" else params["uri"]
        return {
            "files": [
                {"uri": uri, "edits": [{"range": {"start": start, "end": end}, "newText": ""}]}
            ]
        }

    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        session = await world.session(agent="coder")
        world.client.handle("kode/editor/definition", broken)
        world.client.handle("kode/editor/references", shapeless)
        world.client.handle("kode/editor/rename", rename)
        turn = await world.turn(session, "go")
        assert turn.stop_reason == "end_turn"
        reported = results(world)
        for said, part in zip(
            reported,
            (
                "the server crashed",
                "answered kode/editor/references with",
                "does not know kode/editor/symbols",
                "that is no name",
                "not inside an open folder",
                "named a place that main.py has not",
            ),
            strict=True,
        ):
            assert part in said
        assert session.change_sets == {}


async def test_a_cancelled_turn_takes_its_question_to_the_editor_back(project: Path) -> None:
    asked = asyncio.Event()

    async def never(_params: Any) -> Any:
        asked.set()
        await asyncio.sleep(3600)

    script = [answer(tool_call("diagnostics", {}))]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        world.client.handle("kode/editor/diagnostics", never)
        session = await world.session()
        turn_id = await world.start(session, "look")
        await asyncio.wait_for(asked.wait(), HANG_SECONDS)
        params = {"sessionId": session.session_id, "turnId": turn_id}
        await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"


@pytest.mark.parametrize("mode", ["auto", "review"])
async def test_what_an_applied_edit_breaks_is_told_once(project: Path, mode: str) -> None:  # F6
    script = [
        answer(tool_call("propose_edit", edit("return 3", "return BUGGY"))),
        answer(tool_call("propose_edit", edit("# 菜单 😀", "# 一\n# 二"))),
        answer(text("Done.")),
        answer(text("Again.")),
        answer(text("Nothing.")),
    ]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        servers = WordServers(world.editor, project)
        world.editor.open(project / "menu.py")
        session = await world.session(agent="coder", mode=mode)
        await world.turn(session, "break it")
        if mode == "review":
            assert (await world.decide(only_change_set(session)))["verified"] is True
            # The servers were asked before the decision was answered; one more question is behind.
            await world.client.request("kode/ping", {}, HANG_SECONDS)
            await world.turn(session, "go on")
        await world.turn(session, "and?")
        reported = [
            one
            for message in world.asked()["messages"]
            if message["role"] == "user"
            for one in [str(message["content"])]
            if "new problems" in one
        ]
        assert len(reported) == 1
        line = 3 if mode == "auto" else 4
        assert f"- menu.py:{line}: error words: BUGGY is wrong" in reported[0]
        assert "BUG is wrong" not in reported[0]  # it was there before
        assert ("diagnostics", True) in [
            (name, bool(params.get("afterEdit"))) for name, params in servers.asked
        ]


@pytest.mark.parametrize("slow_after", [False, True])
async def test_a_call_waits_for_what_a_slow_server_says_of_its_edit(  # F6
    project: Path, *, slow_after: bool
) -> None:
    script = [
        answer(tool_call("propose_edit", edit("return 3", "return BUGGY"))),
        answer(text("Done.")),
    ]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        servers = WordServers(world.editor, project)
        quick = servers.answering("diagnostics")

        async def slow(params: dict[str, Any]) -> Any:
            found = await quick(params)
            for _ in range(200 if bool(params.get("afterEdit")) == slow_after else 0):
                await world.client.request("kode/ping", {}, HANG_SECONDS)
                if len(world.model.chats) > 1:
                    break  # nobody has waited
            return found

        world.client.handle("kode/editor/diagnostics", slow)
        world.editor.open(project / "menu.py")
        session = await world.session(agent="coder", mode="auto")
        await world.turn(session, "break it")
        assert "BUGGY is wrong" in str(world.asked(1)["messages"])


async def test_what_the_user_breaks_between_two_edits_is_no_news(project: Path) -> None:
    script = [
        answer(tool_call("propose_edit", edit("return 3", "return 4"))),
        answer(text("Done.")),
        answer(tool_call("propose_edit", edit("# 菜单 😀", "# 一"))),
        answer(text("Done, too.")),
        answer(text("Nothing.")),
    ]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        WordServers(world.editor, project)
        buffer = world.editor.open(project / "menu.py")
        session = await world.session(agent="coder", mode="auto")
        await world.turn(session, "change it")
        world.editor.type(buffer, len(buffer.text), "MY = BUGS\r\n")
        await world.turn(session, "and now?")
        await world.turn(session, "and?")
        assert "new problems" not in str(world.asked()["messages"])
