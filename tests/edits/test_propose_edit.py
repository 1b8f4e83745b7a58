"""The tool as the model meets it: what it may do, and what it is told when it may not."""

from pathlib import Path

import msgspec
import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ToolCall
from kode_sidecar.tools.propose_edit import ProposeEditParams, Replacement, propose_edit_tool
from kode_sidecar.workspace.document import text_rev
from kode_sidecar.workspace.uris import canonical_key, path_to_uri
from tests.support.edit_editor import Desk

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"
CALL = ToolCall("t", "propose_edit", "s-1", "t-1", "m-1")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def fails(desk: Desk, path: str, *pairs: tuple[str, str]) -> KodeError:
    with pytest.raises(KodeError) as failed:
        await desk.edit(path, *pairs)
    assert desk.updates == []
    return failed.value


def test_the_model_reads_a_description_and_a_schema(desk: Desk) -> None:
    tool = propose_edit_tool(desk.sets.proposals)
    assert "Propose changes" in str(tool.params.__doc__)
    assert not tool.read_only
    schema = msgspec.json.schema(tool.params)["$defs"]["ProposeEditParams"]
    assert schema["required"] == ["path", "edits"]


async def test_edits_are_sequential_and_told_as_one_diff(desk: Desk) -> None:
    desk.file("a.py", CODE)
    outcome = await desk.edit("a.py", ("def g():", "def h():"), ("def h():\n", "def h(x):\n"))
    assert desk.text("a.py") == CODE.replace("def g():", "def h(x):")
    assert "-def g():\n+def h(x):" in outcome.content
    assert "@@ -2,5 +2,5 @@" in outcome.content
    assert f"base_rev {text_rev(desk.text('a.py'))[:12]}" in outcome.content
    assert outcome.summary == "Proposed 1 hunk in a.py"
    assert outcome.data == {"changeSetId": desk.change_set_id, "hunkIds": ["h1"]}


async def test_one_edit_that_does_not_fit_stops_all(desk: Desk) -> None:
    desk.file("a.py", CODE)
    error = await fails(desk, "a.py", ("def g():", "def h():"), ("missing", "x"))
    assert error.message.startswith("Edit 2 of 2: ")
    assert "No edit of this call was done." in error.message
    assert error.details == {"reason": "not_found"}
    assert desk.text("a.py") == CODE


async def test_an_ambiguous_edit_is_never_guessed(desk: Desk) -> None:
    desk.file("a.py", CODE)
    error = await fails(desk, "a.py", ("return 1", "return 2"))
    assert "lines 2, 6" in error.message
    call_all = ProposeEditParams("a.py", [Replacement("return 1", "return 2", replace_all=True)])
    await propose_edit_tool(desk.sets.proposals).run(call_all, CALL)
    assert desk.text("a.py") == CODE.replace("1", "2")


async def test_line_numbers_in_a_quote_are_noticed(desk: Desk) -> None:
    desk.file("a.py", CODE)
    quoted = "     1\tdef f():\n     2\t    return 1"
    assert "line numbers" in (await fails(desk, "a.py", (quoted, "x"))).message


async def test_edits_that_cancel_out_are_refused(desk: Desk) -> None:
    desk.file("a.py", CODE)
    error = await fails(desk, "a.py", ("def g():", "def h():"), ("def h():", "def g():"))
    assert "nothing would change" in error.message


async def test_crlf_from_the_model_means_a_line_end(desk: Desk) -> None:
    desk.file("a.py", CODE.replace("\n", "\r\n"))
    await desk.edit("a.py", ("def g():\r\n", "def h():\r\n    pass\r\n"))
    assert desk.hunks[0].new_text == "def h():\r\n    pass\r\n"


async def test_the_final_newline_stays(desk: Desk) -> None:
    desk.file("a.py", "a\nb\n")
    await desk.edit("a.py", ("b\n", "c"))
    assert desk.text("a.py") == "a\nc\n"


async def test_an_empty_file_takes_an_empty_old(desk: Desk) -> None:
    desk.file("a.py", "")
    await desk.edit("a.py", ("", "first\n"))
    assert desk.text("a.py") == "first\n"


async def test_a_character_the_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, file_encoding="cp1252")
    (tmp_path / "latin.txt").write_bytes("caf\u00e9\n".encode("cp1252"))
    error = await fails(desk, "latin.txt", ("café", "咖啡"))
    assert error.code == "Unencodable"
    assert "U+5496 (咖)" in error.message
    await desk.edit("latin.txt", ("café", "thé"))


async def test_a_closed_gbk_file_with_crlf_is_edited_in_its_own_terms(tmp_path: Path) -> None:
    desk = Desk(tmp_path, file_encoding="gbk")
    (tmp_path / "旧.txt").write_bytes("第一行\r\n第二行\r\n".encode("gbk"))
    await desk.edit("旧.txt", ("第二行", "第二行，改\n第三行"))
    base = desk.updates[0].files[0].base
    assert base is not None
    assert (base.encoding, base.eol, base.version) == ("gb18030", "\r\n", None)
    assert desk.hunks[0].new_text == "第二行，改\r\n第三行\r\n"


async def test_a_lone_surrogate_is_refused(desk: Desk) -> None:
    desk.file("a.py", CODE)
    assert (await fails(desk, "a.py", ("def g", "\ud800"))).code == "Unencodable"


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("cr.txt", b"a\rb\r", "NotEditable"),
        ("latin.txt", b"caf\xe9\n", "NotEditable"),
        ("binary.bin", b"a\x00b", "NotEditable"),
        ("big.txt", b"a\n" * 5_000_001, "TooLarge"),
        (".git/config", b"a\n", "Denied"),
    ],
)
async def test_what_is_never_edited(desk: Desk, name: str, data: bytes, code: str) -> None:
    path = desk.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    assert (await fails(desk, name, ("a", "b"))).code == code


async def test_a_missing_file_and_one_outside_are_refused(desk: Desk) -> None:
    assert (await fails(desk, "nope.txt", ("a", "b"))).code == "NotFound"
    assert (await fails(desk, "../x.txt", ("a", "b"))).code == "PathOutsideRoots"


async def test_an_old_base_rev_is_mentioned_not_refused(desk: Desk) -> None:
    desk.file("a.py", CODE)
    tool = propose_edit_tool(desk.sets.proposals)
    known = text_rev(CODE)[:12]
    params = ProposeEditParams("a.py", [Replacement("def f", "def e")], base_rev=known)
    assert "had changed" not in (await tool.run(params, CALL)).content
    params = ProposeEditParams("a.py", [Replacement("def g", "def h")], base_rev=known)
    assert "had changed since" in (await tool.run(params, CALL)).content


async def test_reads_say_that_pending_edits_are_in_them(desk: Desk) -> None:
    desk.editor.open(desk.file("a.py", "disk\n"), CODE)
    await desk.edit("a.py", ("def g", "def h"))
    view = desk.sets.session_files.view(desk.workspace.document("a.py", purpose="read"))
    assert view.note == "from the editor's open buffer, with your pending edits (1 not yet applied)"
    assert list(desk.sets.pending_paths()) == [canonical_key(path_to_uri(desk.root / "a.py"))]
