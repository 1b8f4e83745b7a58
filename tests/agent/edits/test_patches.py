"""Patches: which files they change, and which of their lines are text, whatever they look like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kode_sidecar.core.text.apply_patch import parse_patch
from kode_sidecar.core.text.chunk_place import locate_chunk
from kode_sidecar.core.text.edit_match import MatchError
from kode_sidecar.core.text.file_patch import FilePatch, FileUpdate
from kode_sidecar.core.text.line_diff import split_lines, unified_diff
from kode_sidecar.core.text.text_edit import apply_edits
from kode_sidecar.core.text.unified_patch import unified_readings
from kode_sidecar.errors import KodeError
from tests.support.edit_editor import Desk

BEGIN, END = "*** Begin Patch\n", "*** End Patch\n"
HUNK = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
NUMBERS = ("one", "two", "three")
BEFORE, AFTER = "one\ntwo\n", "one\n2\n"


@dataclass(frozen=True)
class Patched:
    """Files, a patch of them, and the files that must have another text afterwards.

    `refused` are words of the answer where nothing may be proposed.
    """

    files: Mapping[str, str]
    patch: str
    changed: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    refused: tuple[str, ...] = ()


def update(path: str, *lines: str) -> str:
    return "".join(f"{line}\n" for line in (f"*** Update File: {path}", *lines))


def unified(old: str, new: str, hunk: str = HUNK) -> str:
    return f"--- {old}\n+++ {new}\n{hunk}"


QUOTED = '"a/\\346\\226\\207.txt"', '"b/\\346\\226\\207.txt"'
PAGE = "a\n\n*** Delete File: q.md\n\n*** Update File: q.md\n*** End Patch\n"
SQL = "-- a/q.sql\nselect 1;\n"

TEXT = {
    "headers_behind_a_blank": Patched(
        {"p.md": PAGE, "q.md": "q\n"},
        BEGIN
        + update("p.md", "@@", "-a", "+b", *(f" {line}" for line in PAGE.splitlines()[1:]))
        + END,
        {"p.md": "b" + PAGE[1:]},
    ),
    "a_header_right_below_the_header": Patched(
        {"p.md": "*** Delete File: q.md\na\n", "q.md": "q\n"},
        BEGIN + update("p.md", " *** Delete File: q.md", "-a", "+b") + END,
        {"p.md": "*** Delete File: q.md\nb\n"},
    ),
    "headers_that_are_added_and_removed": Patched(
        {"p.md": "x\n*** Add File: q.md\n*** Begin Patch\n", "q.md": "q\n"},
        BEGIN
        + update("p.md", " x", "-*** Add File: q.md", "+*** End Patch", " *** Begin Patch")
        + END,
        {"p.md": "x\n*** End Patch\n*** Begin Patch\n"},
    ),
    "a_move_that_is_text": Patched(
        {"p.md": "*** Move to: q.md\na\n"},
        BEGIN + update("p.md", " *** Move to: q.md", "-a", "+b") + END,
        {"p.md": "*** Move to: q.md\nb\n"},
    ),
    "a_new_page_about_patches": Patched(
        {"q.md": "q\n"},
        BEGIN + "*** Add File: p.md\n+\n+*** Delete File: q.md\n+*** End Patch\n" + END,
        {"p.md": "\n*** Delete File: q.md\n*** End Patch\n"},
    ),
    "an_end_that_is_only_text": Patched(
        {"p.md": "a\n*** End Patch\n"},
        BEGIN + update("p.md", "-a", "+b", " *** End Patch"),
        refused=("no `*** End Patch`",),
    ),
    "a_header_behind_a_blank_in_a_new_file": Patched(
        {"q.md": "q\n"},
        BEGIN + "*** Add File: p.md\n+x\n\n *** Delete File: q.md\n" + END,
        refused=("does not begin with +",),
    ),
    "a_patch_in_a_unified_diff": Patched(
        {"p.md": "*** Begin Patch\n*** Delete File: q.md\n*** End Patch\na\n", "q.md": "q\n"},
        unified(
            "a/p.md",
            "b/p.md",
            "@@ -1,4 +1,4 @@\n *** Begin Patch\n *** Delete File: q.md\n *** End Patch\n-a\n+b\n",
        ),
        {"p.md": "*** Begin Patch\n*** Delete File: q.md\n*** End Patch\nb\n"},
    ),
    "a_unified_diff_in_a_patch": Patched(
        {"p.md": "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\na\n", "q": "q\n"},
        BEGIN
        + update("p.md", " diff --git a/q b/q", " --- a/q", " +++ b/q", " @@ -1 +1 @@", "-a", "+b")
        + END,
        {"p.md": "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\nb\n"},
    ),
    "git_headers_in_a_unified_diff": Patched(
        {"p.md": "diff --git a/q b/q\nrename from q\nrename to r\nindex 1..2\na\n", "q": "q\n"},
        unified(
            "a/p.md",
            "b/p.md",
            "@@ -1,5 +1,5 @@\n diff --git a/q b/q\n rename from q\n-rename to r\n+rename to s\n"
            " index 1..2\n-a\n+b\n",
        ),
        {"p.md": "diff --git a/q b/q\nrename from q\nrename to s\nindex 1..2\nb\n"},
    ),
    "removed_lines_like_a_header_with_counts": Patched(
        {"p.sql": SQL + "x\ny\n", "q.sql": "x\n"},
        unified("a/p.sql", "b/p.sql", "@@ -1,2 +1,2 @@\n--- a/q.sql\n+++ b/q.sql\n select 1;\n")
        + "@@ -3,2 +3,2 @@\n-x\n+z\n y\n",
        {"p.sql": "++ b/q.sql\nselect 1;\nz\ny\n"},
    ),
    "removed_lines_like_a_header_without_counts": Patched(
        {"p.sql": "-- old\nx\ny\n"},
        unified("a/p.sql", "b/p.sql", "@@\n--- old\n+++ new\n@@\n-x\n+z\n y\n"),
        {"p.sql": "++ new\nz\ny\n"},
    ),
    "two_files_with_wrong_counts": Patched(
        {"p.txt": BEFORE, "q.txt": BEFORE},
        unified("a/p.txt", "b/p.txt", HUNK.replace("-1,2 +1,2", "-1,9 +1,9"))
        + unified("a/q.txt", "b/q.txt", HUNK.replace("-1,2 +1,2", "-7,5 +7,5")),
        {"p.txt": AFTER, "q.txt": AFTER},
    ),
    "a_diff_that_is_cut_within_the_new_lines": Patched(
        {"p.txt": "one\ntwo\nthree\n"},
        unified("a/p.txt", "b/p.txt", "@@ -1,3 +1,4 @@\n one\n-two\n+2\n"),
        refused=("its end may be missing", "correct the numbers"),
    ),
    "a_diff_that_is_cut_within_the_old_lines": Patched(
        {"p.txt": "one\ntwo\nthree\n"},
        unified("a/p.txt", "b/p.txt", "@@ -1,3 +1,2 @@\n one\n-two\n"),
        refused=("its end may be missing",),
    ),
    "a_diff_that_is_cut_at_the_end_of_the_file": Patched(
        {"p.txt": "one\ntwo\n"},
        unified("a/p.txt", "b/p.txt", "@@ -1,2 +1,3 @@\n one\n-two\n+2\n"),
        refused=("its end may be missing",),
    ),
    "low_counts_above_context": Patched(
        {"p.txt": "one\ntwo\nthree\n"},
        unified("a/p.txt", "b/p.txt", "@@ -1,7 +1,7 @@\n one\n-two\n+2\n three\n"),
        {"p.txt": "one\n2\nthree\n"},
    ),
    "counts_that_swallow_the_next_header": Patched(
        {"p.txt": BEFORE, "q.txt": BEFORE},
        unified("a/p.txt", "b/p.txt", HUNK.replace("-1,2 +1,2", "-1,3 +1,3"))
        + unified("a/q.txt", "b/q.txt"),
        {"p.txt": AFTER, "q.txt": AFTER},
    ),
}

NAMES = {
    "a_folder_called_a": Patched(
        {"a/x": BEFORE, "x": BEFORE}, unified("a/x", "a/x"), {"a/x": AFTER}
    ),
    "only_one_side_has_a_prefix": Patched(
        {"x": BEFORE}, unified("x", "b/x"), {"x": None, "b/x": AFTER}
    ),
    "git_quotes_them": Patched({"文.txt": BEFORE}, unified(*QUOTED), {"文.txt": AFTER}),
    "escapes": Patched(
        {'q"t.txt': BEFORE}, unified('"a/q\\"t.txt"', '"b/q\\"t.txt"'), {'q"t.txt': AFTER}
    ),
    "no_text": Patched({}, unified('"a/\\377"', '"b/\\377"'), {}, ("no text in UTF-8",)),
    "mnemonic": Patched({"x": BEFORE}, unified("c/x", "w/x"), {"x": AFTER}),
    "turned_round": Patched({"x": BEFORE}, unified("b/x", "a/x"), {"x": AFTER}),
    "moved_and_quoted": Patched(
        {"文": BEFORE},
        'diff --git "a/\\346\\226\\207" b/n\nrename from "\\346\\226\\207"\nrename to n\n'
        + unified('"a/\\346\\226\\207"', "b/n"),
        {"文": None, "n": AFTER},
    ),
    "a_new_file_without_such_a_folder": Patched(
        {"x": BEFORE}, unified("/dev/null", "b/y", "@@ -0,0 +1 @@\n+y\n"), {"y": "y\n"}
    ),
    "a_new_file_with_such_a_folder": Patched(
        {"b/x": BEFORE},
        unified("/dev/null", "b/y", "@@ -0,0 +1 @@\n+y\n"),
        refused=("read in two ways", "y; or b/y"),
    ),
    "a_new_file_whose_prefix_is_plain": Patched(
        {"b/x": BEFORE, "x": BEFORE},
        unified("a/x", "b/x") + unified("/dev/null", "b/y", "@@ -0,0 +1 @@\n+y\n"),
        {"x": AFTER, "y": "y\n"},
    ),
    "a_deletion_in_a_folder_called_a": Patched(
        {"a/x": "x\n"}, unified("a/x", "/dev/null", "@@ -1 +0,0 @@\n-x\n"), {"a/x": None}
    ),
    "a_deletion_of_one_of_two": Patched(
        {"a/x": "x\n", "x": "x\n"},
        unified("a/x", "/dev/null", "@@ -1 +0,0 @@\n-x\n"),
        refused=("read in two ways", "x; or a/x"),
    ),
}

ONE_MEANING = {
    "three_sections": Patched(
        {"f": "one\ntwo\nthree\n"},
        BEGIN + "".join(update("f", f"-{n}", f"+{n.upper()}") for n in NUMBERS) + END,
        {"f": "ONE\nTWO\nTHREE\n"},
    ),
    "the_second_section_edits_the_result_of_the_first": Patched(
        {"f": "one\n"}, BEGIN + update("f", "-one", "+two") + update("f", "-two", "+three") + END,
        {"f": "three\n"},
    ),
    "deleted_and_added": Patched(
        {"f": "one\ntwo\n"}, BEGIN + "*** Delete File: f\n*** Add File: f\n+new\n" + END,
        {"f": "new\n"},
    ),
    "added_and_changed": Patched(
        {}, BEGIN + "*** Add File: f\n+one\n+two\n" + update("./f", "-one", "+1") + END,
        {"f": "1\ntwo\n"},
    ),
    "changed_and_deleted": Patched(
        {"f": "one\n"}, BEGIN + update("f", "-one", "+two") + "*** Delete File: f\n" + END,
        {"f": None},
    ),
    "stars": Patched(
        {"f": "one\n"},
        "*** Begin Patch ***\n" + update("f ***", "-one", "+1", "*** End of File ***")
        + "*** End Patch ***\n",
        {"f": "1\n"},
    ),
    "an_echo": Patched(
        {"f": "one\n"}, END + BEGIN + update("f", "-one", "+1") + END + END, {"f": "1\n"}
    ),
    "two_patches": Patched(
        {"f": "one\n", "g": "one\n"},
        "".join(BEGIN + update(name, "-one", "+1") + END for name in "fg"),
        {"f": "1\n", "g": "1\n"},
    ),
    "no_line_end_is_added": Patched(
        {"f": "one\ntwo"}, BEGIN + update("f", " one", "-two", "+2", "*** End of File") + END,
        {"f": "one\n2"},
    ),
    "no_line_end_is_added_to_new_last_lines": Patched(
        {"f": "one"}, BEGIN + update("f", "@@", "+two") + END, {"f": "one\ntwo"}
    ),
    "a_line_end_is_added_where_the_diff_says_so": Patched(
        {"f": "one\ntwo"},
        unified("a/f", "b/f", "@@ -2 +2 @@\n-two\n\\ No newline at end of file\n+two\n"),
        {"f": "one\ntwo\n"},
    ),
    "a_new_file_without_a_last_line_end": Patched(
        {}, "diff --git a/f b/f\nnew file mode 100644\n"
        + unified("/dev/null", "b/f", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"),
        {"f": "x"},
    ),
    "two_diffs_of_one_file": Patched(
        {"f": BEFORE},
        unified("a/f", "b/f") + unified("a/f", "b/f", "@@ -1 +1 @@\n-one\n+1\n"),
        {"f": "1\n2\n"},
    ),
    "added_and_deleted": Patched(
        {}, BEGIN + "*** Add File: f\n+x\n*** Delete File: f\n" + END, refused=("names f twice",)
    ),
    "deleted_and_changed": Patched(
        {"f": "x\n"}, BEGIN + "*** Delete File: f\n" + update("f", "-x", "+y") + END,
        refused=("names f twice",),
    ),
}  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def seen(desk: Desk, path: str) -> str | None:
    """What the model reads; None where there is no file."""
    try:
        return desk.text(path)
    except KodeError:
        return None


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name)
        for cases in (TEXT, NAMES, ONE_MEANING)
        for name, case in cases.items()
    ],
)
async def test_a_patch_changes_what_it_says_and_nothing_else(desk: Desk, case: Patched) -> None:
    for path, content in case.files.items():
        desk.file(path, content)
    if case.refused:
        with pytest.raises((KodeError, msgspec.ValidationError)) as failed:
            await desk.use("propose_edit", patch=case.patch)
        message = getattr(failed.value, "message", str(failed.value))
        assert all(words in message for words in case.refused), message
        assert not desk.hunks
        return
    await desk.use("propose_edit", patch=case.patch)
    wanted = {**case.files, **case.changed}
    assert {path: seen(desk, path) for path in wanted} == wanted
    named = {file.path for update in desk.updates for file in update.files}
    assert named <= case.changed.keys()


LINES = st.sampled_from(
    [
        *("", " ", "a", "b", "c", "@@", "@@ -1,2 +1,2 @@", "-- x", "++ y", "\\ No newline", "```"),
        *("*** Begin Patch", "*** End Patch", "*** End of File", "*** Move to: q"),
        *("*** Add File: q", "*** Delete File: q", "*** Update File: q"),
        *("diff --git a/q b/q", "index 1..2", "rename from q", "--- a/q", "+++ b/q", "-- a/q"),
        *("++ b/q", "new file mode 100644", "Binary files a/q and b/q differ", "+", "-"),
    ]
)
TEXTS = st.lists(LINES, min_size=1, max_size=12).map(lambda lines: "".join(f"{x}\n" for x in lines))


def carried_out(files: tuple[FilePatch, ...], text: str) -> str | None:
    """The text that a patch of the one file `p` makes; None where a chunk has several places."""
    (file,) = files
    assert isinstance(file, FileUpdate)
    assert (file.path, file.move_to) == ("p", None)
    for chunk in file.chunks:
        found = locate_chunk(text, chunk)
        if isinstance(found, MatchError):
            assert found.code == "ambiguous"
            return None
        text = apply_edits(text, found.edits)
    return text


@settings(max_examples=300)
@given(before=TEXTS, after=TEXTS)
@example(before="a\n-- x\n", after="a\n++ y\n")
@example(before="++ y\n-- a/q\n", after="++ y\n++ y\n")
@example(before=" \n \n \n \na\n", after="b\n \n \n \n \na\n")
def test_whatever_the_lines_look_like_the_text_of_a_patch_is_text(before: str, after: str) -> None:
    old, new = split_lines(before), split_lines(after)
    if before == after or not old[-1].strip() or not new[-1].strip():
        return
    body = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    v4a = f"{BEGIN}*** Update File: p\n@@\n{''.join(body)}{END}"
    assert carried_out(parse_patch(v4a), before) == after
    diff = unified_diff(old, new, "p").partition("@@")
    git = f"diff --git a/p b/p\n--- a/p\n+++ b/p\n@@{diff[2]}"
    readings = unified_readings(git)
    assert readings.sure
    assert carried_out(readings.readings[0], before) in (after, None)
