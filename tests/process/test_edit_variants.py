"""Edits as models write them and users answer them, over real stdio: every text as it should be."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.uris import file_path
from kode_sidecar.infrastructure.workspace.document import text_rev
from tests.support.mannered_editor import ManneredEditor, Manners
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar


@dataclass(frozen=True)
class Case:
    """A file, what the model quotes and puts there, and the text that must come of it.

    `refused` is what the model must read instead; then the text stays as it is.
    """

    before: str
    old: str
    new: str
    after: str = ""
    refused: str = ""

    def call(self, name: str) -> Any:
        edits = [{"old": self.old, "new": self.new}]
        return tool_call("propose_edit", {"path": name, "edits": edits})


def results(world: World) -> list[str]:
    """What the tools answered, as the model's last request holds it."""
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


async def undo(world: World, session: SessionFold) -> dict[str, Any]:
    params = {"changeSetId": only_change_set(session).id}
    return await world.client.request("kode/changeSet/undo", params, HANG_SECONDS)


def texts(world: World) -> dict[str, str]:
    """Every buffer by the name of its file."""
    return {file_path(buffer.uri).name: buffer.text for buffer in world.editor.buffers}


async def play(folder: Path, cases: dict[str, Case]) -> None:
    """One turn with a call for each case, all accepted, then all undone."""
    names = {f"{at}.txt": case for at, case in enumerate(cases.values())}
    before = {name: case.before for name, case in names.items()}
    for name, case in names.items():
        (folder / name).write_bytes(case.before.encode())
    script = [answer(*(case.call(name) for name, case in names.items())), answer(text("ok"))]
    async with sidecar(script, roots=[folder]) as world:
        session = await world.session()
        for name in names:
            world.editor.open(folder / name)
        await world.turn(session, "go")
        reported = dict(zip(names, results(world), strict=True))
        for name, case in names.items():
            assert (case.refused or "not yet applied") in reported[name], case
        if session.change_sets:
            assert (await world.decide(only_change_set(session)))["verified"] is True
        for name, case in names.items():
            wanted = case.before if case.refused else case.after
            assert texts(world)[name] == wanted, case
        if session.change_sets:
            assert not (await undo(world, session))["conflicts"]
        assert texts(world) == before


LOOK_ALIKES = {
    "brackets and a dash around what changes": Case(
        "见（图 1）——说明\n", "见(图 1)--说明", "见(图 2)--说明", "见（图 2）——说明\n"
    ),
    "a pair over lines, one more between": Case(
        "“首行\n末行”、尾\n",
        '"首行\n末行"、尾',
        '"首行\n中间\n末行"、尾',
        "“首行\n中间\n末行”、尾\n",
    ),
    "an apostrophe beside quotes that become others": Case(
        "it’s “x”\n", 'it\'s "x"', "it's 'x'", "it’s 'x'\n"
    ),
    "one bracket of two goes": Case("a（b）c\n", "a(b)c", "a(bc", "a(bc\n"),
    "a call grows an argument": Case(
        "print（“甲”，x）；\n", 'print("甲",x);', 'print("甲",x,"乙");', 'print（“甲”，x,"乙"）；\n'
    ),
    "a dash that becomes a plus": Case("a — b — c\n", "a - b - c", "a + b - c", "a + b — c\n"),
    "nested brackets": Case("f（g（x））\n", "f(g(x))", "f(h(x))", "f（h（x））\n"),
    "the inner brackets go": Case("f（g（x））\n", "f(g(x))", "f(x)", "f（x）\n"),
    "full-width blanks stay": Case("名　=　1\n", "名 = 1", "名 = 2", "名　=　2\n"),
    "two lines, one of them another": Case(
        "“a”—“b”\n（c）\n", '"a"-"b"\n(c)', '"a"-"b"\n[c]', "“a”—“b”\n[c]\n"
    ),
    "two depths in a file of tabs": Case(
        "\tif x:\n\t\tgo()\n",
        "    if x:\n        go()\n",
        "    if x:\n        go()\n        stop()\n",
        "\tif x:\n\t\tgo()\n\t\tstop()\n",
    ),
    "deeper by half a tab": Case(
        "\tif x:\n", "    if x:\n", "    if x:\n      go()\n", refused="another indentation"
    ),
    "tabs in a file of blanks": Case(
        "  go()\n  stop()\n",
        "\tgo()\n\tstop()\n",
        "\tif y:\n\t\tgo()\n\tstop()\n",
        "  if y:\n    go()\n  stop()\n",
    ),
}


async def test_look_alikes_are_never_put_together_by_halves(tmp_path: Path) -> None:
    await play(tmp_path, LOOK_ALIKES)


LEFT_OUT = [
    "// ... keep existing handlers ...",
    "<!-- rest of the page unchanged -->",
    "# [50 lines unchanged]",
    "/* same as before */",
    "[rest of the file unchanged]",
    "# ... more tests ...",
    "// ... 50 lines omitted ...",
    "（其余代码不变）",
]
LITERAL = [
    "{...props}",
    "[...others, last]",
    "def f(x): ...",
    "match (first, ...rest)",
    'log("... existing code ...")',
    ">>> x = [\n... other\n... ]",
    "# keeps the rest of the line",
    "let [head, ...remaining] = xs;",
]


async def test_what_leaves_text_out_is_refused_and_what_looks_like_it_is_not(
    tmp_path: Path,
) -> None:
    refused = {line: Case("a\nb\n", "a\n", f"{line}\n", refused="left out") for line in LEFT_OUT}
    taken = {line: Case("a\nb\n", "a\n", f"{line}\n", f"{line}\nb\n") for line in LITERAL}
    await play(tmp_path, refused | taken)


LINE_ENDS = {
    "each replaced line keeps its own": Case(
        "a\r\nb\nc\r\nd\n", "b\nc\nd", "B\nC\nD", "a\r\nB\nC\r\nD\n"
    ),
    "a line more": Case("a\r\nb\r\nc\n", "b\nc\n", "b\nnew\nc\n", "a\r\nb\r\nnew\r\nc\n"),
    "a line less": Case("a\nb\r\nc\nd\r\n", "b\nc\n", "c\n", "a\nc\nd\r\n"),
    "the last one without an end": Case("a\r\nb\nc", "b\nc", "B\nC", "a\r\nB\nC"),
    "a quote in CRLF of a file in LF": Case("a\nb\n", "a\r\nb", "A\r\nB", "A\nB\n"),
    "a form feed in the quote": Case("one\n\x0c\ntwo\n", "one\n\ntwo", "1\n\n2", refused="U+000C"),
    "a form feed left out of the quote": Case(
        "one\x0ctwo\nthree\n", "three", "3", "one\x0ctwo\n3\n"
    ),
    "an escape in the quote": Case("\x1b[1mbold\n", "[1mbold", "[0mbold", "\x1b[0mbold\n"),
    "an escape inside of it": Case("x\x1b[1mbold\n", "x[1mbold", "y", refused="U+001B"),
    "a C1 control": Case("x\x85y\n", "xy", "z", refused="U+0085"),
}


async def test_line_ends_and_hidden_characters(tmp_path: Path) -> None:
    await play(tmp_path, LINE_ENDS)


# ---- what the user does meanwhile, or puts there -------------------------------------------------


def typing(at: int, text: str, delete: int = 0) -> Callable[[ManneredEditor], None]:
    """Keys that the user types into the only buffer, and that are told at once."""

    def keys(editor: ManneredEditor) -> None:
        (buffer,) = editor.buffers
        editor.type(buffer, at, text, delete=delete)

    return keys


REFUSALS = {
    "typed before it": (Manners(before_edit=typing(4, "!")), "one\n!two\nthree\n"),
    "typed behind it": (Manners(before_edit=typing(7, "!")), "one\ntwo!\nthree\n"),
    "a line more in it": (Manners(before_edit=typing(5, "\n")), "one\nt\nwo\nthree\n"),
    "taken away": (Manners(before_edit=typing(4, "", 4)), "one\nthree\n"),
    "refused while the user types": (
        Manners(refuse="read-only", after_edit=typing(5, "22")),
        "one\nt22wo\nthree\n",
    ),
    "dropped, and called applied": (
        Manners(drop_edits=True, after_edit=typing(5, "22")),
        "one\nt22wo\nthree\n",
    ),
    "told late": (
        Manners(refuse="busy", after_edit=typing(6, "x"), answer_first=True),
        "one\ntwxo\nthree\n",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_the_user_typed_under_an_edit_stays(tmp_path: Path, name: str) -> None:
    manners, wanted = REFUSALS[name]
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n", newline="")
    call = Case("", "two", "TWO").call("a.txt")
    script = [answer(call), answer(text("ok")), answer(text("so"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        buffer = world.editor.open(tmp_path / "a.txt")
        await world.turn(session, "go")
        change_set = only_change_set(session)
        world.editor.manners.__dict__ |= manners.__dict__
        decided = await world.decide(change_set)
        assert (len(decided["conflicts"]), decided["applied"], buffer.text) == (1, [], wanted)
        world.editor.manners.__dict__ |= Manners().__dict__
        (hunk,) = (one for file in change_set.files.values() for one in file.hunks.values())
        assert hunk.state == ("diverged" if name.startswith("dropped") else "conflict")
        again = [{"hunkId": hunk.id, "action": "accept"}]
        assert (await world.decide(change_set, decisions=again))["applied"] == []
        assert buffer.text == wanted
        await world.turn(session, "and now?")
        reported = str(world.asked()["messages"])
        assert (
            "the text there changed meanwhile" in reported
            or "the text there is another" in reported
        )


LINES = "one\ntwo\nthree\nfour\n"
A_LINE_OFF = {
    "replaced": ("two", "TWO", typing(8, "TWOee", 5)),
    "added below": ("two\n", "two\nnew\n", typing(14, "new\n")),
    "added above": ("two\n", "two\nnew\n", typing(4, "new\n")),
    "taken": ("two\n", "", typing(8, "", 6)),
    "put for two": ("two\nthree\n", "2\n3\n", typing(0, "2\n3\n", 8)),
}


@pytest.mark.parametrize("name", A_LINE_OFF)
async def test_an_edit_that_lands_a_line_off_is_diverged(tmp_path: Path, name: str) -> None:
    old, new, landing = A_LINE_OFF[name]
    (tmp_path / "a.txt").write_text(LINES, newline="")
    script = [answer(Case("", old, new).call("a.txt")), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        world.editor.open(tmp_path / "a.txt")
        await world.turn(session, "go")
        world.editor.manners.__dict__ |= Manners(drop_edits=True, after_edit=landing).__dict__
        decided = await world.decide(only_change_set(session))
        assert (decided["applied"], decided["verified"]) == ([], False)
        (hunk,) = only_change_set(session).hunks("diverged")
        assert hunk.info["diff"]


OWN_TEXTS = {
    "lines without their end": (Case("a\nb\nc\n", "b", "B"), "x\ny", "a\nx\ny\nc\n"),
    "in CRLF": (Case("a\r\nb\r\nc\r\n", "b", "B"), "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
    "in mixed ends": (Case("a\r\nb\nc\r\n", "a\nb", "A\nB"), "x\ny", "x\r\ny\nc\r\n"),
    "where lines go": (Case("a\nb\nc\n", "b\n", ""), "kept", "a\nkept\nc\n"),
    "above the first line": (Case("a\nb\n", "a\n", "new\na\n"), "own", "own\na\nb\n"),
    "nothing at all": (Case("a\nb\nc\n", "b", "B"), "", "a\nc\n"),
    "an empty line": (Case("a\nb\nc\n", "b", "B"), "\n", "a\n\nc\n"),
    "below the last line": (Case("a\nb", "b", "b\nc"), "b\nown", "a\nb\nown"),
    "of an empty file": (Case("", "", "all"), "own", "own"),
    "ends with a carriage return": (Case("a\nb\n", "a", "A"), "x\r", "x\nb\n"),
}


async def test_the_users_own_text_never_takes_the_next_line_along(tmp_path: Path) -> None:
    names = {f"{at}.txt": one for at, one in enumerate(OWN_TEXTS.values())}
    for name, (case, _, _) in names.items():
        (tmp_path / name).write_bytes(case.before.encode())
    calls = [case.call(name) for name, (case, _, _) in names.items()]
    async with sidecar([answer(*calls), answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        for name in names:
            world.editor.open(tmp_path / name)
        await world.turn(session, "go")
        change_set = only_change_set(session)
        hunks = {file.path: next(iter(file.hunks)) for file in change_set.files.values()}
        decisions = [
            {"hunkId": hunks[name], "action": "replace", "newText": own}
            for name, (_, own, _) in names.items()
        ]
        assert (await world.decide(change_set, decisions=decisions))["verified"] is True
        for name, (case, own, wanted) in names.items():
            assert texts(world)[name] == wanted, (case, own)
        assert not (await undo(world, session))["conflicts"]
        assert texts(world) == {name: case.before for name, (case, _, _) in names.items()}


# ---- patches, new files, files that move ---------------------------------------------------------

PATCHED = {
    "a.py": "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 1\n",
    "win.txt": "one\r\ntwo\r\nthree\r\n",
    "keep.txt": "kept\n",
    "gone.txt": "bye\n",
}
APPLY_PATCH = """
*** Begin Patch

  *** Update File: a.py
  *** Move to: deep/er/b.py
@@ def g():
-    return 1
+    return 2

*** Update File: win.txt
@@
+four
*** End of File

*** Add File: fresh/new.txt
+新

*** Delete File: gone.txt

*** End Patch
"""
UNIFIED = """diff --git a/a.py b/deep/er/b.py
similarity index 90%
rename from a.py
rename to deep/er/b.py
--- a/a.py
+++ b/deep/er/b.py
@@ -99,2 +99,2 @@ def g():
 def g():
-    return 1
+    return 2
--- a/win.txt	2026-01-01 00:00:00
+++ b/win.txt	2026-01-02 00:00:00
@@ -3 +3,2 @@
 three
+four
--- /dev/null
+++ b/fresh/new.txt
@@ -0,0 +1 @@
+新
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
"""


@pytest.mark.parametrize("files", ["open", "opened for the edit", "never told"])
@pytest.mark.parametrize("patch", [APPLY_PATCH, UNIFIED], ids=["apply_patch", "unified"])
async def test_a_patch_that_changes_moves_adds_and_deletes(
    tmp_path: Path, patch: str, files: str
) -> None:
    for name, content in PATCHED.items():
        (tmp_path / name).write_bytes(content.encode())
    script = [answer(tool_call("propose_edit", {"patch": patch})), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        world.editor.open_touched = files != "never told"
        session = await world.session()
        for name in PATCHED if files == "open" else ():
            world.editor.open(tmp_path / name)
        await world.turn(session, "go")
        decided = await world.decide(only_change_set(session))
        assert decided["verified"] is (None if files == "never told" else True)
        assert (decided["conflicts"], len(decided["applied"])) == ([], 5)
        head, _, tail = PATCHED["a.py"].rpartition("return 1")
        moved = {
            file_path(buffer.uri).relative_to(tmp_path).as_posix(): buffer.text
            for buffer in world.editor.buffers
        }
        moved.pop("keep.txt", None)
        assert moved == {
            "deep/er/b.py": f"{head}return 2{tail}",
            "win.txt": "one\r\ntwo\r\nthree\r\nfour\r\n",
            "fresh/new.txt": "新\n",
        }
        there = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*"))
        assert there == ["deep/er/b.py", "fresh/new.txt", "keep.txt", "win.txt"]
        assert (tmp_path / "deep/er/b.py").read_text() == PATCHED["a.py"]  # nobody saved


async def test_a_new_file_keeps_the_crlf_it_was_given(tmp_path: Path) -> None:
    whole = {"action": "create", "path": "one.bat", "content": "a\r\nb\r\n"}
    patch = "*** Begin Patch\n*** Add File: two.bat\n+a\n+b\n*** End Patch\n"
    edits = [{"old": "b", "new": "b\nc"}]
    calls = [
        tool_call("propose_file", whole),
        tool_call("propose_edit", {"patch": patch.replace("\n", "\r\n")}),
        tool_call("propose_file", {"action": "create", "path": "lf.sh", "content": "a\nb\n"}),
    ]
    more = [
        tool_call("propose_edit", {"path": "one.bat", "edits": edits}),
        tool_call("propose_edit", {"path": "two.bat", "edits": edits}),
        tool_call("propose_file", {"action": "move", "path": "two.bat", "to": "sub/3.bat"}),
        tool_call("propose_file", whole | {"path": "lf.sh", "action": "overwrite"}),
    ]
    script = [answer(*calls), *(answer(call) for call in more), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        world.editor.open_touched = True
        session = await world.session()
        await world.turn(session, "go")
        await world.decide(only_change_set(session))
        crlf = "a\r\nb\r\nc\r\n"
        assert texts(world) == {"one.bat": crlf, "3.bat": crlf, "lf.sh": "a\nb\n"}


@pytest.mark.parametrize("reported", ["before it is opened", "while it is open"])
async def test_what_only_the_editor_knows_cannot_be_saved_is_refused(
    tmp_path: Path, reported: str
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", newline="")
    uri = (tmp_path / "a.txt").as_uri()
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+二\n*** End Patch"
    whole = {"action": "overwrite", "path": "a.txt", "content": "one\n二\n"}
    rev = {"base_rev": text_rev("one\ntwo\n")[:12]}
    lines = {"path": "a.txt", "range": [2, 2], "new_content": "二"}
    refused = [
        Case("", "two", "二").call("a.txt"),
        tool_call("propose_edit", {"patch": patch}),
        tool_call("propose_file", whole),
        tool_call("propose_edit", lines | rev),
    ]
    fine = Case("", "two", "zwölf").call("a.txt")
    read = tool_call("read_file", {"path": "a.txt"})
    script = [answer(read), answer(*refused), answer(fine), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        encoding = {"uri": uri, "encoding": "windows1252"}
        if reported == "before it is opened":
            world.client.notify("kode/editor/didChangeEncoding", encoding)
        buffer = world.editor.open(tmp_path / "a.txt")
        if reported == "while it is open":
            world.client.notify("kode/editor/didChangeEncoding", encoding)
        await world.turn(session, "go")
        for result in results(world)[1:-1]:
            assert "a.txt is saved as cp1252, which has no U+4E8C" in result
        (hunk,) = only_change_set(session).hunks("proposed")
        assert hunk.info["newText"] == "zwölf\n"
        await world.decide(only_change_set(session))
        assert buffer.text == "one\nzwölf\n"


async def test_half_a_character_is_never_proposed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", newline="")
    patch = "*** Begin Patch\n*** Add File: {}\n+x{}\n*** End Patch"
    create = {"action": "create", "path": "c.txt"}
    calls = [
        tool_call("propose_edit", {"patch": patch.format("b.txt", "\ud83d")}),
        tool_call("propose_file", create | {"content": "\ude00"}),
        Case("", "one", "\ud83d").call("a.txt"),
    ]
    async with sidecar([answer(*calls), answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        assert not session.change_sets
        assert all("U+D83D" in one or "U+DE00" in one for one in results(world)), results(world)
