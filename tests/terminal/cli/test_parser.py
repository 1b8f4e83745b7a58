"""The command line as a whole: examples, exit codes in the documents, completion."""

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kode_sidecar.terminal.cli.command_line import COMMANDS
from kode_sidecar.terminal.cli.complete import SCRIPTS, candidates
from kode_sidecar.terminal.cli.parser import EXIT_CODES, make_parser
from tests.support.program import ROOT

PRINTS_NO_DATA = {
    *(
        "serve",
        "acp",
        "setup",
        "chat",
        "demo",
        "protocol",
        "replay",
        "sessions",
        "runs",
        "completion",
        "review",  # by --format
    ),
    *("completion", "complete", "model", "sessions migrate", "mcp", "mcp add", "mcp login"),
}


def commands(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"{before}{name}", command
                yield from commands(command, f"{before}{name} ")


ALL = dict(commands(make_parser()))


@pytest.mark.parametrize("name", ALL)
def test_every_command_shows_an_example_that_can_be_read(name: str) -> None:
    said = " ".join(ALL[name].format_help().split())
    (example,) = re.findall(r"example: kode-sidecar (.+)$", said)
    assert example.startswith(name), example
    words = re.findall(r'"[^"]*"|\S+', example.split(" < ")[0].split(" >> ")[0])
    make_parser().parse_args([word.strip('"') for word in words])
    assert ("--json" in said) == (name not in PRINTS_NO_DATA)


@pytest.mark.parametrize(
    "words",
    [
        "batch --jobs 0",
        "batch --attempts 0",
        "batch --max-failures 0",
        "batch resume --jobs 0 out",
        "sessions list --limit 0",
    ],
)
def test_none_of_something_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(words.split())
    assert ended.value.code == 2
    assert "0 is too few: at least 1" in capsys.readouterr().err


def test_every_command_is_carried_out() -> None:
    top = {name for name in ALL if " " not in name}
    assert set(COMMANDS) == top - {"serve", "acp", "complete"}


@pytest.mark.parametrize("name", ["docs/command-line.md", "docs/command-line.zh.md"])
def test_the_documents_name_every_command_and_exit_code(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    rows = [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert rows == list(EXIT_CODES)
    for command in (one for one in ALL if one != "complete"):
        assert f"kode-sidecar {command}" in text, command


def offered(*words: str) -> list[str]:
    return list(candidates(make_parser(), words))


def test_shells_are_offered_what_fits() -> None:
    assert offered("se") == ["serve", "setup", "sessions"]
    assert "export" in offered("sessions", "")
    assert offered("sessions", "export", "--for") == ["--format"]
    assert offered("sessions", "export", "--format", "") == ["md", "jsonl"]
    assert offered("chat", "--mode", "a") == ["ask", "auto"]
    assert offered("completion", "po") == ["powershell"]
    assert offered("sessions", "export", "-o", "") == []  # a file: the shell knows better


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_scripts_are_sound(shell: str, tmp_path: Path) -> None:
    program = shutil.which({"powershell": "pwsh"}.get(shell, shell))
    if program is None:
        pytest.skip(f"NOT RUN: there is no {shell} here")
    script = tmp_path / f"completion.{shell}"
    script.write_text(SCRIPTS[shell], encoding="utf-8")
    check = ["-NoProfile", "-File"] if shell == "powershell" else ["-n"]
    subprocess.run([program, *check, script], check=True, timeout=60)
