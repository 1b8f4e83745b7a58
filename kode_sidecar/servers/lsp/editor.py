"""Sends the editor events, edits and questions over LSP and `kode/*`."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    ChangeSetUpdated,
    Event,
    ReviewUpdated,
    TurnCompleted,
)
from kode_sidecar.core.domain.message import ToolResultBlock
from kode_sidecar.core.protocol.documents import (
    OpenDocumentParams,
    OpenDocumentResult,
    SaveDocumentsParams,
    SaveDocumentsResult,
    TextDocumentRef,
)
from kode_sidecar.core.protocol.events import EventParams, shorten
from kode_sidecar.core.protocol.process import Empty
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.client_profile import ClientProfile, apply_edit_params
from kode_sidecar.servers.lsp.connection import Connection
from kode_sidecar.servers.lsp.notebooks import OpenNotebooks
from kode_sidecar.servers.lsp.turn_progress import TurnProgress


def _omit(delta: BlockDelta) -> None:
    del delta


_WARNING, _INFO = 2, 3  # LSP MessageType


class _ApplyResult(Struct):
    """LSP `ApplyWorkspaceEditResult`."""

    applied: bool = False
    failureReason: str | None = None


class _ChosenAction(Struct):
    """LSP `MessageActionItem`."""

    title: str


class LspEditor:
    """`event_log.editor_port.EditorPort` over one connection.

    Events go out in order, because the connection has one queue for everything. The journal holds
    each tool result whole; the client gets only the head of texts above its limit, and reads the
    rest when it is to be shown. `on_review` gets the id of a session whose findings have changed,
    `on_hunks` each change of hunks. With `lists_sessions` the client is notified when its list of
    sessions is out of date.
    """

    def __init__(self, connection: Connection, client: ClientProfile) -> None:
        self._connection = connection
        self._client = client
        self.notebooks: OpenNotebooks | None = None
        self._progress = TurnProgress(connection) if client.work_done_progress else None
        self._max_inline_bytes = client.max_inline_bytes
        self._omits = client.omits
        omits_deltas = "kode/delta" in client.omits
        self.publish_delta = _omit if omits_deltas else connection.notify_delta
        self.lists_sessions = False
        self.flow = connection.flow
        self.on_review: Callable[[str], None] = lambda _: None
        self.on_hunks: Callable[[ChangeSetUpdated], None] = lambda _: None

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events that belong together as one `kode/event`, after their progress."""
        if self._progress is not None:
            for event in events:
                self._progress.follow(event)
        self.show(session_id, events)
        if any(isinstance(event, ReviewUpdated) and not event.running for event in events):
            self.on_review(session_id)
        for event in events:
            if isinstance(event, ChangeSetUpdated):
                self.on_hunks(event)

    def show(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events of another process, without progress: its turns cannot be cancelled here."""
        shown = events if not self._omits else [event for event in events if self._wants(event)]
        shortened = tuple(self._shortened(session_id, event) for event in shown)
        if shortened:
            params = EventParams(session_id=session_id, events=shortened)
            self._connection.notify("kode/event", params)
        if any(isinstance(event, TurnCompleted) for event in events):
            self.sessions_changed()

    def sessions_changed(self) -> None:
        """Send `kode/sessions/changed`, if the client has asked for the list."""
        if self.lists_sessions:
            self._connection.notify("kode/sessions/changed", Empty())

    def _wants(self, event: Event) -> bool:
        return bool(event.seq) or event.__struct_config__.tag not in self._omits

    def _shortened(self, session_id: str, event: Event) -> Event:
        # An event without `seq` is not stored, so the rest could not be read later.
        if not (isinstance(event, BlockCompleted) and event.seq):
            return event
        if not isinstance(event.block, ToolResultBlock):
            return event
        block = shorten(event.block, session_id, self._max_inline_bytes)
        return event if block is event.block else msgspec.structs.replace(event, block=block)

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Send `workspace/applyEdit` (LSP 3.17). An error answer counts as not applied.

        An edit of a notebook that the editor holds as cells becomes one of their texts.
        """
        edits: Sequence[DocumentEdit | FileEdit] | str = [edit]
        if isinstance(edit, DocumentEdit) and self.notebooks and self.notebooks.find(edit.uri):
            edits = self.notebooks.cell_edits(edit)
        if isinstance(edits, str):
            return ApplyAnswer(applied=False, reason=edits)
        try:
            result = await self._connection.request(
                "workspace/applyEdit", apply_edit_params(edits, self._client), _ApplyResult
            )
        except KodeError as error:
            return ApplyAnswer(applied=False, reason=error.message)
        return ApplyAnswer(applied=result.applied, reason=result.failureReason)

    def warn(self, line: str) -> None:
        """Write a line to stderr."""
        self._connection.log(line, None)

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Ask with `kode/permission/request` or LSP's message request; None without an answer."""
        try:
            if self._client.permission_requests:
                return await self._connection.request(
                    "kode/permission/request", question, PermissionRequestResult
                )
            return await self._ask_plain(question)
        except KodeError:
            return None

    def can_change_files(self, kind: str) -> bool:
        """Return whether the client announced this operation."""
        return kind in self._client.file_operations

    async def open_document(self, uri: str) -> bool:
        """Send `kode/openDocument`, if the client supports it."""
        if not self._client.opens_documents:
            return False
        params = OpenDocumentParams(uri=uri)
        try:
            result = await self._connection.request("kode/openDocument", params, OpenDocumentResult)
        except KodeError:
            return False
        return result.opened

    def can_save(self) -> bool:
        """Return whether the client announced that it saves documents."""
        return self._client.saves_documents

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        """Send `kode/saveDocuments`. An error answer counts as nothing saved."""
        params = SaveDocumentsParams(documents=tuple(documents))
        try:
            result = await self._connection.request(
                "kode/saveDocuments", params, SaveDocumentsResult
            )
        except KodeError:
            return ()
        return result.saved

    async def refresh(self, uri: str) -> None:
        """Do nothing: document sync keeps the text current."""
        del uri

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Ask with `kode/ask`, or with LSP's message request, which allows only one answer."""
        if self._client.asks:
            return await self._connection.request("kode/ask", question, AskResult)
        chosen = await self._show_message(_INFO, question.question, question.choices)
        return AskResult(() if chosen is None else (chosen,))

    async def _ask_plain(self, question: PermissionRequestParams) -> PermissionRequestResult | None:
        message = " ".join(filter(None, (f"{question.title}?", question.reason)))
        names = [option.name for option in question.options]
        answer = await self._show_message(_WARNING, message, names)
        chosen = (o.option_id for o in question.options if o.name == answer)
        return next((PermissionRequestResult(option_id=one) for one in chosen), None)

    async def _show_message(self, kind: int, message: str, actions: Sequence[str]) -> str | None:
        """Ask with `window/showMessageRequest`; return the chosen title. Raises KodeError."""
        titles = [{"title": title} for title in actions]
        params = {"type": kind, "message": message, "actions": titles}
        answer = await self._connection.request(
            "window/showMessageRequest", params, _ChosenAction | None
        )
        return None if answer is None else answer.title
