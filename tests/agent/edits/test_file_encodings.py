"""Files that are not open: only bytes that are understood are edited, the editor is asked first."""

import asyncio
import codecs
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import UndoParams
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import editor_charset
from tests.support.edit_editor import Desk
from tests.support.edit_texts import lf_edit, texts

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
    assert "第二行" in (await desk.use("read_file", path="new.txt")).content
    assert desk.editor.asked_to_open == []
    assert "第二行" in (await desk.use("read_file", path="旧.txt")).content
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


# (setting, codec, BOM) of the bytes on disk
FILES = [
    (None, "utf-8", b""),
    (None, "utf-8", codecs.BOM_UTF8),
    (None, "utf-16-le", codecs.BOM_UTF16_LE),
    (None, "utf-16-be", codecs.BOM_UTF16_BE),
    ("gbk", "gbk", b""),
    ("gb18030", "gb18030", b""),
    ("utf-16-le", "utf-16-le", b""),
    ("utf-16-be", "utf-16-be", b""),
]


@given(st.data(), st.sampled_from(FILES), texts(), st.booleans())
def test_bytes_outside_of_hunks_stay_as_they_are(  # E3
    data: st.DataObject, file: tuple[str | None, str, bytes], text: str, back: bool
) -> None:
    _, codec, _ = file
    text = text.encode(codec, "ignore").decode(codec)
    target = data.draw(lf_edit(to_lf(text))).encode(codec, "ignore").decode(codec)
    # Bytes that happen to be UTF-8 as well are taken for it, whatever the setting says.
    known = not any(_taken_for_utf8(each, file) for each in (text, target))
    if target != to_lf(text) and known:
        with tempfile.TemporaryDirectory() as root:
            asyncio.run(_edit_on_disk(Path(root).resolve(), file, text, target, back))


async def _edit_on_disk(
    root: Path, file: tuple[str | None, str, bytes], text: str, target: str, back: bool
) -> None:
    """Accept every hunk of a closed file; the editor reads, edits and saves it in its encoding."""
    setting, codec, bom = file
    desk = Desk(root, file_encoding=setting)
    path = root / "a.txt"
    before = bom + text.encode(codec)
    path.write_bytes(before)

    async def load_edit_and_save(edit: DocumentEdit) -> ApplyAnswer:
        buffer = desk.editor.open(path, path.read_bytes()[len(bom) :].decode(codec))
        answer = await desk.editor.obey(edit)
        path.write_bytes(bom + buffer.text.encode(codec))
        desk.editor.close(buffer)
        return answer

    desk.editor.on_apply = load_edit_and_save
    call = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")
    await desk.sets.proposals.propose("a.txt", lambda _document, _text: target, call)
    base = desk.updates[0].files[0].base
    assert base is not None
    assert base.bom is bool(bom)
    edits: list[Edit] = []
    for hunk in desk.hunks:
        assert hunk.range is not None
        start = sum(map(len, split_lines(text)[: hunk.range.start.line]))
        edits.append(Edit(start, start + len(hunk.old_text or ""), hunk.new_text or ""))
    await desk.accept(*(hunk.hunk_id for hunk in desk.hunks))
    assert path.read_bytes() == bom + apply_edits(text, edits).encode(codec)
    assert to_lf(path.read_bytes()[len(bom) :].decode(codec)) == target
    if back:
        params = UndoParams(change_set_id=desk.change_set_id)
        assert (await desk.sets.undo(desk.change_set_id, params)).conflicts == ()
        assert path.read_bytes() == before


def _taken_for_utf8(text: str, file: tuple[str | None, str, bytes]) -> bool:
    _, codec, bom = file
    data = text.encode(codec)
    if bom or b"\x00" in data:
        return False
    try:
        return data.decode() != text
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("alone", [False, True])
async def test_a_deleted_line_returns_though_another_hunk_brought_equal_ones_together(
    tmp_path: Path, alone: bool
) -> None:
    """What stands beside its place since then was our doing, not the user's."""
    desk = Desk(tmp_path)
    text = "a\n\na\na\n\n"
    buffer = desk.editor.open(desk.file("a.txt", text), text)
    call = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")
    await desk.sets.proposals.propose("a.txt", lambda _document, _text: "a\na\n\na\n", call)
    await desk.accept(*(hunk.hunk_id for hunk in desk.hunks))
    assert buffer.text == "a\na\n\na\n"
    scope = desk.hunks[1].hunk_id if alone else desk.change_set_id
    assert (await desk.sets.undo(scope, UndoParams())).conflicts == ()
    assert buffer.text == ("a\na\na\n\na\n" if alone else text)


@pytest.mark.parametrize("first", ["told", "opened"])
async def test_what_the_editors_encoding_cannot_hold_is_refused(tmp_path: Path, first: str) -> None:
    desk = Desk(tmp_path)
    path = desk.file("a.txt", "plain\n")  # its bytes look like UTF-8, whatever the editor makes
    documents = desk.workspace.documents
    if first == "told":
        documents.report_encoding(path_to_uri(path), "windows1252")
    buffer = desk.editor.open(path, "plain\n")
    if first == "opened":
        documents.report_encoding(buffer.uri, "windows1252")
    with pytest.raises(KodeError) as refused:
        await desk.edit("a.txt", ("plain", "价目"))
    assert (refused.value.code, desk.hunks) == ("Unencodable", [])
    assert "cp1252" in refused.value.message
    await desk.edit("a.txt", ("plain", "prix €"))
    documents.report_encoding(buffer.uri, "gbk")
    await desk.edit("a.txt", ("prix €", "价目"))
    desk.editor.close(buffer)
    desk.editor.open(path, "plain\n")  # another buffer: nothing was told of it
    await desk.edit("a.txt", ("价目", "😀"))


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("utf8bom", "utf-8"),
        ("UTF-8", "utf-8"),
        ("utf16le", "utf-8"),  # it holds any character
        ("ucs-2le", "utf-8"),
        ("windows1252", "cp1252"),
        ("windows874", "cp874"),
        ("iso88591", "iso8859-1"),
        ("latin1", "iso8859-1"),
        ("cp936", "gbk"),
        ("euc-cn", "gb2312"),
        ("gb18030", "gb18030"),
        ("shiftjis", "shift_jis"),
        ("koi8r", "koi8-r"),
        ("no such", ""),
        ("zlib", ""),
        ("", ""),
    ],
)
def test_the_names_that_editors_have_for_encodings(name: str, codec: str) -> None:
    assert editor_charset(name) == codec
