"""What all parts of this room share: one object a session, made by `ChangeSets`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from kode_sidecar.agent.edits.diagnostic_news import DiagnosticNews
from kode_sidecar.agent.edits.file_watch import FileWatch
from kode_sidecar.agent.edits.hunks import HunkLedger
from kode_sidecar.agent.edits.session_files import SessionFiles
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.core.kernel.contracts import NewId
from kode_sidecar.infrastructure.workspace.file_changes import FileChanges
from kode_sidecar.infrastructure.workspace.freshness import Freshness
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.infrastructure.workspace.overlay import Overlay
from kode_sidecar.infrastructure.workspace.workspace import Workspace

ANSWER_SECONDS = 60.0
"""How long an editor may think about an edit: some ask their user."""

Notify = Callable[[str, str], None]
"""`(key, title)`: another session, of that title, changed the document with that canonical key."""


class Peers:
    """The sessions that work side by side in one process. One thread."""

    def __init__(self) -> None:
        self._sessions: dict[str, Notify] = {}

    def join(self, session_id: str, notify: Notify) -> Callable[[], None]:
        """Notify a session of what the others do; returns what ends it."""
        self._sessions[session_id] = notify

        def leave() -> None:
            if self._sessions.get(session_id) is notify:
                del self._sessions[session_id]

        return leave

    def notify(self, session_id: str, key: str, title: str) -> None:
        """A session's own edit changed a document."""
        for other, notify in list(self._sessions.items()):
            if other != session_id:
                notify(key, title)


class EditLocks:
    """One lock per document, shared by all sessions of an editor: their edits never overlap.

    `peers` lets each of them know what the others did, `language` asks the editor's servers.
    An edit that the editor thinks about for longer than `answer_seconds` gives way to others.
    """

    def __init__(
        self,
        language: LanguageServers | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.answer_seconds = answer_seconds
        self.language = language or LanguageServers()
        self.peers = Peers()
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, key: str) -> asyncio.Lock:
        """Return the lock of the document with that canonical key."""
        return self._locks.setdefault(key, asyncio.Lock())

    @asynccontextmanager
    async def of_all(self, keys: Iterable[str]) -> AsyncGenerator[None, None]:
        """Hold the locks of several documents."""
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):
                await held.enter_async_context(self.of(key))
            yield


@dataclass(frozen=True)
class EditServices:
    """Where hunks stand, what was decided, and the way to the editor.

    `in_flight` names the documents that an edit of this session is on its way to. After a yes of
    the editor its text is waited for as long as `settle_seconds` say.
    """

    workspace: Workspace
    editor: EditorPort
    overlay: Overlay
    changes: FileChanges
    files: SessionFiles
    freshness: Freshness
    watch: FileWatch
    news: DiagnosticNews
    ledger: HunkLedger
    new_id: NewId
    settle_seconds: float
    locks: EditLocks
    in_flight: set[str]
