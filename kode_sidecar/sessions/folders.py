"""The files of sessions: made for a new one, opened for one of an earlier process."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from kode_sidecar.event_log import EventHistory, OpenedSession, SessionRecords
from kode_sidecar.protocol.session import SessionNewParams
from kode_sidecar.records.artifacts import Artifacts
from kode_sidecar.records.conversation_meta import ConversationMeta
from kode_sidecar.records.conversation_store import ConversationStore, ConversationWriter
from kode_sidecar.records.journal import Journal
from kode_sidecar.records.saver import Saver
from kode_sidecar.records.scout_log import open_scout_log

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.kernel.contracts import Clock, NewId


@dataclass(frozen=True)
class SessionFolders:
    """Each session is locked from here on until its records are closed.

    `roots` are the URIs of the open folders, which a new session remembers.
    """

    store: ConversationStore
    saver: Saver
    clock: "Clock"
    new_id: "NewId"
    roots: Callable[[], Sequence[str]]

    async def create(self, session_id: str, agent: str, params: SessionNewParams) -> SessionRecords:
        """The files of a new session, saved. Raises KodeError `Storage`."""
        now = self.clock.timestamp()
        roots = list(self.roots())
        places: dict[str, Any] = {"roots": roots}
        if roots:
            places["projectRoot"] = roots[0]
        writer = self.store.create(
            ConversationMeta(
                id=session_id,
                title=params.title or "",
                agent_type=agent,
                created_at=now,
                updated_at=now,
                meta={**places, **params.meta},
                mode=params.mode or UNSET,
                model=params.model or UNSET,
            )
        )
        records = self._records(writer)
        try:
            await records.save()
        except BaseException:
            records.close()
            raise
        return records

    def open(self, session_id: str) -> OpenedSession:
        """The files of a session that is kept, and what is in them; blocks.

        Raises KodeError `SessionNotFound`, `ReadOnly`, `Storage`.
        """
        opened = self.store.open(session_id)
        history = EventHistory()
        records = self._records(opened.writer, history)
        if history.title and not opened.writer.meta.title:
            opened.writer.rename(history.title)  # the head was written before its title was
        try:
            spent = self.store.scouts_spending(session_id)
        except BaseException:
            records.close()
            raise
        conversation = opened.stored.tree()
        history.lost = len(history.completed_messages.difference(conversation.ids))
        return OpenedSession(records, conversation, history, spent)

    def _records(
        self, writer: ConversationWriter, history: EventHistory | None = None
    ) -> SessionRecords:
        with ExitStack() as undo:
            undo.callback(writer.close)
            journal = Journal(writer.journal_path)
            undo.callback(journal.close)
            if history is not None:
                history.feed_all(journal.take_events())
            undo.pop_all()
        artifacts = Artifacts(writer.folder, partial(self.new_id, "artifact"))

        async def save() -> None:
            await self.saver.save(writer, journal)

        def close() -> None:
            journal.close()
            writer.close()

        scout_log = partial(open_scout_log, writer.folder)
        return SessionRecords(writer, journal, save, artifacts.save, scout_log, close)
