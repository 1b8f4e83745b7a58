"""Which editor is started, as systems name programs."""

import sys
from pathlib import Path

import pytest

from kode_sidecar.terminal.chat.users_editor import editor_commands

VIM = r"C:\Program Files\Vim\vim.exe"


def test_a_command_may_have_arguments_and_quotes() -> None:
    commands = editor_commands({"VISUAL": "ed -p '> '", "EDITOR": "ex"}, "linux")
    assert commands[:2] == [["ed", "-p", "> "], ["ex"]]
    assert ["/usr/bin/vi"] in commands


def test_a_backslash_of_windows_stands_for_itself() -> None:
    environ = {"VISUAL": f'"{VIM}" -n', "EDITOR": r"C:\tools\micro.exe"}
    assert editor_commands(environ, "win32") == [
        [VIM, "-n"],
        [r"C:\tools\micro.exe"],
        ["notepad"],
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="files are executable by their name there")
def test_the_whole_value_may_be_a_program_whose_path_has_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my editor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert editor_commands({"EDITOR": str(program)}, "linux")[0] == [str(program)]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert editor_commands({"EDITOR": '"my editor" --wait'}, "win32")[0] == [str(program), "--wait"]


def test_without_a_word_of_the_user_the_usual_ones_are_tried() -> None:
    assert editor_commands({"EDITOR": " "}, "win32") == [["notepad"]]
    assert editor_commands({}, "linux")[0] == ["/usr/bin/editor"]
