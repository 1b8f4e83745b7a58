"""How open folders are held while a sandboxed command runs: alone, with placeholders. W12"""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.commands.held_folders import alone_in, placeholders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no sandbox on Windows")


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (["a"], ["a"], True),
        (["a"], ["a/sub"], True),
        (["a/sub"], ["a"], True),
        (["b", "a"], ["c", "a/sub"], True),
        (["a/sub"], ["a/other"], False),
        (["a"], ["b"], False),
    ],
)
async def test_who_waits_for_whom(
    tmp_path: Path, first: list[str], second: list[str], *, waits: bool
) -> None:
    for name in ("a/sub", "a/other", "b", "c"):
        (tmp_path / name).mkdir(parents=True)

    async def run() -> None:
        async with alone_in([tmp_path / name for name in second]):
            pass

    async with alone_in([tmp_path / name for name in first]):
        task = asyncio.create_task(run())
        done, _ = await asyncio.wait({task}, timeout=0.3 if waits else 60)
        assert bool(done) is not waits
    async with asyncio.timeout(60):
        await task


async def test_a_folder_that_cannot_be_opened_is_not_waited_for(tmp_path: Path) -> None:
    async with asyncio.timeout(60), alone_in([tmp_path / "missing"]):
        pass


def test_they_are_there_meanwhile_only(tmp_path: Path) -> None:
    wanted = [tmp_path / ".vscode", tmp_path / "missing" / ".vscode"]
    with placeholders(wanted) as held:
        assert list(held) == wanted[:1]
        assert os.listdir(tmp_path) == [".vscode"]
    assert os.listdir(tmp_path) == []


def test_what_the_user_has_or_makes_stays(tmp_path: Path) -> None:
    own, filled = tmp_path / ".idea", tmp_path / ".vscode"
    own.mkdir()
    with placeholders([own, filled]) as held:
        assert held == (filled,)
        (filled / "settings.json").write_text("{}")
    assert own.is_dir()
    assert (filled / "settings.json").read_text() == "{}"
    assert filled.stat().st_mode & 0o777 == 0o755


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o710)
    (tmp_path / ".vscode").symlink_to("target")
    with placeholders([tmp_path / ".vscode"]) as held:
        assert held == ()
    assert (tmp_path / "target").is_dir()


def test_one_that_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    place = tmp_path / ".vscode"
    place.mkdir()
    place.chmod(0o710)
    with placeholders([place]) as held:
        assert held == (place,)
    assert not place.exists()
