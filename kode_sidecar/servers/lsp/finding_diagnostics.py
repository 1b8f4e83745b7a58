"""Findings of code reviews as diagnostics, which every editor shows, at their present lines."""

from collections.abc import Mapping
from typing import Any

from kode_sidecar.agent.sessions import SessionRegistry
from kode_sidecar.core.domain.finding import FindingView, Severity
from kode_sidecar.core.text.shown_text import clipped, visible
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.documents import DocumentChange, Documents
from kode_sidecar.servers.lsp.diagnostics import PacedRefresh, PublishedDiagnostics

SOURCE = "kode review"
_SEVERITIES: Mapping[Severity, int] = {"error": 1, "warning": 2, "info": 3, "nit": 4}
_SHOWN_CHARS = 1_500


class FindingDiagnostics:
    """Shows the open findings of sessions, after events and after the user's changes."""

    def __init__(
        self, sessions: SessionRegistry, documents: Documents, published: PublishedDiagnostics
    ) -> None:
        self._sessions = sessions
        self._published = published
        self._session_ids: list[str] = []
        self._by_file: dict[str, list[tuple[str, FindingView]]] = {}
        self._refresh = PacedRefresh(self._read)
        self.close = self._refresh.close
        documents.subscribe(self._document_changed)

    def follow(self, session_id: str) -> None:
        """Show the findings of a session from now on, and read them again."""
        if session_id not in self._session_ids:
            self._session_ids.append(session_id)
        self._refresh.schedule()

    @property
    def has_reviews(self) -> bool:
        """Whether a session that it shows was reviewed, whatever is still open."""
        return bool(self._session_ids)

    def at(self, uri: str, first: int, last: int) -> list[tuple[str, FindingView]]:
        """Return the findings that touch these lines of a file, each with its session's id."""
        return [
            (session_id, one)
            for session_id, one in self._by_file.get(canonical_key(uri), ())
            if one.range and one.range.start.line <= last and one.range.end.line >= first
        ]

    def _read(self) -> None:
        self._by_file = {}
        for session_id in self._session_ids:
            session = self._sessions.get_now(session_id)
            try:
                findings = () if session is None else session.findings.list().findings
            except KodeError:  # its file is damaged: who asks for it gets the error
                continue
            for one in findings:
                if one.state == "open" and one.range is not None and one.uri:
                    self._by_file.setdefault(canonical_key(one.uri), []).append((session_id, one))
        self._published.set(
            SOURCE,
            {
                found[0][1].uri: [diagnostic(*one) for one in found]
                for found in self._by_file.values()
            },
        )

    def _document_changed(self, change: DocumentChange) -> None:
        if change.last and change.document.key in self._by_file:
            self._refresh.schedule()


def diagnostic(session_id: str, one: FindingView) -> dict[str, Any]:
    """Return a finding as LSP `Diagnostic`; evidence in other places is related information."""
    text = "\n\n".join(filter(None, (one.title, one.explanation, one.suggestion)))
    return {
        "range": one.range,
        "severity": _SEVERITIES[one.severity],
        "source": SOURCE,
        "code": one.finding_id,
        "message": clipped(visible(text), _SHOWN_CHARS),
        "relatedInformation": [
            {"location": {"uri": place.uri, "range": place.range}, "message": visible(place.quote)}
            for place in one.evidence
            if place.uri
        ],
        "data": {"sessionId": session_id, "findingId": one.finding_id},
    }
