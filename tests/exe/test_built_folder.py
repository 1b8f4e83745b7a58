"""What only the folder build shows: the files in it are its own."""

import sys
import zlib
from pathlib import Path

import pytest

from freeze.contents import DATA, WIRE
from kode_sidecar.servers.boot.wire_files import COMPRESSED
from tests.exe.test_built import copied
from tests.support.model_script import answer, text, tool_call
from tests.support.program import BUILT, ONE_FILE
from tests.support.sidecar import sidecar

pytestmark = pytest.mark.skipif(BUILT is None or ONE_FILE, reason="no folder is tested")
INNER = Path(BUILT or "no program").with_name("_internal")
WIRE_FOLDER = INNER / "protocol"


def test_files_that_are_opened_by_name_are_those_of_the_project() -> None:
    for name, source in DATA.items():
        files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
        built = INNER / name
        assert {path.relative_to(built) for path in built.rglob("*") if path.is_file()} == files
        for path in files:
            assert (built / path).read_bytes() == (source / path).read_bytes()
    packed = {path.name: zlib.decompress(path.read_bytes()) for path in WIRE_FOLDER.iterdir()}
    assert packed == {path.name + COMPRESSED: path.read_bytes() for path in WIRE}


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script takes the place of rg")
async def test_children_get_no_library_path_of_ours(tmp_path: Path) -> None:  # W14
    program = copied(tmp_path / "kode")
    rg, seen = program.with_name("_internal") / "rg", tmp_path / "seen"
    rg.rename(rg.with_name("real-rg"))
    rg.write_text(f'#!/bin/sh\nenv > "{seen}"\nexec "{rg.with_name("real-rg")}" "$@"\n')
    rg.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("needle = 1\n")
    call = tool_call("search_code", {"query": "needle"})
    responses = [answer(call), answer(text("found"))]
    async with sidecar(responses, roots=[project], command=[str(program), "serve"]) as world:
        session = await world.session()
        await world.turn(session, "look")
        assert "needle = 1" in world.asked()["messages"][-1]["content"]
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    loader = {name for name in names if name.startswith(("LD_", "DYLD_", "_PYI", "PYTHON"))}
    assert loader == set()
