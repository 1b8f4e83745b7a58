"""`kode/file/search`: what a client offers behind an `@`."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.sidecar import HANG_SECONDS, World, sidecar

pytestmark = pytest.mark.program

FILES = (
    *("README.md", "src/greetings.py", "src/茶/菜单.py", "src/tea/green_tea.py", "greet"),
    *("build/greetings.py", "node_modules/greet/index.js"),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    (folder / ".gitignore").write_text("build/\n")
    return folder


async def found(world: World, query: str, **more: Any) -> list[str]:
    params = {"query": query, **more}
    answer = await world.client.request("kode/file/search", params, HANG_SECONDS)
    return [one["path"] for one in answer["files"]]


async def test_files_are_found_by_letters_of_their_paths_the_best_first(project: Path) -> None:
    async with sidecar(roots=[project]) as world:
        assert await found(world, "greet") == ["greet", "src/greetings.py", "src/tea/green_tea.py"]
        assert await found(world, "GREETINGS") == ["src/greetings.py"]
        assert await found(world, "菜单") == ["src/茶/菜单.py"]
        assert await found(world, "s/gr") == ["src/greetings.py", "src/tea/green_tea.py"]
        assert await found(world, "src\\tea") == ["src/tea/green_tea.py"]
        assert await found(world, "zzz(") == []
        assert "node_modules/greet/index.js" not in await found(world, "")
        world.editor.open(project / "src" / "tea" / "green_tea.py")
        assert (await found(world, "gre"))[:2] == ["src/tea/green_tea.py", "greet"]
        params = {"query": "greet", "limit": 1}
        answer = await world.client.request("kode/file/search", params, HANG_SECONDS)
        uri = (project / "src" / "tea" / "green_tea.py").as_uri()
        assert answer == {"files": [{"uri": uri, "path": "src/tea/green_tea.py"}], "cut": True}
        with pytest.raises(RpcError, match=r"\$\.limit: give a number from 1 to 500"):
            await found(world, "greet", limit=0)


async def test_without_a_folder_nothing_is_found(tmp_path: Path) -> None:
    async with sidecar(roots=[]) as world:
        assert await found(world, "a") == []
