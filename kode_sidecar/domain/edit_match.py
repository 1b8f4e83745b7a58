"""Where an edit of the model belongs. Pure; works on text with LF line ends.

Only an exact match ever applies. Likeness serves the error text alone: it shows the model
the place it may have meant, so that the next call can quote it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MatchErrorCode = Literal["empty_old", "identical", "not_found", "ambiguous"]

MAX_PLACES = 5
"""How many places an `ambiguous` error names."""
MAX_VOTING_LINES = 200
MAX_VOTES_PER_LINE = 50
MAX_SHOWN_LINES = 12
MAX_SHOWN_CHARS = 200


@dataclass(frozen=True)
class Match:
    """Code-point spans to replace, ascending and disjoint."""

    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class MatchError:
    """Why nothing can be replaced; `message` tells the model how to mend it."""

    code: MatchErrorCode
    message: str


def locate(text: str, old: str, new: str, *, replace_all: bool = False) -> Match | MatchError:
    """The one place of `old` in `text`, or all of them with `replace_all`.

    Overlapping places count as several, so a match is never a guess; with `replace_all` they
    are taken from left to right. An empty `old` fits an empty text only.
    """
    if not old:
        return Match(((0, 0),)) if not text and new else _empty_old(text)
    if old == new:
        return MatchError("identical", "`old` and `new` are the same: there is nothing to change.")
    places = _places(text, old, step=len(old) if replace_all else 1)
    if not places:
        return MatchError("not_found", _not_found(text, old))
    if len(places) > 1 and not replace_all:
        return MatchError("ambiguous", _ambiguous(text, places))
    return Match(tuple((at, at + len(old)) for at in places))


def replace_spans(text: str, spans: Sequence[tuple[int, int]], new: str) -> str:
    """`text` with every span replaced by `new`."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], new)
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _places(text: str, old: str, step: int) -> list[int]:
    """Where `old` begins; a `step` of one finds overlapping places too."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + step)
    return places


def _empty_old(text: str) -> MatchError:
    if not text:
        return MatchError("identical", "The file is empty and `new` is too: nothing to change.")
    return MatchError(
        "empty_old",
        "`old` is empty. Quote the lines next to the place as `old`, "
        "and repeat them in `new` together with the text to add.",
    )


def _ambiguous(text: str, places: Sequence[int]) -> str:
    lines = [text.count("\n", 0, at) + 1 for at in places[:MAX_PLACES]]
    named = ", ".join(str(line) for line in lines)
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    return (
        f"`old` occurs {len(places)} times, beginning at lines {named}{more}. Quote more of "
        "the lines around the place you mean, or set `replace_all` to change every one."
    )


def _not_found(text: str, old: str) -> str:
    wanted, lines = old.split("\n"), text.split("\n")
    start = _closest(lines, wanted)
    if start is None:
        return (
            "`old` does not occur in the file, nor does any of its lines. "
            "Read the file again and quote it exactly."
        )
    end = min(start + len(wanted), len(lines))
    return (
        "`old` does not occur in the file exactly as quoted. "
        f"{_difference(lines, wanted, start)}\n"
        f"The closest place, lines {start + 1}-{end}, reads:\n{_numbered(lines, start, end)}\n"
        "Quote `old` exactly as it stands there, blanks included."
    )


def _closest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The line where most lines of `wanted` would fall into place (blanks at the ends aside).

    Every line votes for the start it implies. Bounded: few lines vote, and each one for few
    places, rare lines first in weight.
    """
    positions: dict[str, list[int]] = {}
    voters = [(k, line.strip()) for k, line in enumerate(wanted[:MAX_VOTING_LINES])]
    asked = {line for _, line in voters if line}
    for at, line in enumerate(lines):
        stripped = line.strip()
        if stripped in asked:
            places = positions.setdefault(stripped, [])
            if len(places) < MAX_VOTES_PER_LINE:
                places.append(at)
    votes: Counter[int] = Counter()
    for k, line in voters:
        places = positions.get(line, [])
        for at in places:
            votes[max(0, at - k)] += 60 // len(places) + 1
    return votes.most_common(1)[0][0] if votes else None


def _difference(lines: Sequence[str], wanted: Sequence[str], start: int) -> str:
    """The first line that differs, as quoted and as it is."""
    for k, want in enumerate(wanted):
        there = lines[start + k] if start + k < len(lines) else None
        inner = 0 < k < len(wanted) - 1
        if there is None:
            return f"Line {k + 1} of it lies past the end of the file."
        if want != there and (inner or want.strip() != there.strip() or want not in there):
            hint = " (only the blanks differ)" if want.split() == there.split() else ""
            return f"First difference at line {start + k + 1}{hint}:\n-{_cut(want)}\n+{_cut(there)}"
    return "The lines agree but their ends do not."


def _numbered(lines: Sequence[str], start: int, end: int) -> str:
    cut = min(end, start + MAX_SHOWN_LINES)
    shown = [f"{at + 1}\t{_cut(lines[at])}" for at in range(start, cut)]
    if cut < end:
        shown.append(f"… {end - cut} more lines")
    return "\n".join(shown)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_SHOWN_CHARS else line[:MAX_SHOWN_CHARS] + "…"
