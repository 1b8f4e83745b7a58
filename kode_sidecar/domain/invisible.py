"""Characters that hide in code: bidi controls, tags, zero-width characters. Pure.

They are shown to the user, never silently removed. Sources: Unicode UAX #9 (bidi), the Tags
block U+E0000, CVE-2021-42574.
"""

import unicodedata

_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x061C, 0x061C),  # Arabic letter mark
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200F),  # zero-width space and joiners, direction marks
    (0x202A, 0x202E),  # bidi embeddings and overrides
    (0x2060, 0x2064),  # word joiner, invisible operators
    (0x2066, 0x206F),  # bidi isolates, deprecated format characters
    (0xFEFF, 0xFEFF),  # zero-width no-break space
    (0xE0000, 0xE007F),  # tags
    (0xE0100, 0xE01EF),  # variation selectors supplement
)
_JOINER = "\u200d"
_VARIATION_16 = "\ufe0f"


def invisible_characters(text: str) -> tuple[str, ...]:
    """The hidden characters in `text`, each once, as `U+202E`, in order of appearance.

    A joiner inside an emoji sequence is what it seems and is left out.
    """
    found = {
        f"U+{ord(char):04X}": None
        for at, char in enumerate(text)
        if not char.isascii() and _is_hidden(char) and not _joins_emoji(text, at)
    }
    return tuple(found)


def _is_hidden(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _RANGES)


def _joins_emoji(text: str, at: int) -> bool:
    before = text[at - 1] if at else ""
    if text[at] != _JOINER or not before:
        return False
    return before == _VARIATION_16 or unicodedata.category(before) in ("So", "Sk")
