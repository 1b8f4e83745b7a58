"""Finds where an edit of the model belongs. Pure; works on text with LF line ends.

A quote is tried on a short ladder (`edit_tiers`): exact, letters composed otherwise, blanks at
the ends of lines, one shift of the indentation, look-alike punctuation. Each rung collects all
places. One place is the answer; several are an error; none tries the next rung. Mere similarity
never applies an edit.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from kode_sidecar.core.text.canonical import composed, decomposed
from kode_sidecar.core.text.edit_hints import ambiguous_text, line_span, not_found_text
from kode_sidecar.core.text.edit_tiers import TIERS, QuotePlace, Tier
from kode_sidecar.core.text.shown_text import strip_line_numbers
from kode_sidecar.core.text.text_edit import Edit

MatchErrorCode = Literal["empty_old", "identical", "not_found", "ambiguous"]

MAX_NAMED_LINES = 100
# At most so many places are checked: a text of one repeated letter has as many as characters. Each
# costs time by the length of the quote, and a looser rung compares every line of it.
MAX_PLACES, MAX_LOOSE_PLACES = 2_000, 500
_MAX_CHARS, _MAX_LINES = 20_000_000, 20_000
_HOW: dict[Tier, str] = {
    "exact": "",
    "canonical": ", composed and decomposed letters taken as equal",
    "trailing_blanks": ", blanks at the ends of lines aside",
    "indentation": ", its indentation aside",
    "punctuation": ", with other dashes, quotes or blanks",
}
_FIRST_BLANK = re.compile(r"\A[ \t]*\n")
_LAST_BLANK = re.compile(r"\n[ \t]*\Z")


@dataclass(frozen=True)
class EditMatch:
    """Ascending, disjoint edits to apply. `repair` says how the quote was fixed before."""

    edits: tuple[Edit, ...]
    tier: Tier = "exact"
    repair: str = ""


@dataclass(frozen=True)
class MatchError:
    """Why nothing can be replaced; `message` says to the model how to fix it.

    `lines` are where an ambiguous quote begins, from 1, at most a hundred of them.
    """

    code: MatchErrorCode
    message: str
    lines: tuple[int, ...] = ()


def locate(
    text: str,
    old: str,
    new: str,
    *,
    replace_all: bool = False,
    near_line: int | None = None,
    whole_lines: bool = False,
) -> EditMatch | MatchError:
    """Return the one place of `old` in `text`, or all of them with `replace_all`.

    Overlapping places count as several, so a match is never a guess; with `replace_all` they
    are taken from left to right. Among several places `near_line` (from 1) chooses the only one
    that it lies in. With `whole_lines` the place begins and ends where lines do. An empty `old`
    fits an empty text only.
    """
    if not old:
        return EditMatch((Edit(0, 0, new),)) if not text and new else _empty_old(text)
    if old == new:
        return MatchError("identical", "`old` and `new` are the same: there is nothing to change.")
    for reading in [_Reading(old, new), *_repairs(old, new)]:
        if whole_lines:
            reading = replace(reading, from_line=True, to_line=True)
        found = _climb(text, reading, replace_all, near_line)
        if isinstance(found, EditMatch):
            return replace(found, repair=reading.repair)
        if found is not None:
            return found
    return MatchError("not_found", not_found_text(text, old))


@dataclass(frozen=True)
class _Reading:
    """A quote to search for.

    If a line end was removed from it, the place must still begin, or end, where a line does.
    """

    old: str
    new: str
    repair: str = ""
    from_line: bool = False
    to_line: bool = False

    def fits(self, text: str, place: QuotePlace) -> bool:
        """Return whether the place begins and ends where it must."""
        begins = not self.from_line or text[place.start - 1 : place.start] in ("", "\n")
        ends = text[place.end - 1 : place.end] == "\n" or text[place.end : place.end + 1] in (
            "",
            "\n",
        )
        return begins and (ends or not self.to_line)


def _climb(
    text: str, reading: _Reading, replace_all: bool, near_line: int | None
) -> EditMatch | MatchError | None:
    """Return the result of the first rung that has places; None if no rung has any."""
    for tier, find_places in TIERS:
        most = _most_places(tier, reading)
        found = list(islice(find_places(text, reading.old, reading.new), most + 1))
        if len(found) > most:
            return _too_many(text, found)
        places = [place for place in found if reading.fits(text, place)]
        if not places:
            continue
        chosen = _chosen(text, tier, places, replace_all, near_line)
        if not chosen:
            return _ambiguous(text, tier, places, replace_all)
        edits = [place.edit for place in chosen if place.edit is not None]
        if len(edits) < len(chosen):
            return _shifted(text, chosen[0])
        return EditMatch(tuple(edits), tier)
    return None


def _most_places(tier: Tier, reading: _Reading) -> int:
    if tier in ("exact", "canonical"):
        return max(1, min(MAX_PLACES, _MAX_CHARS // len(reading.old)))
    lines = reading.old.count("\n") + reading.new.count("\n") + 1
    return max(1, min(MAX_LOOSE_PLACES, _MAX_LINES // lines))


def _chosen(
    text: str, tier: Tier, places: Sequence[QuotePlace], replace_all: bool, near_line: int | None
) -> Sequence[QuotePlace]:
    """Return the places to change; empty if that would be a guess."""
    if len(places) == 1:
        return places
    if replace_all:
        alike = tier == "exact" or len({place.shape for place in places}) == 1
        return _disjoint(places) if alike and tier != "punctuation" else ()
    if near_line is None:
        return ()
    start, end = _line_offsets(text, near_line)
    near = [place for place in places if place.start <= end and start < max(place.end, 1)]
    return near if len(near) == 1 else ()


def _line_offsets(text: str, line: int) -> tuple[int, int]:
    """Return where a line begins and its line end is; past the text if it has no such line."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if not start:
            return len(text) + 1, len(text) + 1
    end = text.find("\n", start)
    return start, end if end >= 0 else len(text)


def _disjoint(places: Sequence[QuotePlace]) -> list[QuotePlace]:
    result: list[QuotePlace] = []
    for place in places:
        if not result or result[-1].end <= place.start:
            result.append(place)
    return result


def _repairs(old: str, new: str) -> Iterator[_Reading]:
    """Yield other readings of a quote that fits nowhere, with what was changed."""
    for form, named in ((composed, "composed"), (decomposed, "decomposed")):
        if form(old) != old:
            yield _Reading(form(old), form(new), f"letters were {named} as in the file")
    bare = strip_line_numbers(old)
    repair = ""
    if bare is not None:
        old, new = bare, strip_line_numbers(new) or new
        repair = "line numbers were taken off the quote"
        yield _Reading(old, new, repair, from_line=True)
    first = _FIRST_BLANK.match(old) is not None
    last = _LAST_BLANK.search(old) is not None
    for head, tail in ((True, False), (False, True), (True, True)):
        if head <= first and tail <= last:
            yield from _without_blank(old, new, repair, head=head, tail=tail)


def _without_blank(
    old: str, new: str, repair: str, *, head: bool, tail: bool
) -> Iterator[_Reading]:
    """Return the quote without a blank line, or a line end, at its beginning or its end."""
    if head:
        old, new = (_FIRST_BLANK.sub("", part, count=1) for part in (old, new))
    if tail:
        old, new = (_LAST_BLANK.sub("", part, count=1) for part in (old, new))
    where = " and the ".join(name for name, cut in (("beginning", head), ("end", tail)) if cut)
    said = f"a blank line at the {where} of the quote was left out"
    if old and old != new:
        repairs = "; ".join(part for part in (repair, said) if part)
        yield _Reading(old, new, repairs, from_line=head, to_line=tail)


def _empty_old(text: str) -> MatchError:
    if not text:
        return MatchError("identical", "The file is empty and `new` is too: nothing to change.")
    return MatchError(
        "empty_old",
        "`old` is empty. Quote the lines next to the place as `old`, "
        "and repeat them in `new` together with the text to add.",
    )


def _ambiguous(
    text: str, tier: Tier, places: Sequence[QuotePlace], replace_all: bool
) -> MatchError:
    spans = [(place.start, place.end) for place in places]
    advice = "or set `replace_all` to change every one"
    if replace_all:
        advice = "one edit for each place: they are not alike, so `replace_all` does not do"
    elif tier == "punctuation":
        advice = "or quote it exactly"
    reported = ambiguous_text(text, spans, _HOW[tier], advice)
    return MatchError("ambiguous", reported, _first_lines(text, [span[0] for span in spans]))


def _too_many(text: str, places: Sequence[QuotePlace]) -> MatchError:
    return MatchError(
        "ambiguous",
        f"`old` occurs more than {len(places) - 1:,} times, too often to be replaced, also with "
        "`replace_all`. Quote more lines, or give `range`, `new_content` and `base_rev`.",
        _first_lines(text, [place.start for place in places]),
    )


def _first_lines(text: str, starts: Sequence[int]) -> tuple[int, ...]:
    """Return the lines of the first hundred of ascending offsets."""
    lines: list[int] = []
    line, at = 1, 0
    for start in starts[:MAX_NAMED_LINES]:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return tuple(lines)


def _shifted(text: str, place: QuotePlace) -> MatchError:
    first, last = line_span(text, place.start, place.end)
    return MatchError(
        "not_found",
        f"`old` occurs at lines {first}-{last} with another indentation, and `new` is not indented "
        "like `old`, so it cannot be moved along. Quote `old` with the indentation it has there: "
        f"\n{text[place.start : place.end]}",
    )
