"""`review_changes` runs a review and records its findings; `decide_finding` the user's word."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.agent.reviews.contracts import ReviewPlace, ReviewServices
from kode_sidecar.agent.reviews.record import (
    ReviewRecord,
    at_present,
    followed,
    read_review,
)
from kode_sidecar.agent.reviews.review_run import Reviewed, ReviewRun
from kode_sidecar.agent.reviews.session_findings import SessionFindings
from kode_sidecar.agent.tools.changes import ChangesParams, ChangesView, Subject
from kode_sidecar.core.domain.finding import ReviewFinding, compared, open_findings
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import one_line, without_controls


class ReviewChangesParams(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Have changes reviewed by readers side by side, and get the findings that hold.

    Another reader tried to refute each one. The result says what became of earlier findings, and
    what nobody looked at.
    """

    of: Annotated[Subject, Meta(description="As for `changes`")] = "working_tree"
    range: Annotated[
        str, Meta(max_length=300, description="A commit, A..B or A...B; for branch its base")
    ] = ""
    paths: Annotated[list[str], Meta(description="Only these; [] for all")] = []
    start_line: Annotated[int, Meta(ge=1, description="Of `file`: first line")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="Of `file`: last line")] | None = None
    focus: Annotated[str, Meta(description="What matters to the user, in their words")] = ""
    nits: Annotated[bool, Meta(description="Matters of taste, too")] = False


def review_request(**wanted: Any) -> str:
    """Return the arguments of `review_changes` as a record of the review holds them."""
    return _request_text(msgspec.convert(wanted, ReviewChangesParams))


def _request_text(params: ReviewChangesParams) -> str:
    return msgspec.json.encode(params).decode()


class DecideFindingParams(Struct, forbid_unknown_fields=True):
    """Record what the user says about a finding. Only the user decides: never call it unasked."""

    id: Annotated[str, Meta(min_length=1, description="Such as f3")]
    state: Annotated[
        Literal["dismissed", "resolved", "open"],
        Meta(description="dismissed: on purpose or wrong; resolved: done; open: again"),
    ]
    reason: Annotated[str, Meta(max_length=2_000, description="Why, as the user said")] = ""


def review_changes_tool(place: ReviewPlace, services: ReviewServices) -> Tool:
    """Make the tool of one session."""

    async def run(params: ReviewChangesParams, call: ToolCall) -> ToolOutcome:
        before = _now(place.findings, place.view)
        on_purpose = [
            _dismissed(one) for one in before.findings if one.state == "dismissed" and not one.gone
        ]
        asked = ChangesParams(
            of=params.of,
            range=params.range,
            paths=params.paths,
            start_line=params.start_line,
            end_line=params.end_line,
        )
        findings = place.findings

        def record(done: Reviewed) -> ReviewRecord:
            return _recorded(_now(findings, place.view), done, params, place.view)

        review = ReviewRun(
            asked,
            params.focus,
            call,
            place,
            services,
            lambda done: findings.report(record(done), call.tool_use_id, running=True),
            on_purpose,
            nits=params.nits,
        )
        await review.begin()
        try:
            await review.run()
        finally:  # what a stopped review has found counts, too
            found = record(review.done)
            findings.save(found, call.tool_use_id)
        content = _content(found, review.done)
        return ToolOutcome(ok=True, summary=found.summary, content=content)

    return Tool(
        "review_changes",
        ReviewChangesParams,
        run,
        kind="search",
        card=lambda params: CallCard(f"Review: {params.of.replace('_', ' ')}"),
    )


def decide_finding_tool(findings: SessionFindings) -> Tool:
    """Make the tool of one session."""

    async def run(params: DecideFindingParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        findings.decide(params.id, params.state, params.reason)
        summary = f"{params.id} is {params.state}"
        return ToolOutcome(ok=True, summary=summary, content=f"{summary}.")

    return Tool(
        "decide_finding",
        DecideFindingParams,
        run,
        card=lambda params: CallCard(f"Finding {params.id}: {params.state}"),
    )


def _now(findings: SessionFindings, view: ChangesView) -> ReviewRecord:
    return followed(read_review(findings.folder) or ReviewRecord(), view.text_of)


def _recorded(
    before: ReviewRecord, done: Reviewed, params: ReviewChangesParams, view: ChangesView
) -> ReviewRecord:
    found, texts = at_present(done.findings, view.text_of)
    findings = compared(before.findings, found, done.paths)
    there = {one.path for one in findings if not one.gone}
    texts = {path: text for path, text in {**before.texts, **texts}.items() if path in there}
    return ReviewRecord(
        findings=tuple(findings),
        texts=texts,
        not_reviewed=tuple(done.not_reviewed),
        missed=done.missed,
        summary=_summary(findings, done),
        request=_request_text(params),
    )


def _dismissed(one: ReviewFinding) -> str:
    return one_line(f"{one.path}:{one.start_line} {one.title} ({one.reason or 'no reason'})")


def _summary(findings: Sequence[ReviewFinding], done: Reviewed) -> str:
    open_ones = [one for one in findings if one.state == "open"]
    kinds = Counter(one.severity for one in open_ones)
    counted = ", ".join(f"{count} {name}" for name, count in kinds.items())
    head = f"{len(open_ones)} finding{'' if len(open_ones) == 1 else 's'}"
    head += f" ({counted})" if counted else ""
    news = Counter(one.news for one in findings if one.news == "fixed" or one.state == "open")
    if set(news) - {"new"}:
        head += "; " + ", ".join(f"{count} {name}" for name, count in news.items())
    if done.not_reviewed:
        head += f"; {len(done.not_reviewed)} files not looked at"
    return head


def _content(record: ReviewRecord, done: Reviewed) -> str:
    lines = [record.summary]
    lines += [f"[dropped: {count} {why}]" for why, count in done.dropped.items()]
    lines += [f"[not looked at: {one}]" for one in record.not_reviewed[:100]]
    if len(record.not_reviewed) > 100:
        lines.append(f"[and {len(record.not_reviewed) - 100} more files]")
    shown = [
        *open_findings(record.findings),
        *(one for one in record.findings if one.news == "fixed"),
    ]
    lines += [msgspec.json.encode(one).decode() for one in shown]
    return without_controls("\n".join(lines))
