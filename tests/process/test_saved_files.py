"""What was saved before an accept is saved after it, and commands know what they do not see. F16"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.yaml_text import read_yaml
from kode_sidecar.terminal.client.handshake import KODE_CAPABILITIES
from tests.process.test_commands import choose, results, run, said
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import World, only_change_set, sidecar

OLD, NEW = "n = 1\n", "n = 2\n"
SAVES: dict[str, Any] = {
    "kode_options": {"capabilities": {**KODE_CAPABILITIES, "saveDocuments": {}}}
}
DONE = answer(text("ok"))
ALLOWED = "{run: list, allow: [python]}"


def edit(path: str = "a.py", old: str = "n = 1", new: str = "n = 2") -> Any:
    return answer(tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]}))


def create(path: str, content: str) -> Any:
    return answer(tool_call("propose_file", {"action": "create", "path": path, "text": content}))


SHOW = run("python", "show.py")


@asynccontextmanager
async def world(
    folder: Path, *responses: Any, commands: str = ALLOWED, handshake: Any = SAVES
) -> AsyncGenerator[World]:
    project = folder / "项目"
    project.mkdir()
    (project / "a.py").write_text(OLD)
    (project / "show.py").write_text("print(open('a.py').read(), end='')\n")
    config = folder / "config.yaml"
    config.write_text(f"# mine\ncommands: {commands}\n" if commands else "# mine\n")
    environment = {
        "KODE_CONFIG": str(config),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    async with sidecar(
        responses, roots=[project], environment=environment, handshake=handshake
    ) as started:
        yield started


def on_disk(folder: Path, name: str = "a.py") -> str:
    return (folder / "项目" / name).read_text()


async def accept(started: World, session: SessionFold) -> None:
    await started.decide(only_change_set(session))


async def test_what_was_saved_before_an_accept_is_saved_after_it(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), DONE) as started:
        buffer = started.editor.open(tmp_path / "项目" / "a.py")
        session = await started.session()
        await started.turn(session, "go")
        assert on_disk(tmp_path) == OLD
        await accept(started, session)
        assert (buffer.text, on_disk(tmp_path)) == (NEW, NEW)
        (hunk,) = only_change_set(session).hunks("applied")
        await started.client.request("kode/changeSet/undo", {"hunkId": hunk.id}, 30.0)
        assert (buffer.text, on_disk(tmp_path)) == (OLD, OLD), "an undo is saved as well"


async def test_a_new_file_is_on_disk_with_its_text(tmp_path: Path) -> None:
    async with world(tmp_path, create("new.py", "新 = 1\n"), DONE) as started:
        started.editor.open_touched = True
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        assert on_disk(tmp_path, "new.py") == "新 = 1\n"


async def test_the_users_own_unsaved_work_is_never_saved(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), DONE) as started:
        buffer = started.editor.open(tmp_path / "项目" / "a.py", text=OLD + "mine\n")
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        assert buffer.text == NEW + "mine\n"
        assert on_disk(tmp_path) == OLD


async def test_what_the_user_types_before_the_save_is_not_saved(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), DONE) as started:
        buffer = started.editor.open(tmp_path / "项目" / "a.py")
        started.editor.manners.after_edit = lambda editor: editor.type(buffer, 0, "mine\n")
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        assert buffer.text == "mine\n" + NEW
        assert on_disk(tmp_path) == OLD


@pytest.mark.parametrize("by", ["editor", "client"])
async def test_nothing_is_saved_where_it_is_not_wanted(tmp_path: Path, by: str) -> None:
    handshake: dict[str, Any] = (
        {**SAVES, "settings": {"saveAccepted": False}} if by == "editor" else {}
    )
    async with world(tmp_path, edit(), DONE, handshake=handshake) as started:
        started.editor.open(tmp_path / "项目" / "a.py")
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        assert on_disk(tmp_path) == OLD


async def test_commands_in_the_same_turn_see_accepted_edits(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), SHOW, DONE) as started:
        started.editor.open(tmp_path / "项目" / "a.py")
        await started.turn(await started.session(mode="auto"), "go")
        _, shown = results(started)
        assert said(shown).endswith(NEW.strip())
        assert "NOTE" not in said(shown)
        assert started.editor.asked == []


async def test_auto_saves_what_was_accepted_before_a_command(tmp_path: Path) -> None:
    off: dict[str, Any] = {**SAVES, "settings": {"saveAccepted": False}}
    async with world(tmp_path, edit(), SHOW, DONE, handshake=off) as started:
        started.editor.open(tmp_path / "项目" / "a.py")
        await started.turn(await started.session(mode="auto"), "go")
        assert said(results(started)[1]).endswith(NEW.strip())
        assert started.editor.asked == []


@pytest.mark.parametrize(
    ("option", "seen"), [("save-and-run", NEW), ("run-on-disk", OLD), ("reject", None)]
)
async def test_the_user_is_asked_once_about_files_that_are_not_saved(
    tmp_path: Path, option: str, seen: str | None
) -> None:
    async def permission(_: dict[str, Any]) -> str | None:
        return option

    off: dict[str, Any] = {**SAVES, "settings": {"saveAccepted": False}}
    responses = (edit(), DONE, SHOW, SHOW, DONE)
    async with world(tmp_path, *responses, handshake=off) as started:
        started.editor.open(tmp_path / "项目" / "a.py")
        started.editor.answer_permission = permission
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        await started.turn(session, "test it")
        _, first, second = results(started)
        question = started.editor.asked[0]
        assert question["reason"] == "1 accepted file is not saved: a.py."
        options = [one["optionId"] for one in question["options"]]
        assert options == ["save-and-run", "run-on-disk", "reject"]
        assert len(started.editor.asked) == (2 if option == "reject" else 1)
        if seen is None:
            assert first["status"] == "denied"
            return
        assert said(first).endswith(seen.strip())
        stale = seen == OLD
        assert ("Not saved, so it saw an older text of: a.py" in said(second)) == stale
        assert ("1 file not saved" in second["summary"]) == stale


async def test_a_result_names_hunks_that_wait(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), SHOW, DONE) as started:
        started.editor.open(tmp_path / "项目" / "a.py")
        await started.turn(await started.session(), "go")
        _, shown = results(started)
        assert "the hunks that the user has not decided yet: a.py (1)" in said(shown)
        assert shown["summary"] == "python exited with 0 (1 hunk not decided)"
        assert started.editor.asked == []


async def test_commands_are_offered_by_a_question_without_any_file(tmp_path: Path) -> None:
    async with world(tmp_path, SHOW, SHOW, DONE, commands="") as started:
        started.editor.answer_permission = choose("allow_always")
        await started.turn(await started.session(), "go")
        assert [said(one).endswith(OLD.strip()) for one in results(started)] == [True, True]
        (question,) = started.editor.asked
        kinds = [one["kind"] for one in question["options"]]
        assert kinds == ["allow_once", "allow_session", "allow_always", "reject"]
        assert question["options"][2]["name"] == "Always allow python show.py"
    written = (tmp_path / "config.yaml").read_text()
    assert written.startswith("# mine\n")
    assert read_yaml(written).value == {"commands": {"allow": ["python show.py"]}}
    assert not (tmp_path / "项目" / ".kode").exists()


async def test_a_rule_that_cannot_be_written_holds_and_is_reported(tmp_path: Path) -> None:
    async with world(tmp_path, SHOW, SHOW, DONE, commands="{run: ask}") as started:
        started.editor.answer_permission = choose("allow_always")
        await started.turn(await started.session(), "go")
        assert len(started.editor.asked) == 1
        notices = [one for one in started.events() if one["type"] == "notice"]
        (notice,) = [one for one in notices if one["code"] == "RuleNotSaved"]
        assert "add this by hand.\ncommands:\n  allow:\n    - python show.py" in notice["message"]
    assert (tmp_path / "config.yaml").read_text() == "# mine\ncommands: {run: ask}\n"


@pytest.mark.parametrize("trusts", [True, False])
async def test_in_an_untrusted_workspace_the_question_is_about_trust(
    tmp_path: Path, *, trusts: bool
) -> None:
    async with world(tmp_path, SHOW, DONE, commands="", handshake={"trusted": False}) as started:
        started.editor.answer_permission = choose("allow_once" if trusts else "reject")
        await started.turn(await started.session(), "go")
        (question,) = started.editor.asked
        assert [one["optionId"] for one in question["options"]] == ["trust", "reject"]
        assert "trust this workspace" in question["reason"]
        (result,) = results(started)
        assert result["status"] == ("ok" if trusts else "denied")


async def test_what_a_setting_forbids_is_named(tmp_path: Path) -> None:
    async with world(tmp_path, SHOW, DONE, commands="{run: off}") as started:
        await started.turn(await started.session(), "go")
        assert "`commands.run: off`" in started.asked(0)["messages"][0]["content"]
        assert started.editor.asked == []


async def test_a_closed_file_is_edited_and_saved(tmp_path: Path) -> None:
    async with world(tmp_path, edit(), DONE) as started:
        started.editor.open_touched = True
        session = await started.session()
        await started.turn(session, "go")
        await accept(started, session)
        assert on_disk(tmp_path) == NEW
