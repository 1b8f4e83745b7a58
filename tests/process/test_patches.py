"""Patches through the real process: nothing but the file that they name is changed."""

from pathlib import Path

import pytest

from tests.agent.edits.test_patches import NAMES, ONE_MEANING, TEXT, Patched
from tests.process.test_edit_variants import results, texts
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar


@pytest.mark.parametrize(
    "case",
    [
        TEXT["headers_behind_a_blank"],
        TEXT["a_patch_in_a_unified_diff"],
        TEXT["removed_lines_like_a_header_with_counts"],
        NAMES["a_folder_called_a"],
        NAMES["git_quotes_them"],
        NAMES["a_new_file_with_such_a_folder"],
        ONE_MEANING["three_sections"],
        ONE_MEANING["deleted_and_added"],
    ],
)
async def test_what_becomes_of_a_patch(tmp_path: Path, case: Patched) -> None:
    for path, content in case.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content.encode())
    script = [answer(tool_call("propose_edit", {"patch": case.patch})), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go", mode="auto")
        reported = results(world)[0]
        assert all(words in reported for words in case.refused), reported
        assert bool(session.change_sets) != bool(case.refused)
        if session.change_sets:
            assert only_change_set(session).hunks("applied")
        assert texts(world) == {Path(path).name: new for path, new in case.changed.items()}
        for path, content in case.files.items():
            assert (tmp_path / path).read_bytes().decode() == content  # nothing was deleted
