"""List, read and change all sessions in the state folder, open in this process or not."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from kode_sidecar.agent.event_log import SessionStream
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.sessions.files import (
    SessionFolders,
    changes_nothing,
    update_event,
    updated,
    view_of,
    with_head,
)
from kode_sidecar.agent.sessions.registry import SessionRegistry
from kode_sidecar.core.domain.agent_event import SessionUpdated
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.protocol.session import (
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionUpdateParams,
    SessionView,
    TreeSetHeadParams,
    page_limit,
)
from kode_sidecar.core.text.uris import folder_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.spending import Totals

MAX_LISTED = 500

Release = Callable[[], None]
Changed = tuple[ConversationMeta, SessionUpdated]
"""The metadata after a change, and the event that reports it."""
Position = tuple[str, str]
"""When a session was last written, and its id: the sort key of lists, newest first."""


@dataclass(frozen=True)
class SessionCatalog:
    """Reads and changes sessions. It reads on threads: there may be thousands.

    A process does not know which sessions another one has open.
    """

    sessions: SessionRegistry
    folders: SessionFolders
    editor: EditorPort

    async def list(self, params: SessionListParams) -> SessionListResult:
        """Return a page of sessions. Raises KodeError `InvalidParams`, `Storage`."""
        limit = page_limit(params.limit, MAX_LISTED)
        after = _position(params.cursor)
        roots = {folder_key(uri) for uri in self.folders.roots()}
        here = [self.sessions.meta_of(session_id) for session_id in self.sessions.open_ids]
        opened = {meta.id: meta for meta in here if meta}

        def wanted(meta: ConversationMeta) -> bool:
            return (params.all or _belongs(meta, roots)) and self._says(meta, params.query or "")

        page = await asyncio.to_thread(self._page, opened, after, wanted, limit + 1)
        return SessionListResult(
            sessions=tuple(self.view(meta) for _, meta in page[:limit]),
            next_cursor="/".join(page[limit - 1][0]) if len(page) > limit else None,
        )

    async def get(self, session_id: str) -> SessionGetResult:
        """Return a session's details. Raises KodeError `SessionNotFound`, `Storage`."""
        meta, conversation, totals = await asyncio.to_thread(self._examine, session_id)
        return SessionGetResult(
            session=self.view(self.sessions.meta_of(session_id) or meta),
            head_id=conversation.head,
            heads=tuple(leaf.id for leaf in conversation.leaves()),
            messages=len(conversation),
            usage=totals.usage,
            cost=totals.cost,
            cost_usd=totals.cost_usd,
            commands=self.sessions.commands_of(session_id),
        )

    async def update(self, params: SessionUpdateParams) -> Release:
        """Change and save a session's metadata. Call the result after replying.

        Raises KodeError `SessionNotFound`, `ReadOnly`, `Storage`.
        """
        if self.sessions.meta_of(params.session_id) is not None:
            session = await self.sessions.get(params.session_id)
            return await session.update(params)

        def change(meta: ConversationMeta) -> Changed | None:
            if changes_nothing(params):
                return None
            meta = updated(meta, params)
            return meta, update_event(params, meta, self.folders.defaults)

        return await self._change_closed(params.session_id, change)

    async def set_head(self, params: TreeSetHeadParams) -> Release:
        """Move the head of a session's tree, and save it. Call the result after replying.

        Raises KodeError `SessionNotFound`, `MessageNotFound`, `TurnActive`, `Storage`.
        """
        session_id, head_id = params.session_id, params.message_id
        if self.sessions.meta_of(session_id) is not None:
            session = await self.sessions.get(session_id)
            return await session.set_head(head_id)
        conversation = await asyncio.to_thread(lambda: self.folders.store.load(session_id).tree())
        conversation.set_head(head_id)

        def change(meta: ConversationMeta) -> Changed:
            return with_head(meta, head_id, conversation.newest), SessionUpdated(
                head_id=head_id or ""
            )

        return await self._change_closed(session_id, change)

    async def delete(self, session_id: str) -> None:
        """Delete a session, after cancelling its turn and waiting for the end.

        Raises KodeError `SessionNotFound`, `ReadOnly`, `Storage`.
        """
        self.sessions.check_may_write(session_id)
        await self.sessions.remove(session_id)
        async with self.sessions.writing:
            await asyncio.to_thread(self.folders.store.delete, session_id)

    async def _change_closed(
        self, session_id: str, change: Callable[[ConversationMeta], Changed | None]
    ) -> Release:
        """Change the metadata of a session on disk that this process has not opened."""
        async with self.sessions.writing:
            self.sessions.check_may_write(session_id)
            records = (await asyncio.to_thread(self.folders.open, session_id)).records
            try:
                stream = SessionStream(records, self.editor, self.folders.clock)
                changed = change(records.meta)
                if changed is None:
                    return stream.recover
                before = records.meta
                try:
                    async with stream.saving():
                        meta, event = changed
                        records.write_meta(meta)
                        stream(event)
                except BaseException:
                    records.write_meta(before)
                    raise
                return stream.release
            finally:
                records.close()

    def _page(
        self,
        opened: Mapping[str, ConversationMeta],
        after: Position | None,
        wanted: Callable[[ConversationMeta], bool],
        most: int,
    ) -> Sequence[tuple[Position, ConversationMeta]]:
        """Return the newest `most` wanted sessions, each with its position. On a thread."""
        heads = self._heads(opened, after)
        return tuple(islice((one for one in heads if wanted(one[1])), most))

    def _heads(
        self, opened: Mapping[str, ConversationMeta], after: Position | None
    ) -> Iterator[tuple[Position, ConversationMeta]]:
        """Yield sessions, newest first, skipping those that cannot be read. On a thread."""
        kept = self.folders.store.newest()
        positions = [(opened[key].updated_at if key in opened else at, key) for at, key in kept]
        for position in sorted(positions, reverse=True):
            if after is None or position < after:
                with suppress(KodeError):
                    key = position[1]
                    yield position, opened.get(key) or self.folders.store.head(key)

    def _says(self, meta: ConversationMeta, query: str) -> bool:
        """True if a session's title or text contains the query. On a thread."""
        return query.casefold() in meta.title.casefold() or self.folders.store.says(meta.id, query)

    def _examine(self, session_id: str) -> tuple[ConversationMeta, Conversation, Totals]:
        """Return the metadata, tree and cost of a stored session. On a thread."""
        stored = self.folders.store.load(session_id)
        totals = Totals(spent=self.folders.store.spending(session_id))
        return stored.meta, stored.tree(), totals

    def view(self, meta: ConversationMeta) -> SessionView:
        """Return the metadata as an editor shows it."""
        return view_of(meta, self.folders.defaults, self.sessions.active_turn(meta.id))


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    when, slash, session_id = cursor.rpartition("/")
    if not slash:
        text = "Expected a `nextCursor` of this method at `$.cursor`"
        raise KodeError("InvalidParams", text, details={"path": "$.cursor"})
    return when, session_id


def _belongs(meta: ConversationMeta, roots: Collection[str]) -> bool:
    """True if a session belongs to one of these folders; without any, if it belongs to none."""
    return not meta.folders.isdisjoint(roots) if roots else not meta.folders
