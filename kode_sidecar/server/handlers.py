"""What the fast lane answers: document sync and `kode/*`, each in a line or two."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

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
    EditorContextParams,
    FreshnessGetParams,
    FreshnessGetResult,
)
from kode_sidecar.protocol.events import BlobReadParams, BlobReadResult
from kode_sidecar.protocol.methods import METHODS
from kode_sidecar.protocol.process import (
    DoctorResult,
    Empty,
    MemoryDecideParams,
    MemoryListParams,
    MemoryListResult,
    ModelsListResult,
    PingParams,
    PingResult,
    SchemaGetResult,
    SkillsListResult,
    UsageGetParams,
    UsageGetResult,
)
from kode_sidecar.protocol.questions import (
    PermissionListParams,
    PermissionListResult,
    PermissionSetParams,
)
from kode_sidecar.protocol.run import (
    RunCancelParams,
    RunCancelResult,
    RunGetParams,
    RunGetResult,
    RunStartParams,
    RunStartResult,
)
from kode_sidecar.protocol.session import (
    MessageListParams,
    MessageListResult,
    SessionAttachParams,
    SessionExportParams,
    SessionExportResult,
    SessionForkParams,
    SessionForkResult,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
    SessionNewResult,
    SessionRef,
    SessionUpdateParams,
    TreeGetParams,
    TreeGetResult,
    TreeSetHeadParams,
)
from kode_sidecar.protocol.turn import (
    ContextInspectParams,
    ContextInspectResult,
    TurnCancelParams,
    TurnCancelResult,
    TurnStartParams,
    TurnSteerParams,
)
from kode_sidecar.server.connection import Connection, Reply
from kode_sidecar.sessions import (
    SessionAttachments,
    SessionCatalog,
    SessionCopies,
    SessionRegistry,
    StoredMessages,
    UsageReport,
)
from kode_sidecar.workspace.documents import Documents


class Services(Protocol):
    """What belongs to the process and to no session."""

    async def doctor(self) -> DoctorResult: ...

    async def list_models(self) -> ModelsListResult:
        """Raises KodeError."""
        ...

    async def list_skills(self) -> SkillsListResult: ...

    async def list_memory(self, params: MemoryListParams) -> MemoryListResult:
        """Raises KodeError."""
        ...

    async def decide_memory(self, params: MemoryDecideParams) -> None:
        """Raises KodeError."""
        ...

    async def start_run(self, params: RunStartParams) -> RunStartResult:
        """Raises KodeError."""
        ...

    async def get_run(self, params: RunGetParams) -> RunGetResult:
        """Raises KodeError."""
        ...

    async def cancel_run(self, params: RunCancelParams) -> RunCancelResult:
        """Raises KodeError."""
        ...

    async def schema(self) -> SchemaGetResult: ...

    def context_changed(self, context: EditorContextParams) -> None:
        """The user looks at something else."""
        ...


class Handlers:
    """One method per wire method. `register` puts them all on a connection."""

    def __init__(
        self,
        *,
        sessions: SessionRegistry,
        catalog: SessionCatalog,
        messages: StoredMessages,
        attachments: SessionAttachments,
        copies: SessionCopies,
        usage: UsageReport,
        documents: Documents,
        services: Services,
    ) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._messages = messages
        self._attachments = attachments
        self._copies = copies
        self._usage = usage
        self._documents = documents
        self._services = services

    def register(self, connection: Connection) -> None:
        """Serve every client-to-server method of the table, and document sync."""
        served: dict[str, Callable[[Any], Any]] = {
            "kode/session/new": self._session_new,
            "kode/session/list": self._session_list,
            "kode/session/get": self._session_get,
            "kode/session/update": self._session_update,
            "kode/session/delete": self._session_delete,
            "kode/session/attach": self._session_attach,
            "kode/session/detach": self._session_detach,
            "kode/session/fork": self._session_fork,
            "kode/session/export": self._session_export,
            "kode/turn/start": self._turn_start,
            "kode/turn/cancel": self._turn_cancel,
            "kode/turn/steer": self._turn_steer,
            "kode/message/list": self._message_list,
            "kode/blob/read": self._blob_read,
            "kode/changeSet/list": self._change_set_list,
            "kode/tree/get": self._tree_get,
            "kode/tree/setHead": self._tree_set_head,
            "kode/context/inspect": self._context_inspect,
            "kode/context/compact": self._context_compact,
            "kode/usage/get": self._usage_get,
            "kode/changeSet/get": self._change_set_get,
            "kode/changeSet/decide": self._change_set_decide,
            "kode/changeSet/undo": self._change_set_undo,
            "kode/freshness/get": self._freshness_get,
            "kode/permission/list": self._permission_list,
            "kode/permission/set": self._permission_set,
            "kode/models/list": self._models_list,
            "kode/skills/list": self._skills_list,
            "kode/memory/list": self._services.list_memory,
            "kode/memory/decide": self._memory_decide,
            "kode/run/start": self._services.start_run,
            "kode/run/get": self._services.get_run,
            "kode/run/cancel": self._services.cancel_run,
            "kode/schema/get": self._schema_get,
            "kode/editor/didChangeContext": self._services.context_changed,
            "kode/ping": self._ping,
            "kode/doctor": self._answer_doctor,
        }
        for method in METHODS:
            if method.direction == "client_to_server":
                is_request = method.kind == "request"
                serve = connection.on_request if is_request else connection.on_notification
                serve(method.name, method.params, served[method.name])
        connection.on_notification("textDocument/didOpen", DidOpenParams, self._did_open)
        connection.on_notification("textDocument/didChange", DidChangeParams, self._did_change)
        connection.on_notification("textDocument/didSave", DidSaveParams, self._did_save)
        connection.on_notification("textDocument/didClose", DidCloseParams, self._did_close)

    async def _session_new(self, params: SessionNewParams) -> SessionNewResult:
        return await self._sessions.create(params)

    async def _session_list(self, params: SessionListParams) -> SessionListResult:
        return await self._catalog.list(params)

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

    async def _session_fork(self, params: SessionForkParams) -> SessionForkResult:
        return await self._copies.fork(params)

    async def _session_export(self, params: SessionExportParams) -> SessionExportResult:
        return await self._copies.export(params)

    async def _turn_start(self, params: TurnStartParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.start_turn(params)
        return Reply(result, after=release)

    def _turn_cancel(
        self, params: TurnCancelParams
    ) -> TurnCancelResult | Coroutine[Any, Any, TurnCancelResult]:
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

    async def _message_list(self, params: MessageListParams) -> MessageListResult:
        return await self._messages.list(params)

    async def _blob_read(self, params: BlobReadParams) -> BlobReadResult:
        return await self._messages.read_blob(params)

    async def _change_set_list(self, params: ChangeSetListParams) -> ChangeSetListResult:
        session = await self._sessions.get(params.session_id)
        return session.change_sets.list()

    async def _tree_get(self, params: TreeGetParams) -> TreeGetResult:
        return await self._messages.tree(params)

    async def _tree_set_head(self, params: TreeSetHeadParams) -> Reply:
        release = await self._catalog.set_head(params)
        return Reply(Empty(), after=release)

    async def _context_inspect(self, params: ContextInspectParams) -> ContextInspectResult:
        session = await self._sessions.get(params.session_id)
        return await session.inspect(params)

    async def _context_compact(self, params: SessionRef) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.compact()
        return Reply(result, after=release)

    async def _usage_get(self, params: UsageGetParams) -> UsageGetResult:
        return await self._usage.get(params)

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

    def _ping(self, params: PingParams) -> PingResult:
        return PingResult(echo=params.echo)

    async def _models_list(self, _params: Empty) -> ModelsListResult:
        return await self._services.list_models()

    async def _skills_list(self, _params: Empty) -> SkillsListResult:
        return await self._services.list_skills()

    async def _memory_decide(self, params: MemoryDecideParams) -> Empty:
        await self._services.decide_memory(params)
        return Empty()

    async def _schema_get(self, _params: Empty) -> SchemaGetResult:
        return await self._services.schema()

    async def _answer_doctor(self, _params: Empty) -> DoctorResult:
        return await self._services.doctor()

    def _did_open(self, params: DidOpenParams) -> None:
        item = params.text_document
        self._documents.open(item.uri, item.language_id, item.version, item.text)

    def _did_change(self, params: DidChangeParams) -> None:
        ref = params.text_document
        self._documents.change(ref.uri, ref.version, params.content_changes)

    def _did_save(self, params: DidSaveParams) -> None:
        self._documents.save(params.text_document.uri, params.text)

    def _did_close(self, params: DidCloseParams) -> None:
        self._documents.close(params.text_document.uri)
