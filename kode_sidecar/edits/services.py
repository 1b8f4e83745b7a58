"""What all parts of this room share: one object a session, made by `ChangeSets`."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from kode_sidecar.edits.file_watch import FileWatch
from kode_sidecar.edits.hunks import HunkLedger
from kode_sidecar.edits.session_files import SessionFiles
from kode_sidecar.event_log.editor_port import EditorPort
from kode_sidecar.kernel.contracts import NewId
from kode_sidecar.workspace.file_changes import FileChanges
from kode_sidecar.workspace.freshness import Freshness
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace


class EditLocks:
    """One lock per document, shared by all sessions of an editor: their edits never overlap."""

    def __init__(self) -> None:
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
    the editor its text is waited for as long as `settle_seconds` say, its answer `answer_seconds`.
    """

    workspace: Workspace
    editor: EditorPort
    overlay: Overlay
    changes: FileChanges
    files: SessionFiles
    freshness: Freshness
    watch: FileWatch
    ledger: HunkLedger
    new_id: NewId
    settle_seconds: float
    answer_seconds: float
    locks: EditLocks = field(default_factory=EditLocks)
    in_flight: set[str] = field(default_factory=set[str])
