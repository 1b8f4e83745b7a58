"""`load_skill` as a model calls it (B8)."""

from pathlib import Path

import pytest

from kode_sidecar.agent.context.skills import SkillLibrary, SkillSource
from kode_sidecar.agent.tools.knowledge import load_skill_tool
from kode_sidecar.core.kernel.contracts import Tool
from kode_sidecar.errors import KodeError
from tests.support.files import call, write
from tests.support.skill_files import write_skill


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    folder = write_skill(tmp_path, "review", "Look twice.\n", permissions="[run_command]")
    write(folder, {"references/style.md": "# Style\nShort.\n"})
    write(tmp_path, {"broken/SKILL.md": "nothing"})
    library = SkillLibrary(lambda: [SkillSource("user", tmp_path)])
    return load_skill_tool(library.catalog)


async def test_a_skill_and_its_files_are_read(tool: Tool) -> None:
    loaded = await call(tool, id="review")
    assert loaded.ok
    assert loaded.summary == "Loaded the skill review: Review"
    assert "Look twice." in loaded.content
    assert "which grants nothing" in loaded.content  # B9: a declaration, never a grant
    read = await call(tool, id="review", file="references/style.md", start=2)
    assert read.content.endswith("from line 2 of 2]\nShort.\n")
    assert tool.read_only


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"id": "revue"}, "SkillNotFound"),
        ({"id": "broken"}, "SkillInvalid"),
        ({"id": "review", "file": "../broken/SKILL.md"}, "PathOutsideRoots"),
        ({"id": "review", "file": "references/style.md", "start": 9}, "InvalidArguments"),
    ],
)
async def test_failures_say_what_to_do(tool: Tool, arguments: dict[str, object], code: str) -> None:
    with pytest.raises(KodeError) as caught:
        await call(tool, **arguments)
    assert caught.value.code == code
