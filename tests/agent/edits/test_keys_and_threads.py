"""A key typed while a thread is at work on an open text stays in it."""

import asyncio
import threading
from pathlib import Path

import pytest

from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.infrastructure.workspace import document
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS
from tests.agent.edits.test_forming import Reported, began, call, grow
from tests.support.edit_buffer import Buffer
from tests.support.edit_editor import Desk
from tests.support.files import link

TEXT = "a line of words\n" * (LARGE_CHARS // 16) + "the last\n"


def type_beside_threads(desk: Desk, buffer: Buffer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a thread cuts a text into lines, the user types before it is done."""
    loop = asyncio.get_running_loop()

    def split(text: str) -> list[str]:
        if threading.current_thread() is not threading.main_thread():
            typed = threading.Event()
            loop.call_soon_threadsafe(lambda: (desk.editor.type(buffer, 0, "key\n"), typed.set()))
            assert typed.wait(20)
        return split_lines(text)

    monkeypatch.setattr(document, "split_lines", split)


def assert_same(desk: Desk, buffer: Buffer) -> None:
    desk.editor.type(buffer, 0, "x")
    opened = desk.workspace.documents.get(buffer.uri)
    assert opened is not None
    assert opened.text == buffer.text
    assert "".join(opened.lines) == buffer.text


async def test_while_an_edit_of_a_large_text_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, reported = Desk(tmp_path), Reported()
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    type_beside_threads(desk, buffer, monkeypatch)
    emit = desk.sets.forming(reported, "t-1")
    began(emit)
    grow(emit, call("a.txt", ("the last", "THE LAST"))[:-2])
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    ((hunk,),) = (one.hunks for one in reported.forming)
    assert (hunk.new_text, hunk.range.start.line) == ("THE LAST\n", TEXT.count("\n") - 1)
    assert_same(desk, buffer)


async def test_while_a_file_is_looked_for_that_is_open_by_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    link(tmp_path / "other.txt", tmp_path / "a.txt")
    type_beside_threads(desk, buffer, monkeypatch)
    found = await desk.sets.session_files.fetch(path_to_uri(tmp_path / "other.txt"))
    assert found is desk.workspace.documents.get(buffer.uri)
    assert_same(desk, buffer)
