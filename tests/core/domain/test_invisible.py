"""What hides in code is named; what only looks odd is not. W13"""

import unicodedata

import pytest

from kode_sidecar.core.text.shown_text import invisible_characters


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("a\u202eb\u202c", ("U+202E", "U+202C")),  # bidi override
        ("\u2066x\u2069\u2066", ("U+2066", "U+2069")),  # isolates, each once
        ("pass\u200bword\u2060", ("U+200B", "U+2060")),
        ("x\U000e0041\U000e007f", ("U+E0041", "U+E007F")),  # tags
        ("x\U000e0100\U000e01ef", ("U+E0100", "U+E01EF")),
        ("let \u3164 = \uffa0", ("U+3164", "U+FFA0")),  # identifiers nobody sees
        ("a\ufe00b\ufe0f", ("U+FE00", "U+FE0F")),  # bytes hidden in selectors
        ("\ufe0f\ufe0f", ("U+FE0F",)),
        ("✌\ufe0f\ufe0f", ("U+FE0F",)),  # the second one is no style
        ("\x1b[2K\x08\x7f\x9b", ("U+001B", "U+0008", "U+007F", "U+009B")),
        ("a\u2028b", ("U+2028",)),
        ("\ufeffa", ("U+FEFF",)),
        ("a\u200db", ("U+200D",)),
    ],
)
def test_what_hides_is_named(text: str, points: tuple[str, ...]) -> None:
    assert invisible_characters(text) == points


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\nand a form feed\f",
        "中文，全角　空格 𠮷 é e\u0301",
        "👩\u200d💻 ✌\ufe0f 🏳\ufe0f\u200d🌈 👍🏽 1\ufe0f\u20e3 ☎\ufe0e ‼\ufe0f",
        "👁\ufe0f\u200d🗨\ufe0f",
        "العربية עברית हिन्दी",
    ],
)
def test_what_is_as_it_seems_is_not(text: str) -> None:
    assert invisible_characters(text) == ()


def test_every_format_character_that_shows_nothing_is_known() -> None:
    shown = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
    formats = [n for n in range(0x110000) if unicodedata.category(chr(n)) == "Cf"]
    missed = [hex(n) for n in formats if not invisible_characters(f"a{chr(n)}")]
    visible = shown | {0x110BD, 0x110CD} | set(range(0x13430, 0x13460))
    assert [n for n in missed if int(n, 16) not in visible] == []
