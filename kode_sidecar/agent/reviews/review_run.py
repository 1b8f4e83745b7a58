"""One review from changes to findings: parts, readers side by side, quotes, refuting, merging.

What models say is taken apart here: a quote that is not in the text, a duplicate, a refuted finding
or one beyond the limit never reaches the user, and what nobody looked at is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import msgspec

from kode_sidecar.agent.reviews.contracts import ReviewLimits, ReviewPlace, ReviewServices
from kode_sidecar.agent.reviews.report_tools import (
    ReportedFinding,
    Verdict,
    report_review_tool,
    report_verdicts_tool,
)
from kode_sidecar.agent.scouts import MAX_TASKS, Dispatch
from kode_sidecar.agent.scouts.contracts import ExploreRequest, ExploreTask
from kode_sidecar.agent.tools.changed_files import ChangedFiles, DiffedFile
from kode_sidecar.agent.tools.changes import ChangesParams, changes_tool
from kode_sidecar.core.domain.finding import QuotedPlace, ReviewFinding, located, merged
from kode_sidecar.core.kernel.contracts import Tool, ToolCall
from kode_sidecar.core.text.shown_text import strip_line_numbers
from kode_sidecar.errors import KodeError

MakeReport = Callable[[Callable[[str], None]], Tool]


@dataclass
class Reviewed:
    """What a review came to; `dropped` counts findings by why they are not shown."""

    findings: list[ReviewFinding] = field(default_factory=list[ReviewFinding])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    not_reviewed: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])

    def drop(self, why: str, count: int = 1) -> None:
        """Count findings that are not shown."""
        if count:
            self.dropped[why] = self.dropped.get(why, 0) + count


def parts_of(files: Sequence[DiffedFile], limits: ReviewLimits) -> list[list[DiffedFile]]:
    """Return the files in parts of one reader each; neighbours stay together."""
    parts: list[list[DiffedFile]] = []
    lines = 0
    for file in files:
        size = file.added + file.removed
        full = parts and (len(parts[-1]) >= limits.part_files or lines + size > limits.part_lines)
        if not parts or full:
            parts.append([])
            lines = 0
        parts[-1].append(file)
        lines += size
    return parts


class ReviewRun:
    """Runs one review once."""

    def __init__(
        self,
        params: ChangesParams,
        focus: str,
        call: ToolCall,
        place: ReviewPlace,
        services: ReviewServices,
        on_purpose: Sequence[str] = (),
    ) -> None:
        self._params = params
        self._focus = focus
        self._call = call
        self._place = place
        self._services = services
        self._on_purpose = on_purpose
        self._done = Reviewed()
        self._places = asyncio.Semaphore(MAX_TASKS)
        self._texts: dict[str, str | None] = {}

    async def run(self, *, nits: bool) -> Reviewed:
        """Review, within the limits. Raises KodeError, asyncio.CancelledError."""
        changed = await self._place.view.list(self._params)
        limits = self._services.limits
        done = self._done
        self._name_left_out(changed)
        parts = parts_of(changed.files, limits)
        for part in parts[limits.parts :]:
            self._not_reviewed(part, f"beyond the limit of {limits.parts} parts")
        parts = parts[: limits.parts]
        waiting: list[Sequence[DiffedFile]] = list(parts)
        reported: list[ReportedFinding] = []
        deadline = asyncio.timeout(limits.seconds)
        try:
            async with deadline:
                await self._side_by_side(
                    [partial(self._read, part, waiting, reported) for part in parts],
                    "parts are read",
                )
                await self._refute(self._checked(reported, nits=nits))
        except TimeoutError:
            if not deadline.expired():
                raise
            for part in waiting:
                self._not_reviewed(part, f"the review ran out of {limits.seconds:g} seconds")
            if not done.findings:
                found = self._checked(reported, nits=nits)
                done.findings = [_unconfirmed(one) for one in found]
        done.drop(f"beyond the limit of {limits.findings}", len(done.findings) - limits.findings)
        done.findings = done.findings[: limits.findings]
        return done

    def _name_left_out(self, changed: ChangedFiles) -> None:
        for why, names in changed.left_out.items():
            self._done.not_reviewed += [f"{name}: {why}" for name in names]

    def _not_reviewed(self, part: Sequence[DiffedFile], why: str) -> None:
        self._done.not_reviewed += [f"{file.path}: {why}" for file in part]

    async def _side_by_side(self, work: Sequence[Callable[[], Awaitable[None]]], what: str) -> None:
        """Do all of it, as much at once as there are scouts, and show how far it is."""
        back = count()

        def tell() -> None:
            done = next(back)
            self._call.progress(f"{done} of {len(work)} {what}", done, len(work))

        async def one(job: Callable[[], Awaitable[None]]) -> None:
            async with self._places:
                await job()
            tell()

        tell()
        async with asyncio.TaskGroup() as group:
            for job in work:
                group.create_task(one(job), name="review")

    async def _read(
        self,
        part: Sequence[DiffedFile],
        waiting: list[Sequence[DiffedFile]],
        reported: list[ReportedFinding],
    ) -> None:
        names = [file.path for file in part]
        asked = msgspec.structs.replace(self._params, paths=names)
        task = ExploreTask(title=_title(names), question=self._question(asked))
        tools = (changes_tool(self._place.view), *self._place.reading())
        mine: list[ReportedFinding] = []
        request = self._request(tools, lambda end: report_review_tool(mine.extend, end))
        note = await _send(self._services.find, task, request)
        waiting.remove(part)
        reported += mine
        if note:
            self._not_reviewed(part, note)
        else:
            self._done.paths += names

    def _request(self, tools: Sequence[Tool], report: MakeReport) -> ExploreRequest:
        quiet = replace(self._call, progress=_quiet)
        return replace(self._place.request(quiet, tools), report_tool=report)

    def _question(self, asked: ChangesParams) -> str:
        call = msgspec.json.encode(
            {
                name: value
                for name, value in msgspec.to_builtins(asked).items()
                if value not in ("", None, [], 1)
            }
        ).decode()
        parts = [f"Review these changes. Call `changes` with {call} to see them."]
        if self._focus:
            parts.append(f"What matters to the user: {self._focus}")
        if self._on_purpose:
            listed = "\n".join(f"- {line}" for line in self._on_purpose)
            parts.append(f"The user dismissed these before; do not report them again:\n{listed}")
        return "\n\n".join(parts)

    def _checked(self, reported: Sequence[ReportedFinding], *, nits: bool) -> list[ReviewFinding]:
        """Return the findings whose quotes are in the text, at their true lines, each once."""
        found: list[ReviewFinding] = []
        for one in reported:
            if one.severity == "nit" and not nits:
                self._done.drop("a matter of taste")
            elif (checked := self._in_text(one)) is None:
                self._done.drop("not in the text")
            else:
                found.append(checked)
        single = merged(found)
        self._done.drop("reported twice", len(found) - len(single))
        return [
            msgspec.structs.replace(one, id=f"n{number}") for number, one in enumerate(single, 1)
        ]

    def _in_text(self, one: ReportedFinding) -> ReviewFinding | None:
        place = self._located(one.path, one.start_line, one.end_line, one.quote)
        if place is None:
            return None
        others = (
            self._located(other.path, other.start_line, other.end_line, other.quote)
            for other in one.evidence
        )
        return ReviewFinding(
            id="",
            path=place.path,
            start_line=place.start_line,
            end_line=place.end_line,
            severity=one.severity,
            category=one.category,
            title=one.title,
            explanation=one.explanation,
            quote=place.quote,
            evidence=tuple(other for other in others if other is not None),
            suggestion=one.suggestion,
        )

    def _located(self, path: str, start: int, end: int, quote: str) -> QuotedPlace | None:
        if path not in self._texts:
            try:
                self._texts[path] = self._place.view.text_of(path)
            except KodeError:
                self._texts[path] = None
        text = self._texts[path]
        for words in (quote, strip_line_numbers(quote) or ""):
            if text is not None and (lines := located(words, text, start, end)):
                return QuotedPlace(self._place.view.name_of(path), *lines, words)
        return None

    async def _refute(self, found: Sequence[ReviewFinding]) -> None:
        size = self._services.limits.refuted_at_once
        groups = [found[at : at + size] for at in range(0, len(found), size)]
        self._done.findings = [_unconfirmed(one) for one in found]  # until they are looked at
        if groups:
            await self._side_by_side(
                [partial(self._doubt, group) for group in groups], "groups of findings are checked"
            )

    async def _doubt(self, group: Sequence[ReviewFinding]) -> None:
        verdicts: list[Verdict] = []
        task = ExploreTask(title=f"Refute: {group[0].title}"[:120], question=_doubtful(group))
        request = self._request(
            self._place.reading(), lambda end: report_verdicts_tool(verdicts.extend, end)
        )
        await _send(self._services.refute, task, request)
        holds = {verdict.id: verdict.holds for verdict in verdicts}
        findings = self._done.findings
        for one in group:
            at = next(i for i, known in enumerate(findings) if known.id == one.id)
            if holds.get(one.id) is True:
                findings[at] = one
            elif holds.get(one.id) is False:
                del findings[at]
                self._done.drop("refuted")


def _quiet(_message: str, _completed: int | None, _total: int | None) -> None:
    """Show nothing: the review itself shows how far it is."""


async def _send(dispatch: Dispatch, task: ExploreTask, request: ExploreRequest) -> str:
    """Return why the reader did not report, empty if it did."""
    (report,) = await dispatch.explore([task], request)
    return "" if report.state == "done" else report.note or report.state


def _unconfirmed(one: ReviewFinding) -> ReviewFinding:
    return msgspec.structs.replace(one, unconfirmed=True)


def _title(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Review {names[0][-90:]}{more}"


def _doubtful(group: Sequence[ReviewFinding]) -> str:
    told = [
        {
            "id": one.id,
            "severity": one.severity,
            "place": f"{one.path}:{one.start_line}-{one.end_line}",
            "title": one.title,
            "explanation": one.explanation,
            "quote": one.quote,
        }
        for one in group
    ]
    lines = "\n".join(msgspec.json.encode(one).decode() for one in told)
    return f"Try to refute each of these findings of a code review:\n{lines}"
