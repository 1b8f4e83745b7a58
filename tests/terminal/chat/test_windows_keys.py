"""Which keys of a Windows console are a paste. They come without marks, but at once."""

import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from kode_sidecar.terminal.chat.windows_terminal import as_paste

NAMED = {"\r": Keys.ControlM, "\n": Keys.ControlJ, "\t": Keys.ControlI, "\x03": Keys.ControlC}


def keys(typed: str) -> list[KeyPress]:
    return [KeyPress(NAMED.get(char, char), char) for char in typed]


@pytest.mark.parametrize("typed", ["two\rlines", "茶\r\r", "\r\tindented", "a\nb", "a\r\nb\r\n"])
def test_lines_that_come_at_once_are_one_paste(typed: str) -> None:
    assert as_paste(keys(typed)) == [KeyPress(Keys.BracketedPaste, typed)]


@pytest.mark.parametrize("typed", ["", "y", "y\r", "\r", "\r\r", "fast words", "a\tb", "a\rb\x03"])
def test_what_a_person_types_stays_as_it_is(typed: str) -> None:
    assert as_paste(keys(typed)) == keys(typed)


def test_a_paste_with_marks_stays_as_it_is() -> None:
    marked = [KeyPress(Keys.BracketedPaste, "a\rb")]
    assert as_paste(marked) == marked
