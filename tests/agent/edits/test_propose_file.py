"""Whole files as proposals, and that everything the model reads shows them. A9"""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.kernel.tool_runner import tool_specs
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.tool_schema import normalize_schema
from tests.support.edit_editor import Desk
from tests.support.files import write

LONG = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def fails(desk: Desk, **arguments: Any) -> KodeError:
    announced = len(desk.updates)
    with pytest.raises(KodeError) as failed:
        await desk.use("propose_file", **arguments)
    assert len(desk.updates) == announced
    return failed.value


async def listed(desk: Desk, directory: str = ".") -> list[str]:
    return (await desk.use("list_files", directory=directory)).content.split("\n")[1:]


async def found(desk: Desk, query: str, **more: str) -> list[str]:
    content = (await desk.use("search_code", query=query, **more)).content
    return [line for line in content.split("\n")[1:] if not line.startswith("[")]


def test_the_schema_is_one_object(desk: Desk) -> None:
    spec = tool_specs([desk.tools["propose_file"]])[0]
    schema = normalize_schema(spec.schema)
    assert (schema["type"], schema["required"]) == ("object", ["action", "path"])
    assert schema["properties"]["action"]["enum"] == ["create", "delete", "move", "overwrite"]
    assert len(spec.description) < 500


async def test_a_new_file_is_read_searched_listed_and_edited_before_it_exists(desk: Desk) -> None:
    desk.file("a.py", "needle = 0\n")
    outcome = await desk.use(
        "propose_file", action="create", path="new/b.py", content="one\nneedle = 1\n"
    )
    assert "not yet applied" in outcome.content
    assert [hunk.kind for hunk in desk.hunks] == ["create"]
    assert not (desk.root / "new").exists()
    read = await desk.use("read_file", path="new/b.py")
    assert "     2\tneedle = 1" in read.content
    assert "proposed by you as a new file" in read.content
    assert await listed(desk) == ["a.py", "new/b.py (proposed by you, not on disk)"]
    assert await listed(desk, "new") == ["new/b.py (proposed by you, not on disk)"]
    assert await found(desk, "needle") == ["a.py:1: needle = 0", "new/b.py:2: needle = 1"]
    assert await found(desk, "needle", path="new") == ["new/b.py:2: needle = 1"]
    assert await found(desk, "needle", path="new/b.py") == ["new/b.py:2: needle = 1"]
    await desk.edit("new/b.py", ("needle = 1", "needle = 2"))
    assert desk.text("new/b.py") == "one\nneedle = 2\n"


async def test_a_deleted_file_is_gone_for_the_model(desk: Desk) -> None:
    write(desk.root, {"a.py": "needle\n", "b.py": "needle\n", "c.py": "x\n"})
    desk.editor.open(desk.root / "b.py", "needle\n")
    for path in ("a.py", "b.py"):
        await desk.use("propose_file", action="delete", path=path)
    assert await listed(desk) == ["c.py"]
    assert await found(desk, "needle") == []
    with pytest.raises(KodeError, match="proposed to delete"):
        await desk.use("read_file", path="a.py")
    assert (desk.root / "a.py").exists()


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_moved_file_is_at_its_new_place(desk: Desk, is_open: bool) -> None:
    path = desk.file("a.py", "needle\n")
    if is_open:
        desk.editor.open(path, "needle\n")
    outcome = await desk.use("propose_file", action="move", path="a.py", to="lib/b.py")
    assert outcome.summary == "Proposed 1 hunk in lib/b.py"
    assert await listed(desk) == ["lib/b.py (proposed by you, not on disk)"]
    assert await found(desk, "needle") == ["lib/b.py:1: needle"]
    assert "     1\tneedle" in (await desk.use("read_file", path="lib/b.py")).content


async def test_nothing_is_put_where_there_is_something(desk: Desk) -> None:
    write(desk.root, {"a.py": "a\n", "b.py": "b\n", "folder/c.py": "c\n"})
    assert "exists" in (await fails(desk, action="create", path="a.py", content="x")).message
    assert "exists" in (await fails(desk, action="move", path="a.py", to="b.py")).message
    assert "exists" in (await fails(desk, action="move", path="a.py", to="folder")).message
    for action in ("delete", "move"):
        error = await fails(desk, action=action, path="folder", to="x")
        assert error.code == "NotEditable", "folders are not moved or deleted"
    await desk.use("propose_file", action="create", path="d.py", content="d\n")
    assert "exists" in (await fails(desk, action="create", path="d.py", content="x")).message


@pytest.mark.parametrize("path", ["../x.py", "a.py:s", "CON", ".git/hooks/x", ".env", "id_rsa"])
async def test_paths_that_are_refused(desk: Desk, path: str) -> None:  # W11
    error = await fails(desk, action="create", path=path, content="x\n")
    assert error.code in ("PathOutsideRoots", "Denied")


async def test_a_sensitive_place_needs_a_yes(desk: Desk) -> None:  # W11
    path = ".github/workflows/ci.yml"
    error = await fails(desk, action="create", path=path, content="on: push\n")
    assert error.code == "Denied"
    assert len(desk.editor.questions) == 1
    assert path in desk.editor.questions[0].title


async def test_to_overwrite_all_must_have_been_read_as_it_is_now(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.txt", LONG), LONG)
    new = LONG.replace("line 3\n", "LINE 3\n").replace("line 30\n", "")
    wanted = {"action": "overwrite", "path": "a.txt", "content": new}
    assert (await fails(desk, **wanted)).details == {"reason": "unread"}
    await desk.use("read_file", path="a.txt", end=39)
    assert (await fails(desk, **wanted)).details == {"reason": "unread"}
    await desk.use("read_file", path="a.txt", start=40)
    desk.editor.type(buffer, 0, "x")
    assert (await fails(desk, **wanted)).details == {"reason": "unread"}
    desk.editor.type(buffer, 0, "", delete=1)
    await desk.use("propose_file", **wanted)
    assert desk.text("a.txt") == new
    assert [(hunk.old_text, hunk.new_text) for hunk in desk.hunks] == [
        ("line 3\n", "LINE 3\n"),
        ("line 30\n", ""),
    ]


async def test_a_text_that_leaves_something_out_needs_a_second_call(desk: Desk) -> None:
    desk.file("a.txt", LONG)
    await desk.use("read_file", path="a.txt")
    short = {"action": "overwrite", "path": "a.txt", "content": "line 1\n"}
    error = await fails(desk, **short, confirm=True)
    assert "confirm=true" in error.message, "the first call is refused whatever it says"
    assert error.details == {"reason": "placeholder"}
    assert (await fails(desk, **short)).details == {"reason": "placeholder"}
    await desk.use("propose_file", **short, confirm=True)
    assert desk.text("a.txt") == "line 1\n"
    elided = {"action": "create", "path": "b.py", "content": "a = 1\n# ... rest of the code ...\n"}
    assert "rest of the code" in (await fails(desk, **elided)).message
    await desk.use("propose_file", **elided, confirm=True)


async def test_what_the_model_wrote_itself_it_need_not_read(desk: Desk) -> None:
    await desk.use("propose_file", action="create", path="a.txt", content=LONG)
    await desk.use(
        "propose_file", action="overwrite", path="a.txt", content=LONG.replace("line 1\n", "")
    )
    assert desk.text("a.txt") == LONG.replace("line 1\n", "")


async def test_other_names_of_the_arguments(desk: Desk) -> None:
    outcome = await desk.use("propose_file", mode="create", file_path="a.txt", text="x\n")
    assert "`file_path` was read as `path`" in outcome.content
    assert desk.text("a.txt") == "x\n"


@pytest.mark.parametrize("action", ["create", "overwrite", "move"])
async def test_what_is_missing_is_named(desk: Desk, action: str) -> None:
    desk.file("a.txt", "x\n")
    path = "b.txt" if action == "create" else "a.txt"
    error = await fails(desk, action=action, path=path)
    assert error.message.startswith("`to`" if action == "move" else "`content`")


async def test_a_lone_surrogate_is_refused(desk: Desk) -> None:
    error = await fails(desk, action="create", path="a.txt", content="a\nb\ud800\n")
    assert error.code == "Unencodable"
    assert "line 2" in error.message
