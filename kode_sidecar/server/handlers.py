"""Routes: which call answers which method of the table; the app adds those of the process.

A method of the wire is declared in `protocol.methods` (name, params, result, errors), and the call
that answers it in one line here, or in `boot.app`.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kode_sidecar.protocol.change_set import (
    ChangeSetListParams,
    ChangeSetListResult,
    ChangeSetRef,
    ChangeSetView,
    DecideParams,
    DecideResult,
    UndoParams,
    UndoResult,
    undo_scope,
)
from kode_sidecar.protocol.documents import (
    DidChangeParams,
    DidCloseParams,
    DidOpenParams,
    DidSaveParams,
    FreshnessGetParams,
    FreshnessGetResult,
)
from kode_sidecar.protocol.methods import METHODS
from kode_sidecar.protocol.process import Empty, PingParams, PingResult
from kode_sidecar.protocol.questions import (
    PermissionListParams,
    PermissionListResult,
    PermissionSetParams,
)
from kode_sidecar.protocol.session import (
    SessionAttachParams,
    SessionGetResult,
    SessionRef,
    SessionUpdateParams,
    TreeSetHeadParams,
)
from kode_sidecar.protocol.turn import (
    ContextEditParams,
    ContextInspectParams,
    ContextInspectResult,
    ContextUndoCompactionParams,
    ToolsListParams,
    ToolsListResult,
    TurnCancelParams,
    TurnCancelResult,
    TurnStartParams,
    TurnSteerParams,
)
from kode_sidecar.server.connection import Connection
from kode_sidecar.server.requests import Reply
from kode_sidecar.sessions import (
    SessionAttachments,
    SessionCatalog,
    SessionCopies,
    SessionRegistry,
    StoredMessages,
    UsageReport,
)
from kode_sidecar.workspace.documents import Documents

Handler = Callable[[Any], Any]
"""Gets the decoded params; returns the result, a `Reply`, or a coroutine of one of them."""


def serve(connection: Connection, handlers: Mapping[str, Handler]) -> None:
    """Serve every client-to-server method of the table. Raises KeyError for one without handler."""
    for method in METHODS:
        if method.direction == "client_to_server":
            is_request = method.kind == "request"
            register = connection.on_request if is_request else connection.on_notification
            register(method.name, method.params, handlers[method.name])


def serve_documents(connection: Connection, documents: Documents) -> None:
    """Serve document sync."""

    def did_open(params: DidOpenParams) -> None:
        item = params.text_document
        documents.open(item.uri, item.language_id, item.version, item.text)

    def did_change(params: DidChangeParams) -> None:
        ref = params.text_document
        documents.change(ref.uri, ref.version, params.content_changes)

    def did_save(params: DidSaveParams) -> None:
        documents.save(params.text_document.uri, params.text)

    def did_close(params: DidCloseParams) -> None:
        documents.close(params.text_document.uri)

    connection.on_notification("textDocument/didOpen", DidOpenParams, did_open)
    connection.on_notification("textDocument/didChange", DidChangeParams, did_change)
    connection.on_notification("textDocument/didSave", DidSaveParams, did_save)
    connection.on_notification("textDocument/didClose", DidCloseParams, did_close)


def ping(params: PingParams) -> PingResult:
    """Answer with what was sent."""
    return PingResult(echo=params.echo)


class SessionHandlers:
    """What is asked about sessions. Handlers that only pass their params on are not written out."""

    def __init__(
        self,
        *,
        sessions: SessionRegistry,
        catalog: SessionCatalog,
        messages: StoredMessages,
        attachments: SessionAttachments,
        copies: SessionCopies,
        usage: UsageReport,
    ) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._attachments = attachments
        self.by_method: Mapping[str, Handler] = {
            "kode/session/new": sessions.create,
            "kode/session/list": catalog.list,
            "kode/session/get": self._session_get,
            "kode/session/update": self._session_update,
            "kode/session/delete": self._session_delete,
            "kode/session/attach": self._session_attach,
            "kode/session/detach": self._session_detach,
            "kode/session/fork": copies.fork,
            "kode/session/export": copies.export,
            "kode/turn/start": self._turn_start,
            "kode/turn/cancel": self._turn_cancel,
            "kode/turn/steer": self._turn_steer,
            "kode/message/list": messages.list,
            "kode/blob/read": messages.read_blob,
            "kode/tree/get": messages.tree,
            "kode/tree/setHead": self._tree_set_head,
            "kode/tools/list": self._tools_list,
            "kode/context/inspect": self._context_inspect,
            "kode/context/compact": self._context_compact,
            "kode/context/edit": self._context_edit,
            "kode/context/undoCompaction": self._context_edit,
            "kode/usage/get": usage.get,
            "kode/changeSet/list": self._change_set_list,
            "kode/changeSet/get": self._change_set_get,
            "kode/changeSet/decide": self._change_set_decide,
            "kode/changeSet/undo": self._change_set_undo,
            "kode/freshness/get": self._freshness_get,
            "kode/permission/list": self._permission_list,
            "kode/permission/set": self._permission_set,
        }

    async def _session_get(self, params: SessionRef) -> SessionGetResult:
        return await self._catalog.get(params.session_id)

    async def _session_update(self, params: SessionUpdateParams) -> Reply:
        release = await self._catalog.update(params)
        return Reply(Empty(), after=release)

    async def _session_delete(self, params: SessionRef) -> Empty:
        await self._catalog.delete(params.session_id)
        return Empty()

    async def _session_attach(self, params: SessionAttachParams) -> Reply:
        result, release = await self._attachments.attach(params)
        return Reply(result, after=release)

    async def _session_detach(self, params: SessionRef) -> Empty:
        await self._attachments.detach(params.session_id)
        return Empty()

    async def _turn_start(self, params: TurnStartParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.start_turn(params)
        return Reply(result, after=release)

    def _turn_cancel(
        self, params: TurnCancelParams
    ) -> TurnCancelResult | Coroutine[Any, Any, TurnCancelResult]:
        """Cancel before the next message is handled, if the session is open."""
        session = self._sessions.get_now(params.session_id)
        if session is None:
            return self._turn_cancel_later(params)
        return TurnCancelResult(cancelled=session.cancel(params.turn_id))

    async def _turn_cancel_later(self, params: TurnCancelParams) -> TurnCancelResult:
        session = await self._sessions.get(params.session_id)
        return TurnCancelResult(cancelled=session.cancel(params.turn_id))

    async def _turn_steer(self, params: TurnSteerParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        release = await session.steer(params)
        return Reply(Empty(), after=release)

    async def _tree_set_head(self, params: TreeSetHeadParams) -> Reply:
        release = await self._catalog.set_head(params)
        return Reply(Empty(), after=release)

    async def _tools_list(self, params: ToolsListParams) -> ToolsListResult:
        session = await self._sessions.get(params.session_id)
        return session.tools(params.mode)

    async def _context_inspect(self, params: ContextInspectParams) -> ContextInspectResult:
        session = await self._sessions.get(params.session_id)
        return await session.inspect(params)

    async def _context_compact(self, params: SessionRef) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.compact()
        return Reply(result, after=release)

    async def _context_edit(self, params: ContextEditParams | ContextUndoCompactionParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.edit_context(params)
        return Reply(result, after=release)

    async def _change_set_list(self, params: ChangeSetListParams) -> ChangeSetListResult:
        session = await self._sessions.get(params.session_id)
        return session.change_sets.list()

    def _change_set_get(self, params: ChangeSetRef) -> ChangeSetView:
        return self._sessions.change_sets_of(params.change_set_id).get(params.change_set_id)

    async def _change_set_decide(self, params: DecideParams) -> DecideResult:
        return await self._sessions.change_sets_of(params.change_set_id).decide(params)

    async def _change_set_undo(self, params: UndoParams) -> UndoResult:
        named = undo_scope(params)
        return await self._sessions.change_sets_of(named).undo(named, params)

    async def _freshness_get(self, params: FreshnessGetParams) -> FreshnessGetResult:
        session = await self._sessions.get(params.session_id)
        return session.change_sets.files.report(params.limit)

    async def _permission_list(self, params: PermissionListParams) -> PermissionListResult:
        session = await self._sessions.get(params.session_id)
        return PermissionListResult(rules=session.change_sets.permissions.rules())

    async def _permission_set(self, params: PermissionSetParams) -> Empty:
        session = await self._sessions.get(params.session_id)
        permissions = session.change_sets.permissions
        permissions.set_rule(params.tool, params.pattern, params.effect)
        return Empty()
