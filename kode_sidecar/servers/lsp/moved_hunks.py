"""Notifies a client where hunks that wait are after the user's changes, so that it need not ask."""

from collections.abc import Callable

from kode_sidecar.agent.sessions import SessionRegistry
from kode_sidecar.core.domain.agent_event import ChangeSetUpdated
from kode_sidecar.core.domain.hunk_state import DONE
from kode_sidecar.core.protocol.change_set import MovedHunksParams
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.infrastructure.workspace.documents import DocumentChange, Documents
from kode_sidecar.servers.lsp.diagnostics import PacedRefresh


class MovedHunks:
    """Reads the places of the hunks in changed files, soon after the last of some changes."""

    def __init__(
        self,
        sessions: SessionRegistry,
        documents: Documents,
        notify: Callable[[str, MovedHunksParams], None],
    ) -> None:
        self._sessions = sessions
        self._notify = notify
        self._changed: dict[str, None] = {}
        self._refresh = PacedRefresh(self._read)
        self.close = self._refresh.close
        documents.subscribe(self._document_changed)

    def decided(self, event: ChangeSetUpdated) -> None:
        """Read the places in files where hunks were applied: only now they are in the text."""
        applied = (
            file.uri for file in event.files if any(hunk.state in DONE for hunk in file.hunks)
        )
        self._read_soon(*map(canonical_key, applied))

    def _document_changed(self, change: DocumentChange) -> None:
        if change.last and change.kind in ("opened", "changed"):
            self._read_soon(change.document.key)

    def _read_soon(self, *keys: str) -> None:
        self._changed |= dict.fromkeys(keys)
        if self._changed:
            self._refresh.schedule()

    def _read(self) -> None:
        changed, self._changed = tuple(self._changed), {}
        views = tuple(
            view
            for session in self._sessions.running()
            for key in changed
            for view in session.change_sets.places(key)
        )
        if views:
            self._notify("kode/changeSet/moved", MovedHunksParams(change_sets=views))
