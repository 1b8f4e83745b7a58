"""What the terminal says, in two languages that say the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from string import Formatter

import pytest

from kode_sidecar.terminal.chat.words import Words, words_for
from kode_sidecar.terminal.cli.command_words import CommandWords, command_words
from kode_sidecar.terminal.client.labels import Labels, labels_for

SAME = {"welcome", "more", "failed"}
"""Nothing but placeholders and signs."""


def texts(words: Words | Labels | CommandWords) -> Iterator[tuple[str, str, str]]:
    """Yield each text with the name of its field, and its key where the field has several."""
    for one in fields(words):
        value: str | Mapping[str, str] = getattr(words, one.name)
        named = {"": value} if isinstance(value, str) else value
        yield from ((one.name, key, text) for key, text in named.items())


@pytest.mark.parametrize("in_language", [words_for, labels_for, command_words])
def test_every_text_is_there_in_both_languages_with_the_same_placeholders(
    in_language: Callable[[str], Words | Labels | CommandWords],
) -> None:
    english, chinese = list(texts(in_language("en"))), list(texts(in_language("zh_CN")))
    assert [text[:2] for text in english] == [text[:2] for text in chinese]
    for (name, _, one), (_, _, other) in zip(english, chinese, strict=True):
        assert one != other or name in SAME, name
        assert placeholders(one) == placeholders(other), name


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}
