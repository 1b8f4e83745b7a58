"""Files whose paths are longer than Windows' old limit of 260 characters, over real stdio."""

import os
from pathlib import Path

import pytest

from tests.process.test_file_operations import results, save_all
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar

OLD_LIMIT = 260
DEEP = "/".join(letter * 60 for letter in "abcde") + "/源"
TEXT = "needle = 1\r\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    try:
        (folder / DEEP).mkdir(parents=True)
        (folder / DEEP / "old.py").write_bytes(TEXT.encode())
        os.path.realpath(folder / DEEP)
    except OSError as error:  # LongPathsEnabled is 0, or Wine, which cannot resolve them
        pytest.skip(f"this Windows has no long paths: {error.strerror}")
    return folder


async def test_they_are_found_read_edited_and_created(project: Path) -> None:
    old, new = f"{DEEP}/old.py", f"{DEEP}/new/新.py"
    assert len(str(project / old)) > OLD_LIMIT
    script = [
        answer(
            tool_call("list_files", {"directory": DEEP}),
            tool_call("search_code", {"query": "needle"}),
            tool_call("read_file", {"path": old}),
        ),
        answer(
            tool_call("propose_edit", {"path": old, "old_str": "= 1", "new_str": "= 2"}),
            tool_call("propose_file", {"action": "create", "path": new, "content": "n = 3\n"}),
        ),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[project]) as world:
        world.editor.open_touched = True
        save_all(world)
        session = await world.session()
        await world.turn(session, "change it")
        listed, found, read, *_ = results(world)
        assert "old.py" in listed
        assert old in found
        assert "needle = 1" in read
        await world.decide(only_change_set(session))
    assert (project / old).read_bytes() == b"needle = 2\r\n"
    assert (project / new).read_bytes() == b"n = 3\n"
