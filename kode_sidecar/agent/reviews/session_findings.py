"""The findings of one session as clients see them: in the editor's text as it is now.

Readers see files as the session does, with its pending hunks; clients show findings in their own
text. Between the two a finding is followed, and nothing is held in memory.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kode_sidecar.agent.context.agents import REVIEWER
from kode_sidecar.agent.reviews.record import (
    ReviewRecord,
    followed,
    read_review,
    save_review,
    with_decision,
)
from kode_sidecar.agent.verbs.calls import VerbCall
from kode_sidecar.core.domain.agent_event import Event, ReviewUpdated
from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.domain.finding import (
    FindingPlace,
    FindingState,
    FindingView,
    QuotedPlace,
    ReviewFinding,
)
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.protocol.review import ReviewAskParams, ReviewListResult
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.core.text.text_lines import encoded_column
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_HEAD = "[Findings of the code review that this is about, one a line:]"


class SessionFindings:
    """What a session's reviews came to."""

    def __init__(self, folder: Path, workspace: Workspace, emit: Callable[[Event], int]) -> None:
        self.folder = folder
        self._workspace = workspace
        self._emit = emit

    def list(self) -> ReviewListResult:
        """Return all findings. Raises KodeError `Storage`."""
        record = read_review(self.folder) or ReviewRecord()
        return ReviewListResult(
            findings=self._views(record),
            summary=record.summary,
            not_reviewed=record.not_reviewed,
        )

    def decide(self, finding_id: str, state: FindingState, reason: str) -> None:
        """Save and report the user's word on a finding. Raises KodeError."""
        record = read_review(self.folder) or ReviewRecord()
        self.save(with_decision(record, finding_id, state, reason))

    def save(self, record: ReviewRecord, tool_use_id: str = "") -> None:
        """Save and report all findings; `tool_use_id` is the call whose review has ended."""
        save_review(self.folder, record)
        self.report(record, tool_use_id)

    def report(self, record: ReviewRecord, tool_use_id: str = "", *, running: bool = False) -> None:
        """Report all findings; a review that is `running` is not saved yet."""
        self._emit(
            ReviewUpdated(
                tool_use_id=tool_use_id,
                running=running,
                findings=self._views(record),
                summary=record.summary,
                not_reviewed=len(record.not_reviewed),
            )
        )

    def question(self, params: ReviewAskParams) -> tuple[TurnStartParams, VerbCall]:
        """Return the turn about some findings, and what the model gets beside the prompt.

        The agent is that of the review: another one has other tools, and its host would have to
        read the conversation anew. Raises KodeError `InvalidParams`.
        """
        record = followed(read_review(self.folder) or ReviewRecord(), self._text_of)
        by_id = {one.id: one for one in record.findings}
        unknown = [name for name in params.finding_ids if name not in by_id]
        if unknown or not params.finding_ids:
            known = ", ".join(by_id) or "there are none"
            text = f"There is no finding {', '.join(unknown) or 'named'}; known: {known}."
            raise KodeError("InvalidParams", text)
        lines = [
            msgspec.json.encode(by_id[name]).decode() for name in dict.fromkeys(params.finding_ids)
        ]
        call = VerbCall("", "\n".join([_HEAD, *lines]), agent=REVIEWER.name)
        asked = TurnStartParams(
            session_id=params.session_id,
            input=(TextBlock(text=params.prompt),),
            mode=params.mode,
            model=params.model,
            effort=params.effort,
            client_turn_key=params.client_turn_key,
        )
        return asked, call

    def _views(self, record: ReviewRecord) -> tuple[FindingView, ...]:
        now = followed(record, self._text_of)
        lines = {path: text.split("\n") for path, text in now.texts.items()}
        return tuple(self._view(one, lines.get(one.path)) for one in now.findings)

    def _view(self, one: ReviewFinding, lines: "list[str] | None") -> FindingView:
        return FindingView(
            finding_id=one.id,
            uri=self._workspace.uri_of(one.path) or "",
            path=one.path,
            range=None if one.gone or lines is None else self._range(one, lines),
            severity=one.severity,
            category=one.category,
            title=one.title,
            explanation=one.explanation,
            quote=one.quote,
            evidence=tuple(map(self._place, one.evidence)),
            suggestion=one.suggestion,
            state=one.state,
            news=one.news,
            reason=one.reason,
            unconfirmed=one.unconfirmed,
        )

    def _range(self, one: ReviewFinding, lines: "list[str]") -> Range:
        last = one.end_line - 1
        line = lines[last] if last < len(lines) else ""
        end = encoded_column(line, len(line), self._workspace.position_encoding)
        return Range(Position(one.start_line - 1, 0), Position(last, end))

    def _place(self, place: QuotedPlace) -> FindingPlace:
        """Return a place as it was when the review found it."""
        uri = self._workspace.uri_of(place.path) or ""
        span = Range(Position(place.start_line - 1, 0), Position(place.end_line, 0))
        return FindingPlace(uri=uri, path=place.path, range=span, quote=place.quote)

    def _text_of(self, path: str) -> str:
        return self._workspace.document(path, purpose="read").lf_text
