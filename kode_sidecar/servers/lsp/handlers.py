"""Routes each method of the table to the call that answers it; the app adds process methods.

A wire method is declared in `protocol.methods` (name, params, result, errors); the call that
answers it is one line here, or in `boot.app`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from kode_sidecar.agent.sessions import (
    SessionAttachments,
    SessionCatalog,
    SessionCopies,
    SessionRegistry,
    StoredMessages,
    UsageReport,
)
from kode_sidecar.core.protocol.change_set import UndoParams, undo_scope
from kode_sidecar.core.protocol.documents import (
    DidChangeNotebookParams,
    DidChangeParams,
    DidCloseNotebookParams,
    DidCloseParams,
    DidOpenNotebookParams,
    DidOpenParams,
    DidSaveNotebookParams,
    DidSaveParams,
)
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.core.protocol.process import Empty, PingParams, PingResult
from kode_sidecar.core.protocol.questions import PermissionListResult, PermissionSetParams
from kode_sidecar.core.protocol.review import ReviewDecideParams
from kode_sidecar.core.protocol.session import SessionListParams
from kode_sidecar.core.protocol.turn import TurnCancelParams, TurnCancelResult
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.lsp.connection import Connection
from kode_sidecar.servers.lsp.editor import LspEditor
from kode_sidecar.servers.lsp.notebooks import OpenNotebooks
from kode_sidecar.servers.lsp.requests import HandlerReply

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.sessions.session import Session

Handler = Callable[[Any], Any]
"""Gets the decoded params; returns the result, a `HandlerReply`, or a coroutine of one of them."""


def serve(connection: Connection, handlers: Mapping[str, Handler]) -> None:
    """Serve every client-to-server method of the table. Raises KeyError if a handler is missing."""
    for method in METHODS:
        if method.direction == "client_to_server":
            is_request = method.kind == "request"
            register = connection.on_request if is_request else connection.on_notification
            register(method.name, method.params, handlers[method.name])


def serve_documents(connection: Connection, documents: Documents) -> OpenNotebooks:
    """Serve document sync, and that of notebooks, which are returned."""

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
    notebooks = OpenNotebooks(documents)
    serve = connection.on_notification
    serve("notebookDocument/didOpen", DidOpenNotebookParams, notebooks.opened)
    serve("notebookDocument/didChange", DidChangeNotebookParams, notebooks.changed)
    serve("notebookDocument/didSave", DidSaveNotebookParams, notebooks.saved)
    serve("notebookDocument/didClose", DidCloseNotebookParams, notebooks.closed)
    return notebooks


def ping(params: PingParams) -> PingResult:
    """Return what was sent."""
    return PingResult(echo=params.echo)


class SessionHandlers:
    """Handlers of the methods about sessions, in `by_method`. Params are those of `METHODS`."""

    def __init__(
        self,
        *,
        sessions: SessionRegistry,
        catalog: SessionCatalog,
        messages: StoredMessages,
        attachments: SessionAttachments,
        copies: SessionCopies,
        usage: UsageReport,
        editor: LspEditor,
    ) -> None:
        self._sessions = sessions
        self._editor = editor
        of_session, change_sets_of = self._of_session, sessions.change_sets_of
        edit_context = of_session(lambda session, params: _answered(session.edit_context(params)))
        self.by_method: Mapping[str, Handler] = {
            "kode/session/new": self._changing(sessions.create),
            "kode/session/list": lambda params: self._list(catalog, params),
            "kode/session/get": lambda params: catalog.get(params.session_id),
            "kode/session/update": self._changing(lambda params: _done(catalog.update(params))),
            "kode/session/delete": self._changing(
                lambda params: _done(catalog.delete(params.session_id))
            ),
            "kode/session/attach": lambda params: _answered(attachments.attach(params)),
            "kode/session/detach": lambda params: _done(attachments.detach(params.session_id)),
            "kode/session/fork": self._changing(copies.fork),
            "kode/session/export": copies.export,
            "kode/turn/start": of_session(
                lambda session, params: _answered(session.start_turn(params))
            ),
            "kode/turn/cancel": self._turn_cancel,
            "kode/turn/steer": of_session(lambda session, params: _done(session.steer(params))),
            "kode/message/list": messages.list,
            "kode/blob/read": messages.read_blob,
            "kode/tree/get": messages.tree,
            "kode/tree/setHead": lambda params: _done(catalog.set_head(params)),
            "kode/tools/list": of_session(lambda session, params: session.tools(params.mode)),
            "kode/context/inspect": of_session(lambda session, params: session.inspect(params)),
            "kode/context/compact": of_session(lambda session, _: _answered(session.compact())),
            "kode/context/edit": edit_context,
            "kode/context/undoCompaction": edit_context,
            "kode/usage/get": usage.get,
            "kode/changeSet/list": of_session(lambda session, _: session.change_sets.list()),
            "kode/changeSet/get": lambda params: change_sets_of(params.change_set_id).get(
                params.change_set_id
            ),
            "kode/changeSet/decide": lambda params: change_sets_of(params.change_set_id).decide(
                params
            ),
            "kode/changeSet/undo": self._undo,
            "kode/review/list": of_session(lambda session, _: session.findings.list()),
            "kode/review/decide": of_session(
                lambda session, params: _done(_decide_finding(session, params))
            ),
            "kode/review/ask": of_session(
                lambda session, params: _answered(
                    session.start_turn(*session.findings.question(params))
                )
            ),
            "kode/freshness/get": of_session(
                lambda session, params: session.change_sets.files.report(params.limit)
            ),
            "kode/permission/list": of_session(
                lambda session, _: PermissionListResult(
                    rules=session.change_sets.permissions.rules()
                )
            ),
            "kode/permission/set": of_session(_set_rule),
        }

    def _of_session(self, call: Callable[["Session", Any], Any]) -> Handler:
        """Make a handler that gets the session of its params first, waiting for the agent."""

        async def handle(params: Any) -> Any:
            result = call(await self._sessions.get(params.session_id), params)
            return await result if inspect.isawaitable(result) else result

        return handle

    def _list(self, catalog: SessionCatalog, params: SessionListParams) -> Any:
        self._editor.lists_sessions = True
        return catalog.list(params)

    def _changing(self, change: Handler) -> Handler:
        """Make a handler whose answer is followed by word that the list of sessions has changed."""

        async def handle(params: Any) -> HandlerReply:
            result = change(params)
            result = await result if inspect.isawaitable(result) else result
            reply = result if isinstance(result, HandlerReply) else HandlerReply(result)

            def after() -> None:
                if reply.after is not None:
                    reply.after()
                self._editor.sessions_changed()

            return HandlerReply(reply.result, after)

        return handle

    def _turn_cancel(self, params: TurnCancelParams) -> Any:
        """Cancel a turn; if the session is open, before the next message is handled."""
        session = self._sessions.get_now(params.session_id)
        return _cancel(session, params) if session else self._of_session(_cancel)(params)

    async def _undo(self, params: UndoParams) -> Any:
        named = undo_scope(params)
        return await self._sessions.change_sets_of(named).undo(named, params)


def _cancel(session: "Session", params: TurnCancelParams) -> TurnCancelResult:
    return TurnCancelResult(cancelled=session.cancel(params.turn_id))


async def _decide_finding(session: "Session", params: ReviewDecideParams) -> Callable[[], None]:
    """Save the user's word on a finding. Call the result after replying. Raises KodeError."""
    async with session.stream.saving():
        session.findings.decide(params.finding_id, params.state, params.reason)
    return session.stream.release


def _set_rule(session: "Session", params: PermissionSetParams) -> Empty:
    session.change_sets.permissions.set_rule(params.tool, params.pattern, params.effect)
    return Empty()


async def _answered(asked: Awaitable[tuple[Any, Callable[[], None]]]) -> HandlerReply:
    """Return a reply whose events are released after the answer."""
    result, release = await asked
    return HandlerReply(result, after=release)


async def _done(asked: Awaitable[Callable[[], None] | None]) -> HandlerReply:
    """Return an empty reply, whose events, if any, are released after the answer."""
    return HandlerReply(Empty(), after=await asked)
