"""Texts that are equal by Unicode's canonical equivalence: composed and decomposed letters. Pure.

macOS writes names and texts decomposed, models compose them. A text keeps its own form.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate

# Starters that join the letter before them: vowels and finals of Hangul, signs of Indic scripts.
_JOINING = frozenset(
    (
        *range(0x1160, 0x1200),
        *(0x09BE, 0x09D7, 0x0B3E, 0x0B56, 0x0B57, 0x0BBE, 0x0BD7, 0x0CC2, 0x0CD5, 0x0CD6),
        *(0x0D3E, 0x0D57, 0x0DCF, 0x0DDF, 0x102E, 0x1B35, 0x110BA, 0x11127, 0x1133E, 0x11357),
        *(0x114B0, 0x114BA, 0x114BD, 0x115AF, 0x11930),
    )
)


def composed(text: str) -> str:
    """Return the text with composed letters (NFC)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def decomposed(text: str) -> str:
    """Return the text with decomposed letters (NFD)."""
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def forms(text: str) -> tuple[str, ...]:
    """Return the text as it is, composed and decomposed, each once."""
    return tuple(dict.fromkeys((text, composed(text), decomposed(text))))


def canonical_spans(text: str, part: str) -> Iterator[tuple[int, int]]:
    """Yield where `part` stands in `text` in another form; whole letters only, ascending."""
    plain, wanted = composed(text), composed(part)
    if (plain, wanted) == (text, part) or not wanted:
        return
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    at = plain.find(wanted)
    while at >= 0:
        start = _raw_offset(plain, at, lines, offsets)
        end = _raw_offset(plain, at + len(wanted), lines, offsets)
        if start is not None and end is not None:
            yield start, end
        at = plain.find(wanted, at + 1)


def letters(text: str) -> list[str]:
    """Return the text in pieces, each a letter with all that joins it."""
    found: list[str] = []
    for char in text:
        if found and (unicodedata.combining(char) or ord(char) in _JOINING):
            found[-1] += char
        else:
            found.append(char)
    return found


def in_form_of(there: str, sources: Sequence[int | None], new: str) -> str:
    """Return `new` (composed) with the letters of `there` where they come from it.

    `sources` gives for each character of `new` its place in the composed `there`. New letters are
    decomposed where those of `there` are.
    """
    own: dict[int, tuple[str, int]] = {}
    at = 0
    for letter in letters(there):
        size = len(composed(letter))
        own[at] = letter, size
        at += size
    apart = decomposed(there) == there != composed(there)
    result: list[str] = []
    at = 0
    while at < len(new):
        source = sources[at]
        letter, size = own.get(source, ("", 0)) if source is not None else ("", 0)
        wanted = list(range(source, source + size)) if source is not None else []
        if letter and list(sources[at : at + size]) == wanted:
            result.append(letter)
            at += size
        else:
            result.append(decomposed(new[at]) if apart else new[at])
            at += 1
    return "".join(result)


def _raw_offset(plain: str, at: int, lines: Sequence[str], offsets: Sequence[int]) -> int | None:
    """Return the offset of the text for one of its composed form; None inside of a letter."""
    line = plain.count("\n", 0, at)
    column = at - (plain.rfind("\n", 0, at) + 1)
    raw = 0
    for letter in letters(lines[line]):
        if column <= 0:
            break
        column -= len(composed(letter))
        raw += len(letter)
    return offsets[line] + raw if column == 0 else None
