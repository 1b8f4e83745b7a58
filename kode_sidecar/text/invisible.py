"""Characters that hide in code: bidi controls, tags, zero-width characters, controls. Pure.

They are shown to the user, never silently removed. Sources: Unicode UAX #9 (bidi), UAX #44
(Default_Ignorable_Code_Point), UTS #51 (emoji), CVE-2021-42574.
"""

import re
import unicodedata

_RANGES = (
    (0x0000, 0x0008),  # controls but for tab, line feed,
    (0x000B, 0x000B),
    (0x000E, 0x001F),  # form feed and carriage return
    (0x007F, 0x009F),  # delete, C1 controls
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors, vowel separator
    (0x200B, 0x200F),  # zero-width space and joiners, direction marks
    (0x2028, 0x202E),  # line and paragraph separator, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates
    (0x2800, 0x2800),  # blank Braille pattern
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # zero-width no-break space
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF9, 0xFFFB),  # interlinear annotation
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags, variation selectors supplement
)
_HIDDEN = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in _RANGES) + "]")
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_TEXT_STYLE = "\ufe0e"
_KEYS = "0123456789#*"


def invisible_characters(text: str) -> tuple[str, ...]:
    """The hidden characters in `text`, each once, as `U+202E`, in order of appearance.

    What an emoji is made of is what it seems and is left out: a joiner or a style behind a symbol.
    """
    found = {
        f"U+{ord(match[0]):04X}": None
        for match in _HIDDEN.finditer(text)
        if not _belongs_to_emoji(text, match.start())
    }
    return tuple(found)


def _belongs_to_emoji(text: str, at: int) -> bool:
    char, before = text[at], text[at - 1] if at else ""
    if not before or char not in (_JOINER, _EMOJI_STYLE, _TEXT_STYLE):
        return False
    if char == _JOINER and before == _EMOJI_STYLE:
        return _belongs_to_emoji(text, at - 1)
    symbol = unicodedata.category(before) in ("So", "Sk", "Sm") and not _HIDDEN.match(before)
    return symbol or (char != _JOINER and (before in _KEYS or before in "‼⁉〰〽"))
