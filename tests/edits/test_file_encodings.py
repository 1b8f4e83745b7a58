"""Files that are not open: only bytes that are understood are edited, the editor is asked first."""

from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ToolCall
from kode_sidecar.tools.read_file import ReadFileParams, read_file_tool
from tests.support.edit_editor import Desk

TEXT = "第一行\r\n第二行\r\n"


@pytest.mark.parametrize("setting", [None, "gbk"])
async def test_the_editor_opens_a_gbk_file_and_its_text_is_used(
    tmp_path: Path, setting: str | None
) -> None:
    desk = Desk(tmp_path, file_encoding=setting)
    (tmp_path / "旧.txt").write_bytes(TEXT.encode("gbk"))
    desk.editor.reads_as = "gbk"
    await desk.edit("旧.txt", ("第二行", "第二行，改"))
    assert len(desk.editor.asked_to_open) == 1
    assert desk.updates[0].files[0].version == 1
    assert (await desk.accept(desk.hunks[0].hunk_id)).verified is True
    (buffer,) = desk.editor.buffers.values()
    assert buffer.text == TEXT.replace("第二行", "第二行，改")


async def test_an_editor_that_cannot_open_it_leaves_it_uneditable(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "旧.txt").write_bytes(TEXT.encode("gbk"))
    with pytest.raises(KodeError) as refused:
        await desk.edit("旧.txt", ("第二行", "改"))
    assert refused.value.code == "NotEditable"
    assert "fileEncoding" in refused.value.message


async def test_reading_asks_only_for_what_cannot_be_read_otherwise(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.editor.reads_as = "gbk"
    (tmp_path / "旧.txt").write_bytes(TEXT.encode("gbk"))
    desk.file("new.txt", TEXT)
    files = desk.sets.session_files
    tool = read_file_tool(desk.workspace, files.view, None, files.load)
    call = ToolCall("tool-1", "read_file", "s-1", "t-1", "m-1")
    assert "第二行" in (await tool.run(ReadFileParams("new.txt"), call)).content
    assert desk.editor.asked_to_open == []
    assert "第二行" in (await tool.run(ReadFileParams("旧.txt"), call)).content
    assert len(desk.editor.asked_to_open) == 1


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be", "gb18030"])
async def test_the_setting_says_what_utf_8_and_a_bom_do_not(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, file_encoding=name)
    encoding = "utf-16-le" if name == "utf-16" else name
    (tmp_path / "a.txt").write_bytes(TEXT.encode(encoding))
    desk.file("plain.txt", "plain\n")
    await desk.edit("a.txt", ("第二行", "第二行 😀"))
    base = desk.updates[0].files[0].base
    assert base is not None
    assert (base.encoding, base.bom) == (encoding, False)
    assert desk.text("plain.txt") == "plain\n"


async def test_a_binary_file_stays_one_with_every_setting(tmp_path: Path) -> None:
    desk = Desk(tmp_path, file_encoding="utf-16-le")
    (tmp_path / "a.bin").write_bytes(b"\x00\xd8\x00\xd8odd")
    with pytest.raises(KodeError) as refused:
        await desk.edit("a.bin", ("a", "b"))
    assert refused.value.code == "NotEditable"
