"""The tool as the model meets it: what it may do, and what it is told when it may not."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.core.kernel.contracts import ToolOutcome
from kode_sidecar.core.kernel.tool_runner import tool_specs
from kode_sidecar.core.text.uris import canonical_key, path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.tool_schema import normalize_schema
from kode_sidecar.infrastructure.workspace.document import text_rev
from tests.support.edit_editor import Desk

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def fails(desk: Desk, path: str, *pairs: tuple[str, str]) -> KodeError:
    with pytest.raises(KodeError) as failed:
        await desk.edit(path, *pairs)
    assert desk.updates == []
    return failed.value


def test_the_model_reads_a_description_and_a_schema(desk: Desk) -> None:
    tool = desk.tools["propose_edit"]
    assert not tool.read_only
    spec = tool_specs([tool])[0]
    assert spec.description.startswith("Propose changes")
    assert len(spec.description) < 700
    schema = normalize_schema(spec.schema)
    assert (schema["type"], schema["required"]) == ("object", ["path"])
    assert set(schema["properties"]) == {"path", "edits", "base_rev", "range", "new_content"}
    assert schema["properties"]["new_content"]["type"] == "string"


async def test_edits_are_sequential_and_told_as_one_diff(desk: Desk) -> None:
    desk.file("a.py", CODE)
    outcome = await desk.edit("a.py", ("def g():", "def h():"), ("def h():\n", "def h(x):\n"))
    assert desk.text("a.py") == CODE.replace("def g():", "def h(x):")
    assert "-def g():\n+def h(x):" in outcome.content
    assert "@@ -2,5 +2,5 @@" in outcome.content
    assert (
        f"[a.py · base_rev {text_rev(desk.text('a.py'))[:12]} · matched: exact]" in outcome.content
    )
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
    everywhere = {"old": "return 1", "new": "return 2", "replace_all": True}
    await desk.use("propose_edit", path="a.py", edits=[everywhere])
    assert desk.text("a.py") == CODE.replace("1", "2")


async def test_a_mended_quote_is_told(desk: Desk) -> None:
    desk.file("a.py", CODE)
    quoted = "     1\tdef f():\n     2\t    return 1"
    outcome = await desk.edit(
        "a.py", (quoted, "def f():\n    return 2"), ("DEF".lower() + " g():  ", "def h():")
    )
    assert desk.text("a.py") == CODE.replace("1", "2", 1).replace("g", "h")
    assert "Edit 1 fitted, but not as quoted: line numbers were taken off" in outcome.content
    assert "Edit 2 fitted, but not as quoted: blanks at the ends of lines" in outcome.content


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
    assert "U+5496 (咖), in line 1 " in error.message
    await desk.edit("latin.txt", ("café", "thé"))


async def test_a_closed_gbk_file_with_crlf_is_edited_in_its_own_terms(tmp_path: Path) -> None:
    desk = Desk(tmp_path, file_encoding="gbk")
    (tmp_path / "旧.txt").write_bytes("第一行\r\n第二行\r\n".encode("gbk"))
    await desk.edit("旧.txt", ("第二行", "第二行，改\n第三行"))
    base = desk.updates[0].files[0].base
    assert base is not None
    assert (base.encoding, base.eol, base.version) == ("gb18030", "\r\n", None)
    assert desk.hunks[0].new_text == "第二行，改\r\n第三行\r\n"


@pytest.mark.parametrize(
    ("encoding", "char", "code"),
    [
        ("gbk", "😀", "U+1F600"),
        ("gb18030", "", ""),
        ("big5", "们", "U+4EEC"),
        ("shift_jis", "ⓐ", "U+24D0"),
    ],
)
async def test_the_character_and_its_line_are_named(
    tmp_path: Path, encoding: str, char: str, code: str
) -> None:
    """A9. What says GBK may hold GB 18030, but an editor that saves GBK would lose the rest."""
    desk = Desk(tmp_path, file_encoding=encoding)
    desk.editor.reads_as = None
    (tmp_path / "a.txt").write_bytes("一\n二\n三\n".encode(encoding))
    if not char:
        await desk.edit("a.txt", ("二\n", "二😀\n"))
        return
    error = await fails(desk, "a.txt", ("二\n", f"二\nx\ny{char}\n"))
    assert error.code == "Unencodable"
    assert f"{encoding}, which has no {code} ({char}), in line 4 " in error.message.replace(
        "-", "_"
    )
    assert error.details is not None
    assert (error.details["character"], error.details["line"]) == (code, 4)


async def test_lone_carriage_returns_are_lines_where_the_editor_counts_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path, counts_lone_cr=True)
    (tmp_path / "cr.txt").write_bytes(b"a\rb\rc\r")
    await desk.edit("cr.txt", ("b\n", "B\n"))
    assert [hunk.new_text for hunk in desk.hunks] == ["B\r"]


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


async def test_an_old_base_rev_is_mentioned_where_the_quote_still_fits(desk: Desk) -> None:
    desk.file("a.py", CODE)
    known = text_rev(CODE)[:12]

    async def edit(old: str, new: str) -> ToolOutcome:
        edits = [{"old": old, "new": new}]
        return await desk.use("propose_edit", path="a.py", base_rev=known, edits=edits)

    assert "had changed" not in (await edit("def f", "def e")).content
    assert "had changed since" in (await edit("def g", "def h")).content


async def test_a_quote_of_a_text_that_is_gone_is_stale(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.py", CODE), CODE)
    read = await desk.use("read_file", path="a.py")
    known = re.findall(r"base_rev (\w+)", read.content)[0]
    desk.editor.type(buffer, CODE.index("g()"), "k", delete=1)
    edits = [{"old": "def g():", "new": "def h():"}]
    with pytest.raises(KodeError) as failed:
        await desk.use("propose_edit", path="a.py", edits=edits, base_rev=known)
    assert failed.value.code == "StaleBase"
    assert "-def g():\n+def k():" in failed.value.message


async def test_near_line_counts_lines_of_the_text_before_the_call(desk: Desk) -> None:
    desk.file("a.py", CODE)
    await desk.use(
        "propose_edit",
        path="a.py",
        edits=[
            {"old": "def f():\n", "new": "# one\n# two\n# three\ndef f():\n"},
            {"old": "    return 1\n", "new": "    return 2\n", "near_line": 6},
        ],
    )
    assert desk.text("a.py") == "# one\n# two\n# three\n" + CODE[:-2] + "2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py", "edit": {"old": "def g", "new": "def h"}},
        {"path": "a.py", "old_string": "def g", "new_string": "def h"},
        {"file_path": "a.py", "edits": [{"oldText": "def g", "newText": "def h"}]},
        {"path": "a.py", "edits": [{"old_str": "def g", "new_str": "def h"}]},
        {"path": "a.py", "edits": '[{"old": "def g", "new": "def h"}]'},
        {"patch": "*** Begin Patch\n*** Update File: a.py\n-def g():\n+def h():\n*** End Patch"},
    ],
)
async def test_other_names_of_the_arguments_are_understood_and_told(
    desk: Desk, arguments: dict[str, Any]
) -> None:
    desk.file("a.py", CODE)
    outcome = await desk.use("propose_edit", **arguments)
    assert desk.text("a.py") == CODE.replace("def g", "def h")
    assert "[Your arguments were fixed: " in outcome.content


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py"},
        {"path": "a.py", "edits": []},
        {"path": "a.py", "range": [1, 2], "new_content": "x"},
        {"path": "a.py", "range": [1, 2], "base_rev": "abc"},
        {"path": "a.py", "range": [1], "new_content": "x", "base_rev": "abc"},
        {"path": "a.py", "edits": [{"old": "a", "new": "b"}], "range": [1, 1]},
        {"patch": "*** Begin Patch\n*** Update File: a.py\n-def g():\n+def h():\n"},
        {"path": "a.py", "edits": [{"old": "a", "new": "b", "colour": "red"}]},
    ],
)
async def test_arguments_that_say_nothing_clear_are_refused(
    desk: Desk, arguments: dict[str, Any]
) -> None:
    desk.file("a.py", CODE)
    with pytest.raises((KodeError, msgspec.ValidationError)):
        await desk.use("propose_edit", **arguments)
    assert desk.updates == []


async def rev_of_read(desk: Desk, **lines: int) -> str:
    read = await desk.use("read_file", path="a.py", **lines)
    return re.findall(r"base_rev (\w+)", read.content)[0]


@pytest.mark.parametrize(
    ("new_content", "result"),
    [
        ("    return 7\n", CODE.replace("1", "7", 1)),
        ("    return 7", CODE.replace("1", "7", 1)),
        ("", CODE.replace("    return 1", "", 1)),
        (None, CODE.replace("    return 1\n", "", 1)),
    ],
)
async def test_lines_are_replaced_by_number(
    desk: Desk, new_content: str | None, result: str
) -> None:
    desk.file("a.py", CODE)
    rev = await rev_of_read(desk)
    outcome = await desk.use(
        "propose_edit", path="a.py", range=[2, 2], new_content=new_content, base_rev=rev
    )
    assert desk.text("a.py") == result
    assert f"base_rev {text_rev(result)[:12]}" in outcome.content


async def test_line_numbers_of_an_older_read_are_carried_along(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.py", CODE), CODE)
    rev = await rev_of_read(desk)
    await desk.edit("a.py", ("def f():\n", "def f():\n    # mine\n"))
    desk.editor.type(buffer, 0, "# the user's\n")
    outcome = await desk.use(
        "propose_edit", path="a.py", range=[5, 6], new_content="def h(): ...", base_rev=rev
    )
    assert "Lines 5-6 of that base_rev are 7-8 in the text of now." in outcome.content
    assert desk.text("a.py").endswith("\n\ndef h(): ...\n")


# A9: a model that has just read the file need not repeat which revision it was.
async def test_lines_of_the_newest_read_need_no_base_rev(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.py", CODE), CODE)
    call: dict[str, Any] = {"path": "a.py", "range": [5, 6], "new_content": "def h(): ..."}
    with pytest.raises(KodeError, match=r"not read a\.py, or have edited it") as unread:
        await desk.use("propose_edit", **call)
    assert unread.value.code == "InvalidArguments"
    await desk.use("read_file", path="a.py")
    desk.editor.type(buffer, 0, "# the user's\n")
    await desk.use("propose_edit", **call)
    assert desk.text("a.py").endswith("\n\ndef h(): ...\n")
    with pytest.raises(KodeError, match="have edited it since"):
        await desk.use("propose_edit", **call)  # which lines are these now?
    await desk.use("read_file", path="a.py")
    await desk.use("propose_edit", path="a.py", range=[1, 1], new_content="# ours")
    assert desk.text("a.py").startswith("# ours\ndef f()")


@pytest.mark.parametrize(
    ("read", "lines", "reason"),
    [
        ({"start": 1, "end": 3}, [3, 4], "unread"),
        ({"start": 1, "end": 6}, [6, 7], "not_found"),
        ({}, [2, 3], "stale"),
        ({}, [1, 1], "stale"),
    ],
)
async def test_lines_that_were_not_shown_or_have_changed(
    desk: Desk, read: dict[str, int], lines: list[int], reason: str
) -> None:
    buffer = desk.editor.open(desk.file("a.py", CODE), CODE)
    rev = await rev_of_read(desk, **read)
    if reason == "stale":
        desk.editor.type(buffer, CODE.index("    return"), "    x = 1\n")
    with pytest.raises(KodeError) as failed:
        await desk.use("propose_edit", path="a.py", range=lines, new_content="x", base_rev=rev)
    assert failed.value.details == {"reason": reason}
    assert desk.updates == []


async def test_a_revision_that_was_never_shown(desk: Desk) -> None:
    desk.file("a.py", CODE)
    rev = text_rev(CODE)[:12]
    with pytest.raises(KodeError, match="no base_rev"):
        await desk.use("propose_edit", path="a.py", range=[1, 1], new_content="x", base_rev=rev)


async def test_an_omission_is_not_an_edit(desk: Desk) -> None:
    desk.file("a.py", CODE)
    error = await fails(desk, "a.py", ("    return 1\n\n", "    # ... existing code ...\n\n"))
    assert error.details == {"reason": "placeholder"}
    desk.file("b.py", "# ... existing code ...\na = 1\n")
    await desk.edit("b.py", ("code ...\na = 1", "code ...\na = 2"))


PATCH = """*** Begin Patch
*** Update File: a.py
@@ def g():
-    return 1
+    return 2
*** Update File: b.txt
-{old}
+new
*** Add File: sub/c.txt
+hello
*** Delete File: d.txt
*** End Patch"""


async def test_a_patch_of_several_files_is_all_or_nothing(desk: Desk) -> None:
    desk.file("a.py", CODE)
    desk.file("b.txt", "old\n")
    desk.file("d.txt", "gone\n")
    with pytest.raises(KodeError) as failed:
        await desk.use("propose_edit", input=PATCH.format(old="other"))
    assert failed.value.message.startswith("b.txt, chunk 1 of 1: ")
    assert desk.updates == []
    await desk.use("propose_edit", input=PATCH.format(old="old"))
    assert desk.text("a.py") == CODE[:-2] + "2\n"
    assert (desk.text("b.txt"), desk.text("sub/c.txt")) == ("new\n", "hello\n")
    assert sorted(str(hunk.kind) for hunk in desk.hunks) == ["create", "delete", "modify", "modify"]


async def test_a_patch_that_adds_what_exists_is_refused(desk: Desk) -> None:
    desk.file("a.py", CODE)
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"
    with pytest.raises(KodeError) as failed:
        await desk.use("propose_edit", patch=patch)
    assert failed.value.details == {"reason": "exists"}


async def test_reads_say_that_pending_edits_are_in_them(desk: Desk) -> None:
    desk.editor.open(desk.file("a.py", "disk\n"), CODE)
    await desk.edit("a.py", ("def g", "def h"))
    view = desk.sets.session_files.view(desk.workspace.document("a.py", purpose="read"))
    assert view.note == "from the editor's open buffer, with your pending edits (1 not yet applied)"
    assert list(desk.sets.session_files.pending_paths()) == [
        canonical_key(path_to_uri(desk.root / "a.py"))
    ]
