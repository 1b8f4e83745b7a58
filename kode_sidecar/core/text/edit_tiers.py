"""The rungs of the ladder that finds the place of a quote: each collects all of its places.

Pure; LF text. Every tier allows one kind of difference, for the whole quote, and keeps the file's
own characters wherever `new` leaves the quote as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from kode_sidecar.core.text.canonical import canonical_spans, composed, in_form_of
from kode_sidecar.core.text.line_diff import diff_lines
from kode_sidecar.core.text.look_alikes import folded, sources_in, with_own_punctuation
from kode_sidecar.core.text.text_edit import Edit

Tier = Literal["exact", "canonical", "trailing_blanks", "indentation", "punctuation"]

_BLANKS = " \t"


@dataclass(frozen=True)
class QuotePlace:
    """A place that fits, `[start, end)`, and the edit for it.

    `edit` is None if `new` cannot be adapted to the place. Places of one `shape` differ from the
    quote in the same way.
    """

    start: int
    end: int
    edit: Edit | None
    shape: object = None


FindPlaces = Callable[[str, str, str], Iterator[QuotePlace]]
"""`(text, old, new)` → all places, even overlapping ones, ascending; computed on demand."""


def exact_places(text: str, old: str, new: str) -> Iterator[QuotePlace]:
    """Yield the places where `old` occurs exactly."""
    for start in _occurrences(text, old):
        end = start + len(old)
        yield QuotePlace(start, end, Edit(start, end, new))


def canonical_places(text: str, old: str, new: str) -> Iterator[QuotePlace]:
    """Yield where `old` occurs with letters composed otherwise; new ones are written as there."""
    sources: list[int | None] | None = None
    plain = composed(new)
    for start, end in canonical_spans(text, old):
        sources = sources_in(composed(old), plain) if sources is None else sources
        there = text[start:end]
        yield QuotePlace(start, end, Edit(start, end, in_form_of(there, sources, plain)), there)


def trailing_blank_places(text: str, old: str, new: str) -> Iterator[QuotePlace]:
    """Yield whole lines that differ from `old` in blanks at their ends."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    for start, end, lines in _windows(text, old, _without_trailing_blanks):
        merged = _merged(lines, old_lines, new_lines, new_lines)
        yield QuotePlace(start, end, Edit(start, end, merged), tuple(lines))


def indented_places(text: str, old: str, new: str) -> Iterator[QuotePlace]:
    """Yield whole lines that are indented more or less than `old`, all by the same blanks.

    One prefix is added or removed, or tabs replace spaces or the reverse. `new` is shifted as far;
    it must have the least indentation of `old`. Or each tab stands for the same number of blanks,
    at all levels.
    """
    old_lines, new_lines = old.split("\n"), new.split("\n")
    level = _depth(old_lines) == _depth(new_lines) or not any(map(str.strip, new_lines))
    for start, end, lines in _windows(text, old, _without_indent):
        shift = _uniform_shift(old_lines, lines)
        if shift is None:
            scale = _tab_scale(old_lines, lines)
            moved = _scaled(new_lines, *scale) if scale is not None else None
            if moved is not None:
                edit = Edit(start, end, _merged(lines, old_lines, new_lines, moved))
                yield QuotePlace(start, end, edit, scale)
            elif scale is not None:
                yield QuotePlace(start, end, None, scale)
            continue
        moved = _moved(new_lines, *shift) if level else None
        edit = None
        if moved is not None:
            edit = Edit(start, end, _merged(lines, old_lines, new_lines, moved))
        yield QuotePlace(start, end, edit, shift)


def punctuation_places(text: str, old: str, new: str) -> Iterator[QuotePlace]:
    """Yield where `old` occurs with other dashes, quotes, blanks or full-width punctuation."""
    for start in _occurrences(folded(text), folded(old)):
        end = start + len(old)
        merged = with_own_punctuation(text[start:end], old, new)
        yield QuotePlace(start, end, Edit(start, end, merged))


TIERS: tuple[tuple[Tier, FindPlaces], ...] = (
    ("exact", exact_places),
    ("canonical", canonical_places),
    ("trailing_blanks", trailing_blank_places),
    ("indentation", indented_places),
    ("punctuation", punctuation_places),
)


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _without_trailing_blanks(line: str) -> str:
    return line.rstrip(_BLANKS)


def _without_indent(line: str) -> str:
    return line.lstrip(_BLANKS)


def _windows(
    text: str, old: str, key: Callable[[str], str]
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield span and lines of each run of whole lines with the same keys as those of `old`.

    If `old` ends with a line end, the span includes one. Blank lines alone do not match.
    """
    lines = text.split("\n")
    wanted = [key(line) for line in old.split("\n")]
    with_end = not wanted[-1] and old.endswith("\n")
    if with_end:
        wanted.pop()
    if not any(wanted):
        return
    keys = [key(line) for line in lines]
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    count = len(wanted)
    last = len(lines) - count - (1 if with_end else 0)
    for at in _positions(keys, wanted[0]):
        if at <= last and keys[at : at + count] == wanted:
            end = offsets[at + count] - (0 if with_end else 1)
            yield offsets[at], end, [*lines[at : at + count], *([""] if with_end else [])]


def _positions(keys: Sequence[str], wanted: str) -> Iterator[int]:
    return (at for at, key in enumerate(keys) if key == wanted)


def _merged(
    there: Sequence[str], old: Sequence[str], new: Sequence[str], put: Sequence[str]
) -> str:
    """Return the text for a place: the file's own lines where `old` and `new` agree, else `put`'s.

    `put` has the lines of `new` adapted to the place.
    """
    result: list[str] = []
    at = 0
    for a0, a1, b0, b1 in diff_lines(old, new):
        result += there[at:a0]
        result += put[b0:b1]
        at = a1
    result += there[at:]
    return "\n".join(result)


def _depth(lines: Sequence[str]) -> int:
    """Return the least indentation of the lines that are not blank."""
    return min((len(_indent(line)) for line in lines if line.strip(_BLANKS)), default=0)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _uniform_shift(old: Sequence[str], there: Sequence[str]) -> tuple[str, str] | None:
    """`(taken, given)`: the prefix that every line of `old` has where those of `there` have
    another one. None if there is no such pair."""
    pairs = [(a, b) for a, b in zip(old, there, strict=True) if a.strip(_BLANKS)]
    first, first_there = min(pairs, key=lambda pair: len(_indent(pair[0])))
    indent, indent_there = _indent(first), _indent(first_there)
    for length in range(len(indent) + 1):
        taken, rest = indent[:length], indent[length:]
        if not indent_there.endswith(rest):
            continue
        given = indent_there[: len(indent_there) - len(rest)]
        if _is_shift(taken, given) and all(_shifts(a, b, taken, given) for a, b in pairs):
            return taken, given
    return None


def _tab_scale(old: Sequence[str], there: Sequence[str]) -> tuple[int, bool] | None:
    """Return how many blanks stand for a tab in all lines, and whether `there` has the tabs."""
    scales: set[tuple[int, bool]] = set()
    for quoted, line in zip(old, there, strict=True):
        one, other = _indent(quoted), _indent(line)
        if not quoted.strip(_BLANKS) or one == other == "":
            continue
        to_tabs = {*other} == {"\t"}
        blanks, tabs = (one, other) if to_tabs else (other, one)
        if {*blanks} != {" "} or {*tabs} != {"\t"} or len(blanks) % len(tabs):
            return None
        scales.add((len(blanks) // len(tabs), to_tabs))
    return scales.pop() if len(scales) == 1 else None


def _scaled(lines: Sequence[str], width: int, to_tabs: bool) -> list[str] | None:
    """Return the lines with tabs for blanks, or the reverse; None if an indentation is mixed."""
    source, target = (" " * width, "\t") if to_tabs else ("\t", " " * width)
    result: list[str] = []
    for line in lines:
        indent = _indent(line)
        count, rest = divmod(len(indent), len(source))
        if line.strip(_BLANKS) and (rest or indent != source * count):
            return None
        result.append(target * count + line[len(indent) :] if line.strip(_BLANKS) else line)
    return result


def _is_shift(taken: str, given: str) -> bool:
    """Return whether a prefix is added, removed, or exchanged between tabs and spaces."""
    if not taken or not given:
        return taken != given
    return {*taken, *given} == {" ", "\t"} and len({*taken}) == len({*given}) == 1


def _shifts(line: str, there: str, taken: str, given: str) -> bool:
    return line.startswith(taken) and there == given + line[len(taken) :]


def _moved(lines: Sequence[str], taken: str, given: str) -> list[str] | None:
    """Return the lines with the prefix exchanged; None if one does not have it. Blank lines stay.

    None, too, if that would mix tabs and spaces: indentation beyond `taken` is exchanged in the
    same ratio, which must leave no remainder.
    """
    result: list[str] = []
    for line in lines:
        if not line.strip(_BLANKS):
            result.append(line)
            continue
        if not line.startswith(taken):
            return None
        deeper = _indent(line)[len(taken) :]
        put = _exchanged(deeper, taken, given)
        if put is None:
            return None
        result.append(given + put + line[len(taken) + len(deeper) :])
    return result


def _exchanged(deeper: str, taken: str, given: str) -> str | None:
    """Return indentation beyond the shift, adapted to `given`; None if that would mix the two."""
    if not deeper or not given or len({*deeper}) > 1 or {*deeper} == {*given}:
        return deeper
    if {*deeper} != {*taken}:
        return None
    size, rest = divmod(len(deeper) * len(given), len(taken))
    return given[0] * size if not rest else None
