"""Files that the model creates, moves and deletes, over real stdio, with an editor that does it."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.uris import file_path
from kode_sidecar.terminal.client.workspace_edit import EditPlan
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import FoldedHunk, SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

NEW = "# 新 🍵\nprice = 38\n"
OLD = "一 = 1\r\nb = 2\r\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目 one"
    folder.mkdir()
    (folder / "旧.py").write_bytes(OLD.encode())
    (folder / "gone.py").write_bytes(OLD.encode())
    return folder


def call(action: str, path: str, **more: str) -> Any:
    return tool_call("propose_file", {"action": action, "path": path, **more})


ALL = [
    answer(
        call("create", "src/新.py", content=NEW),
        call("move", "旧.py", to="sub/新名.py"),
        call("delete", "gone.py"),
    ),
    answer(text("ok")),
]


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def results(world: World) -> list[str]:
    """What the tools answered, as the model's last request holds it."""
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


def save_all(world: World) -> None:
    """An editor that saves at once what an edit has changed, in UTF-8."""

    def save(plan: EditPlan) -> None:
        for buffer, _ in plan.changes:
            file_path(buffer.uri).write_bytes(buffer.text.encode())

    world.editor.applied = save


async def proposed(world: World) -> SessionFold:
    session = await world.session()
    await world.turn(session, "do it")
    return session


async def undo(world: World, session: SessionFold) -> dict[str, Any]:
    params = {"changeSetId": only_change_set(session).id}
    return await world.client.request("kode/changeSet/undo", params, HANG_SECONDS)


@pytest.mark.parametrize("action", ["accept", "reject"])
async def test_nothing_happens_on_disk_before_the_user_says_yes(project: Path, action: str) -> None:
    async with sidecar(ALL, roots=[project]) as world:
        world.editor.open_touched = True
        session = await proposed(world)
        assert names(project) == ["gone.py", "旧.py"]
        change_set = only_change_set(session)
        create, rename, delete = change_set.hunks("proposed")
        assert [hunk.info["kind"] for hunk in (create, rename, delete)] == [
            "create",
            "rename",
            "delete",
        ]
        assert (create.info["newText"], rename.info["newPath"]) == (NEW, "sub/新名.py")
        assert delete.info["oldText"] == OLD
        decided = await world.decide(change_set, rest=action, seenSeq=session.seq)
        ids = [create.id, rename.id, delete.id]
        if action == "reject":
            assert (decided["rejected"], world.editor.edits) == (ids, [])
            assert names(project) == ["gone.py", "旧.py"]
            return
        assert (decided["applied"], decided["verified"]) == (ids, True)
        assert names(project) == ["src/新.py", "sub/新名.py"]
        assert (project / "sub/新名.py").read_bytes() == OLD.encode()
        (created,) = (buffer for buffer in world.editor.buffers if "src" in buffer.uri)
        assert created.text == NEW


async def test_an_open_file_moves_with_its_unsaved_text_and_its_accepted_edit(
    project: Path,
) -> None:
    edit = {"path": "旧.py", "edits": [{"old": "b = 2", "new": "b = 3"}]}
    script = [
        answer(tool_call("propose_edit", edit), call("move", "旧.py", to="new.py")),
        answer(tool_call("read_file", {"path": "new.py"})),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[project]) as world:
        world.editor.open(project / "旧.py", "# unsaved 🍵\r\n" + OLD)
        session = await proposed(world)
        assert "b = 3" in results(world)[-1]
        decided = await world.decide(only_change_set(session))
        assert decided["verified"] is True
        (buffer,) = world.editor.buffers
        assert buffer.uri.endswith("/new.py")
        assert buffer.text == "# unsaved 🍵\r\n" + OLD.replace("b = 2", "b = 3")
        assert (project / "new.py").read_bytes() == OLD.encode()
        undone = await undo(world, session)
        assert (len(undone["undone"]), undone["verified"]) == (2, True)
        (buffer,) = world.editor.buffers
        assert (file_path(buffer.uri), buffer.text) == (
            project / "旧.py",
            "# unsaved 🍵\r\n" + OLD,
        )


async def test_all_of_it_is_undone_and_done_again(project: Path) -> None:
    async with sidecar(ALL, roots=[project]) as world:
        world.editor.open_touched = True
        save_all(world)
        session = await proposed(world)
        before = {name: (project / name).read_bytes() for name in names(project)}
        await world.decide(only_change_set(session))
        after = {name: (project / name).read_bytes() for name in names(project)}
        assert after == {"src/新.py": NEW.encode(), "sub/新名.py": OLD.encode()}
        undone = await undo(world, session)
        assert (len(undone["undone"]), undone["conflicts"]) == (3, [])
        assert {name: (project / name).read_bytes() for name in names(project)} == before
        again = await undo(world, session)
        assert (len(again["restored"]), again["conflicts"]) == (3, [])
        assert {name: (project / name).read_bytes() for name in names(project)} == after


async def test_files_proposed_in_an_earlier_process_are_decided_and_undone_in_this_one(
    project: Path,
) -> None:
    async with sidecar(ALL, roots=[project]) as world:
        earlier = await proposed(world)
        await world.kill()
    before = {name: (project / name).read_bytes() for name in names(project)}
    async with sidecar(roots=[project]) as world:
        world.editor.open_touched = True
        save_all(world)
        session = await world.watch.attach(earlier.session_id)
        decided = await world.decide(only_change_set(session))
        assert (len(decided["applied"]), decided["verified"]) == (3, True)
        assert names(project) == ["src/新.py", "sub/新名.py"]
        undone = await undo(world, session)
        assert (len(undone["undone"]), undone["conflicts"]) == (3, [])
        assert {name: (project / name).read_bytes() for name in names(project)} == before


def change(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


@pytest.mark.parametrize(
    "calls",
    [
        (call("create", "new.py", content="x\ny\n"), change("new.py", "y", "z")),
        (change("gone.py", "b = 2", "b = 3"), call("delete", "gone.py")),
    ],
    ids=["created and edited", "edited and deleted"],
)
async def test_edits_of_a_file_that_goes_and_comes_back_are_undone_and_done_again(
    project: Path, calls: tuple[Any, ...]
) -> None:
    script = [*map(answer, calls), answer(text("ok"))]
    async with sidecar(script, roots=[project]) as world:
        world.editor.open_touched = True
        save_all(world)
        before = {name: (project / name).read_bytes() for name in names(project)}
        session = await world.session()
        await world.turn(session, "do it", mode="auto")
        after = {name: (project / name).read_bytes() for name in names(project)}
        for wanted in (before, after, before):
            assert (await undo(world, session))["conflicts"] == []
            assert {name: (project / name).read_bytes() for name in names(project)} == wanted


async def test_a_file_that_is_not_opened_when_it_is_created_stays_unconfirmed(
    project: Path,
) -> None:
    script = [answer(call("create", "new.py", content=NEW)), answer(text("ok"))]
    async with sidecar(script, roots=[project]) as world:
        session = await proposed(world)
        decided = await world.decide(only_change_set(session))
        assert (len(decided["applied"]), decided["verified"]) == (1, None)


async def test_auto_creates_moves_and_deletes_before_the_calls_return(project: Path) -> None:
    async with sidecar(ALL, roots=[project]) as world:
        world.editor.open_touched = True
        session = await world.session()
        await world.turn(session, "do it", mode="auto")
        assert names(project) == ["src/新.py", "sub/新名.py"]
        assert all("What became of 1 hunk" in result for result in results(world))


async def test_plan_does_nothing_to_files(project: Path) -> None:
    async with sidecar(ALL, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "do it", mode="plan")
        assert (names(project), session.change_sets) == (["gone.py", "旧.py"], {})


async def test_a_folder_and_a_file_that_are_only_proposed_are_listed_and_searched(
    project: Path,
) -> None:
    script = [
        answer(call("create", "src/deep/新.py", content=NEW), call("move", "旧.py", to="lib/b.py")),
        answer(
            tool_call("list_files", {"directory": "src"}),
            tool_call("search_code", {"query": "price", "path": "src/deep"}),
            tool_call("search_code", {"query": "price", "path": "src/deep/新.py"}),
            tool_call("search_code", {"query": "b =", "path": "lib"}),
            tool_call("search_code", {"query": "b =", "path": "旧.py"}),
            tool_call("list_files", {"directory": "none"}),
        ),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[project]) as world:
        await proposed(world)
        _, _, listed, in_folder, in_file, moved, left, none = results(world)
        assert "src/deep/新.py (proposed by you, not on disk)" in listed
        assert "src/deep/新.py:2: price = 38" in in_folder
        assert "src/deep/新.py:2: price = 38" in in_file
        assert "lib/b.py:2: b = 2" in moved
        assert "b = 2" not in left
        assert "none" in none
        assert names(project) == ["gone.py", "旧.py"]


SHIM = "from sub.新名 import *\n"


async def test_a_moved_file_leaves_its_place_to_a_new_one(project: Path) -> None:
    script = [
        answer(
            call("move", "旧.py", to="sub/新名.py"),
            tool_call(
                "propose_edit", {"path": "sub/新名.py", "edits": [{"old": "b = 2", "new": "b = 3"}]}
            ),
            call("create", "旧.py", content=SHIM),
            tool_call("read_file", {"path": "旧.py"}),
            tool_call("read_file", {"path": "sub/新名.py"}),
        ),
        answer(text("ok")),
        answer(text("nothing new")),
    ]
    async with sidecar(script, roots=[project]) as world:
        world.editor.open_touched = True
        save_all(world)
        session = await proposed(world)
        assert "Proposed, not yet applied" in results(world)[2]
        assert SHIM.rstrip() in results(world)[3]
        assert "b = 3" in results(world)[4]
        await world.decide(only_change_set(session))
        after = {name: (project / name).read_bytes() for name in names(project)}
        assert after["旧.py"] == SHIM.encode()
        assert after["sub/新名.py"] == OLD.replace("b = 2", "b = 3").encode()
        await world.turn(session, "go on")
        assert "changed since" not in str(world.asked()["messages"][-1])
        undone = await undo(world, session)
        assert undone["conflicts"] == []
        assert names(project) == ["gone.py", "旧.py"]
        assert (project / "旧.py").read_bytes() == OLD.encode()


def accept(*hunks: FoldedHunk) -> dict[str, Any]:
    chosen = [{"hunkId": hunk.id, "action": "accept"} for hunk in hunks]
    return {"decisions": chosen, "seenSeq": 1_000_000}


async def test_a_new_file_waits_for_the_move_that_leaves_its_place(project: Path) -> None:
    script = [
        answer(call("move", "旧.py", to="new.py"), call("create", "旧.py", content=SHIM)),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[project]) as world:
        session = await proposed(world)
        rename, create = only_change_set(session).hunks("proposed")
        await world.decide(only_change_set(session), **accept(create))
        assert (
            only_change_set(session).hunks("conflict")[0].info["reason"] == "there is a file 旧.py"
        )
        assert (project / "旧.py").read_bytes() == OLD.encode()
        await world.decide(only_change_set(session), **accept(rename, create))
        assert (project / "new.py").read_bytes() == OLD.encode()
