"""One review from changes to findings: parts, readers side by side, quotes, refuting, merging.

What models say is taken apart here: a quote that is not in the text, a duplicate, a refuted finding
or one beyond the limit never reaches the user, and what nobody looked at is named.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from kode_sidecar.agent.reviews.contracts import ReviewLimits, ReviewPlace, ReviewServices
from kode_sidecar.agent.reviews.record import LocatedFinding
from kode_sidecar.agent.reviews.report_tools import (
    ReportedFinding,
    ReportedPlace,
    Verdict,
    report_review_tool,
    report_verdicts_tool,
)
from kode_sidecar.agent.scouts import MAX_TASKS, Dispatch
from kode_sidecar.agent.scouts.contracts import ExploreRequest, ExploreTask
from kode_sidecar.agent.tools.changed_files import ChangedFiles, DiffedFile
from kode_sidecar.agent.tools.changes import ChangesParams, changes_tool
from kode_sidecar.core.domain.finding import (
    QuotedPlace,
    ReviewFinding,
    badness,
    is_same,
    located,
    merged,
    united,
)
from kode_sidecar.core.kernel.contracts import Tool, ToolCall
from kode_sidecar.core.text.shown_text import (
    one_line,
    strip_line_numbers,
    without_controls,
    without_hidden,
)
from kode_sidecar.errors import KodeError

MakeReport = Callable[[Callable[[str], None]], Tool]


@dataclass
class Reviewed:
    """What a review came to so far; `dropped` counts findings by why they are not shown."""

    findings: list[LocatedFinding] = field(default_factory=list[LocatedFinding])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    not_reviewed: list[str] = field(default_factory=list[str])
    missed: int = 0
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
    """Runs one review once. A part is read, then checked, so its findings are there early.

    `found` is called after each part, with what the review came to so far.
    """

    def __init__(
        self,
        params: ChangesParams,
        focus: str,
        call: ToolCall,
        place: ReviewPlace,
        services: ReviewServices,
        found: Callable[[Reviewed], None],
        on_purpose: Sequence[str] = (),
        *,
        nits: bool,
    ) -> None:
        self._params = params
        self._focus = focus
        self._call = call
        self._place = place
        self._services = services
        self._found = found
        self._on_purpose = on_purpose
        self._nits = nits
        self._view = place.view
        self.done = Reviewed()
        self._waiting: list[list[DiffedFile]] = []
        self._places = asyncio.Semaphore(MAX_TASKS)

    async def begin(self) -> None:
        """Find out what changed, and split it into parts. Raises KodeError."""
        changed = await self._place.view.list(self._params)
        self._view = self._place.view.knowing(self._params, changed)
        self._name_left_out(changed)
        limits = self._services.limits
        parts = parts_of(changed.files, limits)
        for part in parts[limits.parts :]:
            self._not_reviewed(part, f"beyond the limit of {limits.parts} parts")
        self._waiting = parts[: limits.parts]

    async def run(self) -> None:
        """Review, within the limits; `done` is what it came to, also if it was cancelled.

        Raises asyncio.CancelledError.
        """
        limits = self._services.limits
        deadline = asyncio.timeout(limits.seconds)
        why = "the review was stopped"
        try:
            async with deadline:
                await self._side_by_side(tuple(self._waiting))
        except TimeoutError:
            if not deadline.expired():
                raise
            why = f"the review ran out of {limits.seconds:g} seconds"
        finally:
            for part in self._waiting:
                self._not_reviewed(part, why)

    def _name_left_out(self, changed: ChangedFiles) -> None:
        for why, names in changed.left_out.items():
            self.done.not_reviewed += [f"{name}: {why}" for name in names]

    def _not_reviewed(self, part: Sequence[DiffedFile], why: str) -> None:
        self.done.not_reviewed += [f"{file.path}: {why}" for file in part]
        self.done.missed += len(part)

    async def _side_by_side(self, parts: Sequence[list[DiffedFile]]) -> None:
        """Review all parts, as many at once as there are scouts, and show how far it is."""

        def report() -> None:
            read = len(parts) - len(self._waiting)
            self._call.progress(f"{read} of {len(parts)} parts are read", read, len(parts))

        async def one(part: list[DiffedFile]) -> None:
            async with self._places:
                await self._refute(await self._read(part))
            self._found(self.done)
            report()

        report()
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(one(part), name="review")

    async def _read(self, part: list[DiffedFile]) -> Sequence[LocatedFinding]:
        names = [file.path for file in part]
        asked = msgspec.structs.replace(self._params, paths=names)
        task = ExploreTask(title=_title(names), question=self._question(asked))
        tools = (changes_tool(self._view), *self._place.reading())
        reported: list[ReportedFinding] = []
        request = self._request(tools, lambda end: report_review_tool(reported.extend, end))
        note = await _send(self._services.find, task, request)
        self._waiting.remove(part)
        if note:
            self._not_reviewed(part, note)
        else:
            self.done.paths += names
        return self._checked(reported)

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

    def _checked(self, reported: Sequence[ReportedFinding]) -> Sequence[LocatedFinding]:
        """Return the findings whose quotes are in the text, at their true lines, each once."""
        found: list[ReviewFinding] = []
        texts: dict[str, str | None] = {}
        for one in reported:
            if one.severity == "nit" and not self._nits:
                self.done.drop("a matter of taste")
            elif (checked := self._in_text(one, texts)) is None:
                self.done.drop("not in the text")
            else:
                found.append(checked)
        single = merged(found)
        self.done.drop("reported twice", len(found) - len(single))
        limit = self._services.limits.findings
        self.done.drop(f"beyond the limit of {limit}", len(single) - limit)
        return [
            LocatedFinding(msgspec.structs.replace(one, id=f"n{number}"), texts[one.path])
            for number, one in enumerate(single[:limit], 1)
        ]

    def _in_text(self, one: ReportedFinding, texts: dict[str, str | None]) -> ReviewFinding | None:
        place = self._located(one, texts)
        if place is None:
            return None
        others = (self._located(other, texts) for other in one.evidence)
        return ReviewFinding(
            id="",
            path=place.path,
            start_line=place.start_line,
            end_line=place.end_line,
            severity=one.severity,
            category=one_line(without_hidden(one.category)),
            title=one_line(without_hidden(one.title)),
            explanation=without_controls(one.explanation),
            quote=place.quote,
            evidence=tuple(other for other in others if other is not None),
            suggestion=without_controls(one.suggestion),
        )

    def _located(
        self, place: ReportedFinding | ReportedPlace, texts: dict[str, str | None]
    ) -> QuotedPlace | None:
        if place.path not in texts:
            try:
                texts[place.path] = self._place.view.text_of(place.path)
            except KodeError:
                texts[place.path] = None
        text = texts[place.path]
        for words in (place.quote, strip_line_numbers(place.quote) or ""):
            if text is not None and (
                lines := located(words, text, place.start_line, place.end_line)
            ):
                return QuotedPlace(self._place.view.name_of(place.path), *lines, words)
        return None

    async def _refute(self, found: Sequence[LocatedFinding]) -> None:
        """Add what a second reader does not refute; without its verdict it is unconfirmed."""
        size = self._services.limits.refuted_at_once
        left = list(found)
        try:
            while left:
                group = left[:size]
                verdicts = await self._doubt([one.finding for one in group])
                del left[:size]
                for one in group:
                    if verdicts.get(one.finding.id) is False:
                        self.done.drop("refuted")
                    else:
                        self._add(one, confirmed=one.finding.id in verdicts)
        finally:  # out of time, or stopped
            for one in left:
                self._add(one, confirmed=False)

    def _add(self, found: LocatedFinding, *, confirmed: bool) -> None:
        """Add a finding, unless it is known; beyond the limit the least severe one goes."""
        new = found._replace(
            finding=msgspec.structs.replace(found.finding, unconfirmed=not confirmed)
        )
        findings = self.done.findings
        limit = self._services.limits.findings
        for at, known in enumerate(findings):
            if is_same(known.finding, new.finding):
                worse = min(known, new, key=lambda one: badness(one.finding))
                findings[at] = LocatedFinding(united(known.finding, new.finding), worse.text)
                self.done.drop("reported twice")
                return
        if len(findings) < limit:
            findings.append(new)
            return
        self.done.drop(f"beyond the limit of {limit}")
        least = max(range(limit), key=lambda at: badness(findings[at].finding))
        if badness(new.finding) < badness(findings[least].finding):
            findings[least] = new

    async def _doubt(self, group: Sequence[ReviewFinding]) -> dict[str, bool]:
        verdicts: list[Verdict] = []
        task = ExploreTask(title=f"Refute: {group[0].title}"[:120], question=_doubtful(group))
        request = self._request(
            self._place.reading(), lambda end: report_verdicts_tool(verdicts.extend, end)
        )
        await _send(self._services.refute, task, request)
        return {verdict.id: verdict.holds for verdict in verdicts}


def _quiet(_message: str, _completed: int | None, _total: int | None) -> None:
    """Show nothing: the review itself shows how far it is."""


async def _send(dispatch: Dispatch, task: ExploreTask, request: ExploreRequest) -> str:
    """Return why the reader did not report, empty if it did."""
    (report,) = await dispatch.explore([task], request)
    return "" if report.state == "done" else report.note or report.state


def _title(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Review {names[0][-90:]}{more}"


def _doubtful(group: Sequence[ReviewFinding]) -> str:
    said = [
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
    lines = "\n".join(msgspec.json.encode(one).decode() for one in said)
    return f"Try to refute each of these findings of a code review:\n{lines}"
