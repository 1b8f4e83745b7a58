"""Error texts for the model if its quote has no place, or several. Pure; LF text.

Similarity serves these texts only: it shows the place that may have been meant.
"""

from collections import Counter
from collections.abc import Sequence

from kode_sidecar.core.text.look_alikes import other_characters, skeleton
from kode_sidecar.core.text.shown_text import CONTROL, without_controls

MAX_PLACES = 5
"""How many places an `ambiguous` error shows."""
MAX_VOTING_LINES = 200
MAX_VOTES_PER_LINE = 50
MAX_COMPARED_LINES = 5_000
MAX_SHOWN_LINES = 12
MAX_SHOWN_CHARS = 200
_ELISIONS = frozenset({"...", "…", "# ...", "// ...", "/* ... */"})
_ESCAPES = (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\\\", "\\"))


def ambiguous_text(text: str, spans: Sequence[tuple[int, int]], how: str, advice: str) -> str:
    """Return the error for an `old` that fits several spans; `how` and `advice` go into it."""
    lines = text.split("\n")
    places = [line_span(text, start, end) for start, end in spans[:MAX_PLACES]]
    named = ", ".join(str(first) for first, _ in places)
    left = len(spans) - len(places)
    more = f" and {left} more" if left > 0 else ""
    shown = "\n--\n".join(_surroundings(lines, first, last) for first, last in places)
    return (
        f"`old` occurs {len(spans)} times{how}, beginning at lines {named}{more}. Quote more of "
        f"the lines around the place you mean, {advice}.\n{shown}"
    )


def not_found_text(text: str, old: str) -> str:
    """Return the error for an `old` that fits nowhere."""
    wanted, lines = old.split("\n"), text.split("\n")
    remark = _remark(text, old, wanted)
    start = _closest(lines, wanted)
    if start is None:
        return (
            "`old` does not occur in the file, nor does any of its lines. "
            f"{remark}Read the file again and quote it exactly."
        )
    end = min(start + len(wanted), len(lines))
    return (
        "`old` does not occur in the file exactly as quoted. "
        f"{remark}{_difference(lines, wanted, start)}\n"
        f"The closest place, lines {start + 1}-{end}, reads:\n{_numbered(lines, start, end)}\n"
        "Quote `old` exactly as it stands there, blanks included."
    )


def line_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last line that `[start, end)` touches, from 1."""
    first = text.count("\n", 0, start) + 1
    return first, first + text.count("\n", start, max(start, end - 1))


def _remark(text: str, old: str, wanted: Sequence[str]) -> str:
    """Return a mistake that is known by its look."""
    if any(line.strip() in _ELISIONS for line in wanted):
        return "It leaves lines out with `...`, which stands for nothing here: quote every line. "
    if CONTROL.search(text) and old in without_controls(text):
        begins = without_controls(text).index(old)
        places = [one.start() for one in CONTROL.finditer(text)]
        at = next(place for removed, place in enumerate(places) if place - removed >= begins)
        line, code = text.count("\n", 0, at) + 1, ord(text[at])
        return (
            f"Line {line} holds a control character, U+{code:04X}, that read_file does not show, "
            "in the middle of what you quote: quote only text before it, or after it. "
        )
    looks = _only_looks_alike(text, wanted)
    if looks:
        return looks
    plain = old
    for escaped, char in _ESCAPES:
        plain = plain.replace(escaped, char)
    if plain != old and plain in text:
        return "It is escaped once too often: without the extra backslashes it occurs. "
    return ""


def _only_looks_alike(text: str, wanted: Sequence[str]) -> str:
    """Return the first line that only looks like one of `wanted`, with the characters; or ""."""
    asked = [line.strip() for line in wanted[:MAX_VOTING_LINES] if line.strip()]
    looks = [(line, skeleton(line)) for line in asked]
    for number, line in enumerate(text.split("\n")[:MAX_COMPARED_LINES], 1):
        plain = skeleton(line)
        for one, seen in looks:
            if not (line.isascii() and one.isascii()) and seen in plain and one not in line:
                at = plain.index(seen)
                there = line[at : at + len(one)] if len(plain) == len(line) else line
                return f"Line {number} only looks like it{other_characters(there, one)}. "
    return ""


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
    """Return the first line that differs, as quoted and as it is."""
    for k, want in enumerate(wanted):
        there = lines[start + k] if start + k < len(lines) else None
        inner = 0 < k < len(wanted) - 1
        if there is None:
            return f"Line {k + 1} of it lies past the end of the file."
        if want != there and (inner or want.strip() != there.strip() or want not in there):
            hint = " (only the blanks differ)" if want.split() == there.split() else ""
            return f"First difference at line {start + k + 1}{hint}:\n-{_cut(want)}\n+{_cut(there)}"
    return "The lines agree but their ends do not."


def _surroundings(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first..last` and one on either side, the middle left out where they are many."""
    start, end = max(first - 2, 0), min(last + 1, len(lines))
    if end - start <= 5:
        return _numbered(lines, start, end)
    return f"{_numbered(lines, start, start + 2)}\n…\n{_numbered(lines, end - 2, end)}"


def _numbered(lines: Sequence[str], start: int, end: int) -> str:
    cut = min(end, start + MAX_SHOWN_LINES)
    shown = [f"{at + 1}\t{_cut(lines[at])}" for at in range(start, cut)]
    if cut < end:
        shown.append(f"… {end - cut} more lines")
    return "\n".join(shown)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_SHOWN_CHARS else line[:MAX_SHOWN_CHARS] + "…"
