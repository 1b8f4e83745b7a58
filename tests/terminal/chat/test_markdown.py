"""Markdown as it streams: cut into blocks anywhere, drawn harmless; and loaded by nobody else."""

import re
import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from kode_sidecar.terminal.chat.markdown import MarkdownStream, rendered
from tests.support.program import ROOT

PIECES = ("# T\n", "\n", "\n\n", "text ", "茶 ", "- a\n", "1. b\n", "```py\n", "```\n", "x = 1\n")
PIECES += ("> q\n", "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "---\n", "**b** ", "    code\n", "`c`")
HOSTILE = (
    "\x1b[2J",
    "\x1b]0;t\x07",
    "\x9b1A",
    "\u202e",
    "&#x202e;",
    "&#27;[2J",
    "\u200b",
    "\U000e0041",
)
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")

markdown = st.lists(st.sampled_from(PIECES + HOSTILE), max_size=60).map("".join)


def shown(text: str) -> str:
    return SEQUENCE.sub("", rendered(text, 60))


@given(markdown, st.lists(st.integers(1, 9)))
@example("\n# T\n", [])
def test_no_cut_loses_a_line(text: str, sizes: list[int]) -> None:
    stream, taken, at = MarkdownStream(), "", 0
    for size in (*sizes, len(text)):
        stream.feed(text[at : at + size])
        at += size
        while part := stream.take():
            taken += part + "\n"
    assert (taken + stream.rest).rstrip("\n") == text.rstrip("\n")


@given(markdown)
def test_nothing_moves_the_cursor_or_hides(text: str) -> None:
    left = SEQUENCE.sub("", rendered(text, 40))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b\U000e0041]", left)


def test_what_looks_like_a_tag_stays_and_a_link_says_where_it_leads() -> None:
    assert shown("a `Vec<T>` and Vec<T> [x](https://y.example)") == (
        "a Vec<T> and Vec<T> x (https://y.example)"
    )


def test_long_lists_and_fences_are_taken_in_parts() -> None:
    for first, line in (("```python\n", "x = {}\n"), ("", "- item {}\n")):
        stream, drawn = MarkdownStream(), ""
        stream.feed(first)
        for number in range(200):
            stream.feed(line.format(number))
            drawn += shown(stream.take()) + "\n"
            assert stream.rest.count("\n") < 50
        drawn += shown(stream.rest)
        assert re.findall(r"\d+", drawn) == [str(number) for number in range(200)]


def test_only_a_terminal_pays_for_what_draws() -> None:
    """Serving, and every command but `chat`, loads neither rich nor prompt_toolkit."""
    code = (
        "import sys, kode_sidecar.servers.boot.app, kode_sidecar.servers.boot.agent\n"
        "from kode_sidecar.terminal.cli.command_line import COMMANDS, command\n"
        "carriers = [command(name) for name in COMMANDS]\n"
        "import kode_sidecar.terminal.chat.program, kode_sidecar.servers.lsp.language_server\n"
        "kode_sidecar.servers.boot.http_library.import_http_client()\n"
        "print([name for name in ('rich', 'prompt_toolkit', 'pygments') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
