"""Arguments under the names of other tools: read, ignored with a note, or listed in the error."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.tools.list_files import ListFilesParams
from kode_sidecar.agent.tools.read_file import ReadFileParams
from kode_sidecar.agent.tools.search_code import SearchCodeParams
from kode_sidecar.core.text.tool_arguments import fitted, usual_path
from tests.process.test_edit_variants import results
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import sidecar

SEEN = "src/a.py:2: two"
PATH_READ = "fixed: `file_path` was read as `path`; one edit beside"
NO_BEGIN = "*** Update File: src/a.py\n@@\n-2\n+2!\n"
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("search_code", {"pattern": "two"}, SEEN),
    ("search_code", {"query": "two", "directory": "src"}, SEEN),
    ("search_code", {"query": "two", "path": None, "include": "*.py"}, SEEN),
    ("search_code", {"query": "TWO", "ignoreCase": True, "headLimit": 5}, SEEN),
    ("list_files", {"path": "src"}, "src/a.py"),
    ("list_files", {"glob": "*.py"}, "src/a.py"),
    ("read_file", {"file_path": "src/a.py", "offset": 2, "limit": 1}, "lines 2-2 of 3"),
    ("read_file", {"path": "src/a.py", "startLine": 2, "end_line": 2}, "lines 2-2 of 3"),
    ("read_file", {"path": "src/a.py:2-3"}, "lines 2-3 of 3"),
    ("read_file", {"path": "src/a.py#L2-L3"}, "lines 2-3 of 3"),
    ("read_file", {"path": " src/a.py"}, "lines 1-3 of 3"),
    ("read_file", {"path": "src/a.py", "colour": "red"}, "`colour` is none of its arguments"),
    ("read_file", {"line": 2}, "Its arguments are `path`, `start`, `end`"),
    ("propose_edit", {"file": "src/a.py", "edits": [{"find": "two", "new": "2"}]}, "Proposed"),
    ("propose_edit", {"file_path": "src/a.py", "old_string": "one", "new_string": "1"}, PATH_READ),
    ("propose_edit", {"patch": NO_BEGIN}, "does not begin with `*** Begin Patch`"),
    ("propose_edit", {"patch": f"*** begin patch\n{NO_BEGIN.lower()}*** end patch"}, "2!"),
    (
        "propose_edit",
        {"path": "src/a.py", "oldString": "three", "newString": "3", "expected": 1},
        "`expected` is none of its arguments",
    ),
]


@pytest.mark.program
async def test_calls_as_other_agents_write_them(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_bytes(b"one\ntwo\nthree\n")
    calls = [tool_call(name, given) for name, given, _ in CALLS]
    # From the second turn on the tools are those that the session began with.
    script = [answer(text("hello")), answer(*calls), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "hello")
        await world.turn(session, "go")
        reported = results(world)
        wrong = [
            (given, said)
            for (_, given, wanted), said in zip(CALLS, reported, strict=True)
            if wanted not in said
        ]
        assert not wrong


def test_a_name_of_its_own_is_never_renamed() -> None:
    given = {"query": "a", "glob": "*.py", "path": "src", "regex": True}
    assert fitted(given, SearchCodeParams) == (given, ())
    assert fitted({"pattern": "a", "query": "b"}, SearchCodeParams)[0] == {
        "query": "b",
        "glob": "a",
    }
    assert fitted({"directory": "x", "path": "y"}, ListFilesParams)[0] == {"directory": "x"}
    assert fitted({"path": "a", "start": 3, "limit": 2}, ReadFileParams)[0]["end"] == 4


@pytest.mark.parametrize("path", ["a.py", "src/a:b.md", "a:x", ""])
def test_a_path_that_only_looks_like_a_place(path: str) -> None:
    assert usual_path(path) is None
