"""A long line is read, searched and edited in parts; what would be no text is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import sidecar

LINE = json.dumps({f"k{at}": "v" * 30 for at in range(2_000)} | {"k1000": "MIDDLE"})


async def run(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """One turn that makes these calls, a step each; the tools' answers."""
    script = [answer(tool_call(name, arguments)) for name, arguments in calls]
    async with sidecar([*script, answer(text("ok"))], roots=[root]) as world:
        await world.turn(await world.session(), "go")
        return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


async def test_a_long_line_is_read_on(tmp_path: Path) -> None:
    write(tmp_path, {"one.json": LINE})
    first, then, last = await run(
        tmp_path,
        ("read_file", {"path": "one.json"}),
        ("read_file", {"path": "one.json", "column": 2_001}),
        ("read_file", {"path": "one.json", "column": len(LINE) - 9}),
    )
    assert f"{LINE[:2000]} [{len(LINE) - 2000} characters cut]" in first
    assert first.endswith("[lines were cut; next: column=2001]")
    assert f"\t{LINE[2000:4000]} [" in then
    assert last.endswith(f"\t{LINE[-10:]}")


async def test_an_edit_inside_a_long_line_is_reported_shortly(tmp_path: Path) -> None:
    write(tmp_path, {"one.json": LINE})
    edit = {"old": '"k1000": "MIDDLE"', "new": '"k1000": "CENTRE"'}
    (reported,) = await run(tmp_path, ("propose_edit", {"path": "one.json", "edits": [edit]}))
    assert reported.startswith("Proposed")
    assert '"k1000": "MIDDLE"' in reported
    assert '"k1000": "CENTRE"' in reported
    assert len(reported) < 3_000


async def test_a_match_far_inside_a_line_is_shown(tmp_path: Path) -> None:
    write(tmp_path, {"min.js": "var a=1;" * 200_000 + "needle();" + "b();" * 9_000})
    (reported,) = await run(tmp_path, ("search_code", {"query": "needle", "path": "min.js"}))
    assert "var a=1;needle();b();" in reported
    assert len(reported) < 1_000


PATCH = "*** Begin Patch\n*** Add File: new.txt\n+a\0b\n*** End Patch"


@pytest.mark.parametrize(
    "call",
    [
        ("propose_edit", {"path": "a.txt", "edits": [{"old": "one", "new": "a\0b"}]}),
        ("propose_edit", {"input": PATCH}),
        ("propose_file", {"action": "create", "path": "new.txt", "content": "a\0b\n"}),
    ],
)
async def test_a_text_with_a_nul_is_refused(
    tmp_path: Path, call: tuple[str, dict[str, Any]]
) -> None:
    write(tmp_path, {"a.txt": "one\n"})
    (reported,) = await run(tmp_path, call)
    assert "would hold a NUL character" in reported
