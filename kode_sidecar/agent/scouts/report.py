"""Accept a scout's report, check its quotes, and cut it to its budget. Sans-IO."""

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from kode_sidecar.agent.scouts.contracts import CheckedFinding, Evidence, ExploreReport, Finding
from kode_sidecar.agent.scouts.scout_rules import REPORT
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import strip_line_numbers
from kode_sidecar.errors import KodeError


class ReportFindingsParams(Struct, forbid_unknown_fields=True):
    """Hand in what you found out and end your work. Call it once, after you have read.

    Every finding needs evidence: the file, the lines, and the words that stand there.
    """

    summary: Annotated[str, Meta(min_length=1, description="The answer in a few sentences")]
    findings: Annotated[list[Finding], Meta(description="The most important first")] = field(
        default_factory=list[Finding]
    )
    open_questions: Annotated[
        list[str], Meta(description="What you could not find out, and where to look for it")
    ] = field(default_factory=list[str])


def report_findings_tool(accept: Callable[[ReportFindingsParams], None]) -> Tool:
    """Make the tool of one scout; `accept` takes the report, and the scout ends."""

    async def run(params: ReportFindingsParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        accept(params)
        count = len(params.findings)
        summary = f"Reported {count} finding{'' if count == 1 else 's'}"
        return ToolOutcome(ok=True, summary=summary)

    return Tool(REPORT, ReportFindingsParams, run, ends_turn=True)


def checked(finding: Finding, text_of: Callable[[str], str]) -> CheckedFinding:
    """Return the finding, marked verified or not; `text_of` may raise KodeError."""
    try:
        text = text_of(finding.path)
    except KodeError:
        text = ""
    evidence: Evidence = "verified" if is_quoted(finding, text) else "unverified"
    return CheckedFinding(**asdict(finding), evidence=evidence)


def is_quoted(finding: Finding, text: str) -> bool:
    """True if the cited lines of `text` hold the quote.

    A run of blanks counts as one: models trim and re-indent what they copy. An empty quote is no
    evidence.
    """
    lines = split_lines(text)[finding.start_line - 1 : finding.end_line]
    cited = _words("".join(lines))
    quotes = (finding.quote, strip_line_numbers(finding.quote) or "")
    return any(words and words in cited for words in map(_words, quotes))


def _words(text: str) -> str:
    return " ".join(text.split())


_CUT = " […]"


def as_json(reports: Sequence[ExploreReport]) -> str:
    """Return `ExploreReport[]` as the main agent reads it, a line each, in the order given."""
    return "[\n" + ",\n".join(msgspec.json.encode(one).decode() for one in reports) + "\n]"


def fitted(report: ExploreReport, budget: int) -> ExploreReport:
    """Return the report in at most `budget` bytes of JSON; `left_out` counts dropped findings.

    Drops findings first, from the last one on; then names of read files, then open questions, then
    the ends of texts.
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
