"""What `.editorconfig` says of new files, and that they are written so."""

from pathlib import Path

import pytest

from kode_sidecar.infrastructure.workspace.editor_config import new_file_style

TOP = """\
root = true
[*]
end_of_line = CRLF
insert_final_newline = true
[*.{md,txt}]
trim_trailing_whitespace = true
[Makefile]
end_of_line = lf
[lib/**.js]
insert_final_newline = false
[file{1..3}.c]
end_of_line=cr
[wide.bat]
charset = utf-8-bom
[[]
end_of_line = lf
; a comment
nonsense
"""
TEXT = "a \nb"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a.py", "a \r\nb\r\n"),
        ("deep/a.md", "a\r\nb\r\n"),
        ("deep/Makefile", "a \nb\n"),
        ("lib/x/y.js", "a \r\nb"),
        ("file2.c", "a \rb\r"),
        ("file4.c", "a \r\nb\r\n"),
        ("one.c", "a \r\nb\r\n"),
        ("near/a.py", "a \nb\n"),
        ("near/own/a.py", "a \nb\n"),
    ],
)
def test_the_nearest_section_that_fits_counts(tmp_path: Path, name: str, written: str) -> None:
    folder = tmp_path / "project"
    (folder / "near/own").mkdir(parents=True)
    (tmp_path / ".editorconfig").write_text("[*]\nend_of_line = cr\n", "utf-8")
    (folder / ".editorconfig").write_text(TOP, "utf-8")
    (folder / "near/.editorconfig").write_text("[*]\nend_of_line = lf\n", "utf-8")
    (folder / "near/own/.editorconfig").write_bytes(b"\xff\xfe")
    assert new_file_style(folder / name).text(TEXT) == written


def test_without_a_word_the_text_is_as_it_is_given(tmp_path: Path) -> None:
    (tmp_path / ".editorconfig").write_text("root = true\n", "utf-8")
    style = new_file_style(tmp_path / "a.py")
    assert style.text("a\r\nb\r\nc") == "a\r\nb\r\nc"
    assert style.data("é") == "é".encode()


def test_a_byte_order_mark_and_wide_characters(tmp_path: Path) -> None:
    for charset, data in (
        ("utf-8-bom", b"\xef\xbb\xbfa"),
        ("utf-16le", b"\xff\xfea\0"),
        ("latin1", b"a"),
    ):
        (tmp_path / ".editorconfig").write_text(f"[*]\ncharset = {charset}\n", "utf-8")
        assert new_file_style(tmp_path / "a.py").data("a") == data
