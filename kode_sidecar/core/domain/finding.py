"""A finding of a code review: a place in the text, how bad it is, why, and what became of it.

Only what is quoted from the text counts: models invent lines, and a place that is not there helps
nobody.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.core.domain.change_set import Range

Severity = Literal["error", "warning", "info", "nit"]
"""Wrong result, loss or hole; likely trouble; worth knowing; taste."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info", "nit")
"""From the worst on."""

FindingState = Literal["open", "dismissed", "resolved", "fixed"]
"""`dismissed` and `resolved` are the user's word; `fixed`: its text is gone at a later review."""

FindingNews = Literal["new", "stays", "fixed"]
"""What the latest review says of it."""


class QuotedPlace(Struct, frozen=True, rename="camel"):
    """Lines of a file, from 1, inclusive, and the words that stand there."""

    path: str
    start_line: int
    end_line: int
    quote: str


class ReviewFinding(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One finding. `quote` stands at its lines; `evidence` are other places that show it.

    `reason` is why the user dismissed or resolved it. `gone`: its lines are no longer in the file.
    `unconfirmed`: nobody could try to refute it.
    """

    id: str
    path: str
    start_line: int
    end_line: int
    severity: Severity
    category: str
    title: str
    explanation: str
    quote: str
    evidence: tuple[QuotedPlace, ...] = ()
    suggestion: str = ""
    state: FindingState = "open"
    news: FindingNews = "new"
    reason: str = ""
    gone: bool = False
    unconfirmed: bool = False


class FindingPlace(Struct, frozen=True, kw_only=True):
    """Another place that shows the fault, where the review found it."""

    uri: str
    path: str
    range: Range
    quote: str


class FindingView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A finding on the wire, at its place in the editor's text as it is now.

    `range` is absent if its lines are no longer there; `reason` is why the user dismissed or
    resolved it. `news` is what the latest review says of it. `unconfirmed`: nobody could try to
    refute it. `uri` is empty for a file that no open folder holds.
    """

    finding_id: str
    uri: str
    path: str
    range: Range | None = None
    severity: Severity
    category: str
    title: str
    explanation: str
    quote: str
    evidence: tuple[FindingPlace, ...] = ()
    suggestion: str = ""
    state: FindingState
    news: FindingNews
    reason: str = ""
    unconfirmed: bool = False


_SHORTEST_QUOTE = 6
"""Characters besides blanks by which a quote can be found elsewhere than at its cited lines."""


def located(quote: str, text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the lines where the quote stands, None if nowhere.

    Those cited if it is there, else the nearest ones: models count badly. A run of blanks counts
    as one. An empty quote, or a short one elsewhere, is no evidence.
    """
    words = squeezed(quote)
    if not words:
        return None
    lines = [squeezed(line) for line in text.split("\n")]
    wanted = [squeezed(line) for line in quote.strip().split("\n")]
    size = len(wanted)
    fitting = [
        at
        for at, line in enumerate(lines[: len(lines) - size + 1])
        if wanted[0] in line and words in " ".join(filter(None, lines[at : at + size]))
    ]
    if not fitting:
        return None
    nearest = min(fitting, key=lambda at: abs(at + 1 - start))
    cited = start - 1 <= nearest < max(start, end)
    if not cited and sum(not char.isspace() for char in quote) < _SHORTEST_QUOTE:
        return None
    return nearest + 1, nearest + size


def squeezed(text: str) -> str:
    """Return the text with each run of blanks as one."""
    return " ".join(text.split())


def badness(one: ReviewFinding) -> int:
    """Return a number by which findings are sorted, the worst first."""
    return SEVERITIES.index(one.severity)


def merged(findings: Sequence[ReviewFinding]) -> list[ReviewFinding]:
    """Return the findings without duplicates, the worst first; the worst of equal ones stays."""
    found: list[ReviewFinding] = []
    for one in sorted(findings, key=badness):
        at = next((i for i, known in enumerate(found) if is_same(known, one)), None)
        if at is None:
            found.append(one)
        else:
            found[at] = united(found[at], one)
    return found


def united(one: ReviewFinding, other: ReviewFinding) -> ReviewFinding:
    """Return the worse of two equal findings, the first if they are as bad, with all evidence."""
    if badness(other) < badness(one):
        one, other = other, one
    return replace(
        one,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
        suggestion=one.suggestion or other.suggestion,
        unconfirmed=one.unconfirmed and other.unconfirmed,
    )


def open_findings(findings: Sequence[ReviewFinding]) -> list[ReviewFinding]:
    """Return those that wait for the user and are still in the text, the worst first."""
    found = [one for one in findings if one.state == "open" and not one.gone]
    return sorted(found, key=badness)


def is_same(one: ReviewFinding, other: ReviewFinding) -> bool:
    """Return whether two findings are about one fault: in the same lines, of much the same title.

    Of the same category less of the title is enough; two faults of one line stay two.
    """
    if one.path != other.path:
        return False
    if one.start_line > other.end_line or other.start_line > one.end_line:
        return False
    words, others = _words(one.title), _words(other.title)
    if not words or not others:
        return one.title == other.title
    share = len(words & others) / min(len(words), len(others))
    return share >= (_SHARE_OF_KIND if one.category == other.category else _SHARE)


_SHARE, _SHARE_OF_KIND = 0.6, 0.3
_WORD = re.compile(r"[^\W\u3400-\u9fff]{3,}|[\u3400-\u9fff]")


def _words(text: str) -> frozenset[str]:
    """Return the words of a title; each Chinese character counts as one."""
    return frozenset(_WORD.findall(text.lower()))


def compared(
    before: Sequence[ReviewFinding], now: Sequence[ReviewFinding], reviewed: Sequence[str]
) -> list[ReviewFinding]:
    """Return all findings after a review again: which are new, which stay, which are fixed.

    One that stays has its old id, state and reason, so that what was dismissed stays so; one that
    is `gone` in a reviewed file is fixed. Where the text is still there it stays, even if nobody
    found it again.
    """
    left = list(now)
    found: list[ReviewFinding] = []
    for old in before:
        again = next((one for one in left if not old.gone and is_same(old, one)), None)
        if again is not None:
            left.remove(again)
            reopened = old.state in ("resolved", "fixed")
            state: FindingState = "open" if reopened else old.state
            reason = "" if reopened else old.reason
            found.append(replace(again, id=old.id, state=state, reason=reason, news="stays"))
        elif old.gone and old.state == "open" and old.path in reviewed:
            found.append(replace(old, state="fixed", news="fixed"))
        else:
            found.append(replace(old, news="fixed" if old.state == "fixed" else "stays"))
    taken = {old.id for old in before}
    number = 1 + max((int(name[1:]) for name in taken if name[1:].isdecimal()), default=0)
    new = [replace(one, id=f"f{number + i}", news="new") for i, one in enumerate(left)]
    return [*found, *new]
