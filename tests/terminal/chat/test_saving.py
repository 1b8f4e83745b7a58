"""Accepted text on disk: the same file with another content, and never somebody else's lost."""

import io
import os
import sys
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.workspace.saving import save_file
from kode_sidecar.terminal.chat.files import ChatFiles
from kode_sidecar.terminal.chat.words import ENGLISH
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.labels import labels_for
from kode_sidecar.terminal.client.terminal import Terminal
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import World, only_change_set, sidecar

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
EDIT = tool_call("propose_edit", {"path": "a.txt", "edits": [{"old": "two", "new": "zwei 茶"}]})
BEFORE = b"one\r\ntwo\nthree"
AFTER = "one\r\nzwei 茶\nthree".encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_bytes(BEFORE)
    return path


def test_only_the_content_changes(file: Path) -> None:
    save_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]


@posix
def test_mode_and_links_stay(file: Path) -> None:
    file.chmod(0o755)
    link = file.with_name("link")
    link.symlink_to(file.name)
    save_file(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o755)
    other = file.with_name("hard")
    os.link(file, other)
    save_file(file, b"newer")
    assert other.read_bytes() == b"newer"
    assert {path.name for path in file.parent.iterdir()} == {"a.txt", "link", "hard"}


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may do anything")
def test_what_may_not_be_written_stays(file: Path) -> None:
    file.parent.chmod(0o500)  # the file may be written, its folder takes no other
    save_file(file, b"new")
    file.chmod(0o400)
    with pytest.raises(PermissionError):
        save_file(file, b"newer")
    file.parent.chmod(0o700)
    with pytest.raises(PermissionError):
        save_file(file, b"newer")
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_gone_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_file(tmp_path / "gone.txt", b"new")
    assert list(tmp_path.iterdir()) == []


async def decided(world: World, files: ChatFiles, file: Path) -> list[str]:
    """The keys of the outcome after the one hunk was accepted."""
    session = await world.session()
    await world.turn(session, "edit it")
    files.open(file.as_uri())
    result = await world.decide(only_change_set(session))
    return sorted(key for key in ("applied", "stale", "conflicts") if result[key])


def files_of(world: World) -> tuple[ChatFiles, io.StringIO]:
    shown = io.StringIO()
    terminal = Terminal(shown, labels_for("en"), color=False)
    return ChatFiles(world.editor, terminal, ENGLISH), shown


RESPONSES = [answer(EDIT), answer(text("ok"))]


@pytest.mark.program
async def test_a_file_that_is_written_while_the_edit_is_on_its_way(file: Path) -> None:
    async with sidecar(RESPONSES, roots=[file.parent]) as world:
        files, _ = files_of(world)
        assert files.editor.before_edit is not None
        refresh, times = files.editor.before_edit, []

        def write_first() -> None:
            if not times:
                file.write_bytes(b"zero\r\n" + BEFORE)
            times.append(1)
            refresh()

        files.editor.before_edit = write_first
        assert await decided(world, files, file) == ["applied"]
        assert file.read_bytes() == b"zero\r\n" + AFTER
        assert len(times) == 2


@pytest.mark.program
async def test_a_file_that_is_written_at_the_last_moment(file: Path) -> None:
    async with sidecar(RESPONSES, roots=[file.parent]) as world:
        files, _ = files_of(world)
        assert files.editor.write is not None
        write, times = files.editor.write, []

        def write_late(buffer: Buffer, wanted: str) -> None:
            if not times:
                file.write_bytes(b"zero\r\n" + BEFORE)
            times.append(wanted)
            write(buffer, wanted)

        files.editor.write = write_late
        assert await decided(world, files, file) == ["applied"]
        assert file.read_bytes() == b"zero\r\n" + AFTER
        assert len(times) == 2


@pytest.mark.program
async def test_what_cannot_be_written_was_not_applied(file: Path) -> None:
    async with sidecar(RESPONSES, roots=[file.parent]) as world:
        files, shown = files_of(world)

        def full(_buffer: Buffer, _text: str) -> None:
            raise OSError(28, "No space left on device")

        files.editor.write = full
        assert await decided(world, files, file) == ["conflicts"]
        assert file.read_bytes() == BEFORE
        assert world.editor.text(file.as_uri()) == BEFORE.decode()
        assert "is written" not in shown.getvalue()
