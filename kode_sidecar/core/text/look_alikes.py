"""Matches look-alike punctuation, and preserves that of a text where an edit leaves it. Pure.

A model writes `-` and `"` where a text has a long dash and curved quotes. The text's own characters
stay where the quote and its replacement agree; a pair, or a run of one character, stays whole or is
written as the model wrote it, never mixed.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kode_sidecar.core.text.canonical import composed
from kode_sidecar.core.text.line_diff import diff_lines, split_lines
from kode_sidecar.core.text.shown_text import invisible_characters
from kode_sidecar.core.text.text_edit import common_prefix, common_suffix

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\ufe58\ufe63"
_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9\u00b4"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u02ba\u301d\u301e\u301f"
_ODD_BLANKS = "\u00a0\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_FULL_WIDTH = [c for c in range(0xFF01, 0xFF5F) if not chr(c).isalnum()]
_PUNCTUATION = {
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _SINGLE_QUOTES), "'"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
    **dict.fromkeys(map(ord, _ODD_BLANKS), " "),
    **{code: chr(code - 0xFEE0) for code in _FULL_WIDTH},
}
"""One character for one, so that offsets stay; letters and digits are never folded."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MATCHING = (
    *("\u201c\u201d", "\u201e\u201c", "\u201e\u201d", "\u201f\u201d"),
    *("\u2018\u2019", "\u201a\u2018", "\u201a\u2019", "\u201b\u2019"),
    *("\uff08\uff09", "\uff3b\uff3d", "\uff5b\uff5d"),
)


_LETTERS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03bf",
    "aeopcyxijsABEKMHOPCTXIABEZHIKMNOPTXo",
)
_MAX_NAMED = 3


def other_characters(there: str, asked: str) -> str:
    """Return which characters of `there` only look like those of `asked`: ` (U+0430 for U+0061)`.

    Hidden characters look like nothing. Empty where there are none.
    """
    hidden = sorted(set(invisible_characters(there)) ^ set(invisible_characters(asked)))
    found = [f"{one} is in one of both and not seen" for one in hidden]
    if not found and skeleton(there) == skeleton(asked):
        pairs = zip(composed(there), composed(asked), strict=False)
        found = [f"U+{ord(a):04X} for your U+{ord(b):04X}" for a, b in pairs if a != b]
    named = list(dict.fromkeys(found))[:_MAX_NAMED]
    return f" ({', '.join(named)})" if named else ""


def skeleton(text: str) -> str:
    """Return what a text looks like: equal for texts that look the same to everybody."""
    if text.isascii():
        return text
    for name in invisible_characters(text):
        text = text.replace(chr(int(name.removeprefix("U+"), 16)), "")
    return folded(composed(text)).translate(_LETTERS)


def folded(text: str) -> str:
    """Return the text with plain punctuation in place of its look-alikes, as long as before."""
    return text.translate(_PUNCTUATION)


def with_own_punctuation(there: str, old: str, new: str) -> str:
    """Return `new` with the punctuation of `there`, which reads as `old` but for look-alikes."""
    sources = sources_in(old, new)
    plain_old, plain_new = folded(old), folded(new)
    used = set(sources)
    for at, source in enumerate(sources_in(plain_old, plain_new)):
        # What `new` writes as it stands there has not changed, whatever the quote has.
        if source not in used and sources[at] is None and source is not None:
            sources[at] = source if there[source] == new[at] else None
    old_pairs, new_pairs = set(_pairs(plain_old)), list(_pairs(plain_new))
    paired = {at for pair in new_pairs for at in pair}
    groups = [*new_pairs, *_runs(plain_new)]
    halves = [*old_pairs, *_runs(plain_old)]
    changed = True
    while changed:
        changed = False
        for group in groups:
            kept = [sources[at] for at in group]
            if (
                any(_differs(there, new, sources, at) for at in group)
                and not _whole(there, kept, old_pairs)
                and not _is_plain(there, new, sources, group)
            ):
                changed = _let_go(sources, group) or changed
        used = {source: at for at, source in enumerate(sources) if source is not None}
        for whole in halves:
            rest = [used[at] for at in whole if at in used]
            lost = 0 < len(rest) < len(whole) and not paired.issuperset(rest)
            if lost and not _is_plain(there, new, sources, rest):
                changed = _let_go(sources, rest) or changed
    return "".join(
        char if source is None else there[source] for char, source in zip(new, sources, strict=True)
    )


def sources_in(old: str, new: str) -> list[int | None]:
    """Return for each character of `new` its source in `old`, None for a new one.

    Equal lines have sources; so do the common characters at both ends of changed lines.
    """
    sources: list[int | None] = [None] * len(new)
    old_lines, new_lines = split_lines(old), split_lines(new)
    runs = [*diff_lines(old_lines, new_lines), (len(old_lines),) * 2 + (len(new_lines),) * 2]
    old_at = new_at = a = 0
    for a0, a1, b0, b1 in runs:
        same = sum(map(len, old_lines[a:a0]))
        sources[new_at : new_at + same] = range(old_at, old_at + same)
        old_at, new_at = old_at + same, new_at + same
        before, after = "".join(old_lines[a0:a1]), "".join(new_lines[b0:b1])
        head = common_prefix(before, after)
        tail = common_suffix(before, after, head)
        sources[new_at : new_at + head] = range(old_at, old_at + head)
        old_at, new_at = old_at + len(before), new_at + len(after)
        sources[new_at - tail : new_at] = range(old_at - tail, old_at)
        a = a1
    return sources


def _whole(there: str, kept: Sequence[int | None], pairs: set[tuple[int, ...]]) -> bool:
    """Return whether a pair or a run of the place is kept as one: both ends, in their order."""
    if None in kept:
        return False
    places = tuple(at for at in kept if at is not None)
    if places in pairs or places == tuple(range(places[0], places[0] + len(places))):
        return True
    return len(places) == 2 and there[places[0]] + there[places[1]] in _MATCHING


def _differs(there: str, new: str, sources: Sequence[int | None], at: int) -> bool:
    source = sources[at]
    return source is not None and there[source] != new[at]


def _is_plain(there: str, new: str, sources: Sequence[int | None], at: Sequence[int]) -> bool:
    """Return whether the text gets plain characters only: they cannot be mixed with others."""
    chars = (new[one] if (own := sources[one]) is None else there[own] for one in at)
    return all(char == folded(char) for char in chars)


def _let_go(sources: list[int | None], group: Sequence[int]) -> bool:
    """Use the model's characters for this group; return whether that changes anything."""
    held = any(sources[at] is not None for at in group)
    for at in group:
        sources[at] = None
    return held


def _pairs(text: str) -> Iterator[tuple[int, ...]]:
    """Yield the offsets of matching brackets and quotes, without apostrophes."""
    opened: list[int] = []
    quotes: dict[str, int] = {}
    for at, char in enumerate(text):
        if char in _CLOSING:
            opened.append(at)
        elif char in _CLOSING.values():
            if opened and _CLOSING[text[opened[-1]]] == char:
                yield opened.pop(), at
        elif char == '"' or (char == "'" and not _in_a_word(text, at)):
            if char in quotes:
                yield quotes.pop(char), at
            else:
                quotes[char] = at


def _in_a_word(text: str, at: int) -> bool:
    return text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum()


def _runs(text: str) -> Iterator[tuple[int, ...]]:
    """Yield the offsets of runs of two or more equal punctuation marks, without brackets."""
    for char, group in groupby(range(len(text)), text.__getitem__):
        places = tuple(group)
        if len(places) > 1 and char in "-'\" .,!?:;~":
            yield places
