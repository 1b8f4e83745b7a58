"""`report_findings`: the one way a scout ends well."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field

from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.scouts.contracts import Finding
from kode_sidecar.scouts.scout_rules import REPORT


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
    """The tool of one scout; `accept` keeps the report, and the scout ends."""

    async def run(params: ReportFindingsParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        accept(params)
        count = len(params.findings)
        summary = f"Reported {count} finding{'' if count == 1 else 's'}"
        return ToolOutcome(ok=True, summary=summary)

    return Tool(REPORT, ReportFindingsParams, run, ends_turn=True)
