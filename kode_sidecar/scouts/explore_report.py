"""Reports as the main agent reads them: JSON, a line each, none beyond its budget. Sans-IO."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kode_sidecar.scouts.contracts import ExploreReport

_CUT = " […]"


def as_json(reports: Sequence[ExploreReport]) -> str:
    """`ExploreReport[]`, in the order given."""
    return "[\n" + ",\n".join(msgspec.json.encode(one).decode() for one in reports) + "\n]"


def fitted(report: ExploreReport, budget: int) -> ExploreReport:
    """The report in at most `budget` bytes of JSON; the note and the newest losses are told.

    Findings go first, from the last one on; then the names of what was read, then open questions,
    then the ends of texts.
    """
    while report.findings and _size(report) > budget:
        left_out = report.left_out + 1
        report = replace(report, findings=report.findings[:-1], left_out=left_out)
    if _size(report) > budget:
        report = replace(report, read=report.read[:10])
    while report.open_questions and _size(report) > budget:
        report = replace(report, open_questions=report.open_questions[:-1])
    for name in ("summary", "note", "title"):
        report = _with_shorter(report, name, budget)
    return report


def _with_shorter(report: ExploreReport, name: str, budget: int) -> ExploreReport:
    while (text := getattr(report, name)) != _CUT and _size(report) > budget:
        # A character has at most twelve bytes as JSON (two `\\u` escapes); half is always enough.
        over = _size(report) - budget
        kept = max(0, len(text) - len(_CUT) - max(1, over // 12))
        report = replace(report, **{name: text[:kept].removesuffix(_CUT) + _CUT})
        if kept == 0:
            break
    return report


def _size(report: ExploreReport) -> int:
    return len(msgspec.json.encode(report))
