"""Prepares text for a model or a terminal: harmless, bounded, numbered. Pure.

Hidden characters are shown to the user, never silently removed from code. Sources: Unicode UAX #9
(bidi), UAX #11 (width), UAX #44 (Default_Ignorable_Code_Point), UTS #51 (emoji), CVE-2021-42574.
"""

import json
import re
import unicodedata
from collections.abc import Sequence

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""C0 but newline and tab, and C1: they move the cursor, recolour or retitle a terminal (W13)."""

ESCAPE_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Colours and titles, as programs send them (ECMA-48: CSI and OSC sequences)."""

UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no path holds that a model or a client can say: controls, and bytes that are no UTF-8."""

_HIDDEN_RANGES = (
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
_HIDDEN = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in _HIDDEN_RANGES) + "]")
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_TEXT_STYLE = "\ufe0e"
_EMOJI_PARTS = re.compile(f"([{_JOINER}{_EMOJI_STYLE}{_TEXT_STYLE}])")
_KEYS = "0123456789#*"
_GUTTER = re.compile(r"^ *(\d+)\t", re.MULTILINE)


def fence_of(text: str) -> str:
    """Return backticks for the fence of a Markdown block: more than the text has in one place."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def without_controls(text: str) -> str:
    """Return the text without control characters, except newline and tab."""
    return CONTROL.sub("", text)


def plain_lines(text: str) -> str:
    """Return a text without colours; an overwritten line appears in its last state."""
    lines = ESCAPE_SEQUENCES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).rstrip("\n")


def without_hidden(text: str) -> str:
    """Return the text without characters that hide or reorder it; those of emoji stay."""
    return _HIDDEN.sub(
        lambda found: found[0] if _belongs_to_emoji(text, found.start()) else "", text
    )


def one_line(text: str) -> str:
    """Return the text on one line, with single blanks and only printable characters."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def is_text(name: str) -> bool:
    """Return whether a name is valid Unicode.

    On Linux a name may be any bytes; Python represents bytes that are no UTF-8 as surrogates.
    """
    return not any("\ud800" <= char <= "\udfff" for char in name)


def cut_line(line: str, limit: int, around: int = 0) -> str:
    """Return at most `limit` characters of a line near `around`, saying how much is left out."""
    if len(line) <= limit:
        return line
    start = max(0, min(around - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{start} characters cut] " if start else ""
    after = f" [{len(line) - end} characters cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def invisible_characters(text: str) -> tuple[str, ...]:
    """Return the hidden characters in `text`, each once, as `U+202E`, in order of appearance.

    Joiners and styles that belong to an emoji hide nothing and are left out.
    """
    found = {
        f"U+{ord(match[0]):04X}": None
        for match in _HIDDEN.finditer(text)
        if not _belongs_to_emoji(text, match.start())
    }
    return tuple(found)


def with_code_points(text: str) -> str:
    """Return the text with its hidden characters written out, such as `<U+202E>`."""
    for name in invisible_characters(text):
        text = text.replace(chr(int(name.removeprefix("U+"), 16)), f"<{name}>")
    return text


def hides_nothing(text: str) -> bool:
    """Return whether the text is one line whose every character can be seen."""
    return text.isprintable() and _HIDDEN.search(text) is None


def with_escapes(text: str) -> str:
    """Return JSON text that still means the same, with all that cannot be seen as `\\uXXXX`.

    Line ends stay: in JSON they stand between values, never inside of one.
    """
    if hides_nothing(text.replace("\n", "")):
        return text
    return "".join(
        char if char == "\n" or hides_nothing(char) else json.dumps(char)[1:-1] for char in text
    )


def visible(text: str, *, part: bool = False) -> str:
    """Return foreign text safe for a terminal: it cannot move the cursor, reorder or hide text.

    In a `part`, whose neighbouring text is unknown, characters that join emoji stay.
    """
    text = without_controls(text)
    if not part:
        return with_code_points(text)
    pieces = _EMOJI_PARTS.split(text)
    return "".join(one if _EMOJI_PARTS.match(one) else with_code_points(one) for one in pieces)


def columns(text: str) -> int:
    """Return how many terminal columns the text takes."""
    return sum(map(_columns, text))


def clipped(text: str, limit: int) -> str:
    """Return the text, cut to at most `limit` columns with an ellipsis."""
    if columns(text) <= limit:
        return text
    used = 0
    for index, char in enumerate(text):
        used += _columns(char)
        if used > limit - 1:
            return text[:index] + "…"
    return text


def number_lines(lines: Sequence[str], first: int) -> str:
    """Return lines (without ends) behind a gutter: the number, right-aligned to six, and a tab."""
    return "\n".join([f"{number:>6}\t{line}" for number, line in enumerate(lines, first)])


def strip_line_numbers(text: str) -> str | None:
    """Return the text without the gutter of `number_lines`; None unless every line has it."""
    numbers = [int(number) for number in _GUTTER.findall(text)]
    lines = text.removesuffix("\n").count("\n") + 1
    if not numbers or numbers != list(range(numbers[0], numbers[0] + lines)):
        return None
    return _GUTTER.sub("", text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _belongs_to_emoji(text: str, at: int) -> bool:
    char, before = text[at], text[at - 1] if at else ""
    if not before or char not in (_JOINER, _EMOJI_STYLE, _TEXT_STYLE):
        return False
    if char == _JOINER and before == _EMOJI_STYLE:
        return _belongs_to_emoji(text, at - 1)
    symbol = unicodedata.category(before) in ("So", "Sk", "Sm") and not _HIDDEN.match(before)
    return symbol or (char != _JOINER and (before in _KEYS or before in "‼⁉〰〽"))


def fix_surrogates(text: str) -> str:
    """Return `text` as valid Unicode: surrogate pairs are joined, lone ones become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def fix_value(value: object) -> object:
    """Return a JSON value with the surrogates of all texts fixed, keys too."""
    return json.loads(fix_surrogates(json.dumps(value, ensure_ascii=False)))
