"""What readers of a review hand in: findings with quotes, or verdicts on those of others."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field

from kode_sidecar.core.domain.finding import Severity
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome

REPORT = "report_findings"
_Line = Annotated[int, Meta(ge=1)]
_Words = Annotated[str, Meta(min_length=1)]


class ReportedPlace(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Another place that shows the fault, such as a caller."""

    path: _Words
    start_line: _Line
    end_line: _Line
    quote: _Words


class ReportedFinding(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One fault, at the lines where it should be fixed."""

    severity: Annotated[
        Severity,
        Meta(
            description="error: wrong result, lost data, security hole; warning: likely trouble; "
            "info: worth knowing; nit: taste"
        ),
    ]
    category: Annotated[
        str, Meta(min_length=1, max_length=60, description="The kind, such as off-by-one or race")
    ]
    title: Annotated[str, Meta(min_length=1, max_length=200, description="The fault in a line")]
    explanation: Annotated[
        str, Meta(min_length=1, description="When it goes wrong, and what happens then")
    ]
    path: Annotated[str, Meta(min_length=1, description="The file, as `changes` names it")]
    start_line: Annotated[_Line, Meta(description="First line in the new text")]
    end_line: Annotated[_Line, Meta(description="Last line, inclusive")]
    quote: Annotated[
        str, Meta(min_length=1, description="The words there, copied exactly, without numbers")
    ]
    suggestion: Annotated[str, Meta(description="How to fix it, in words or code")] = ""
    evidence: list[ReportedPlace] = field(default_factory=list[ReportedPlace])


class ReportReviewParams(Struct, forbid_unknown_fields=True):
    """Hand in the faults that you found and end your work. Call it once, after you have read.

    No fault is a result, too: hand in an empty list then.
    """

    summary: Annotated[str, Meta(min_length=1, description="What you looked at, in a sentence")]
    findings: list[ReportedFinding] = field(default_factory=list[ReportedFinding])


class Verdict(Struct, frozen=True, forbid_unknown_fields=True):
    """What you found out about one finding."""

    id: _Words
    holds: Annotated[bool, Meta(description="false only if the code shows that it is no fault")]
    reason: Annotated[str, Meta(min_length=1, description="Why, in a sentence")]


class ReportVerdictsParams(Struct, forbid_unknown_fields=True):
    """Hand in a verdict on each finding and end your work. Call it once, after you have read."""

    summary: _Words
    verdicts: list[Verdict] = field(default_factory=list[Verdict])


def report_review_tool(
    take: Callable[[list[ReportedFinding]], None], end: Callable[[str], None]
) -> Tool:
    """Make the tool of one reader that looks for faults."""

    async def run(params: ReportReviewParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        take(params.findings)
        end(params.summary)
        return ToolOutcome(ok=True, summary=f"Reported {len(params.findings)} findings")

    return Tool(REPORT, ReportReviewParams, run, ends_turn=True)


def report_verdicts_tool(take: Callable[[list[Verdict]], None], end: Callable[[str], None]) -> Tool:
    """Make the tool of one reader that tries to refute findings."""

    async def run(params: ReportVerdictsParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        take(params.verdicts)
        end(params.summary)
        return ToolOutcome(ok=True, summary=f"Reported {len(params.verdicts)} verdicts")

    return Tool(REPORT, ReportVerdictsParams, run, ends_turn=True)
