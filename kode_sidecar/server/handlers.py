"""What the fast lane answers: document sync and `kode/*`, each in a line or two."""

from collections.abc import Awaitable, Callable
from typing import Any

from kode_sidecar.main_session import SessionRegistry
from kode_sidecar.protocol.change_set import (
    ChangeSetRef,
    ChangeSetView,
    DecideParams,
    DecideResult,
)
from kode_sidecar.protocol.documents import (
    DidChangeParams,
    DidCloseParams,
    DidOpenParams,
    DidSaveParams,
)
from kode_sidecar.protocol.methods import METHODS
from kode_sidecar.protocol.session import (
    DoctorResult,
    Empty,
    PingParams,
    PingResult,
    SessionNewParams,
    SessionNewResult,
)
from kode_sidecar.protocol.turn import (
    TurnCancelParams,
    TurnCancelResult,
    TurnStartParams,
    TurnSteerParams,
)
from kode_sidecar.server.connection import Connection, Reply
from kode_sidecar.workspace.documents import Documents


class Handlers:
    """One method per wire method. `register` puts them all on a connection."""

    def __init__(
        self,
        sessions: SessionRegistry,
        documents: Documents,
        doctor: Callable[[], Awaitable[DoctorResult]],
    ) -> None:
        self._sessions = sessions
        self._documents = documents
        self._doctor = doctor

    def register(self, connection: Connection) -> None:
        """Serve every client-to-server method of the table, and document sync."""
        served: dict[str, Callable[[Any], Any]] = {
            "kode/session/new": self._session_new,
            "kode/turn/start": self._turn_start,
            "kode/turn/cancel": self._turn_cancel,
            "kode/turn/steer": self._turn_steer,
            "kode/changeSet/get": self._change_set_get,
            "kode/changeSet/decide": self._change_set_decide,
            "kode/ping": self._ping,
            "kode/doctor": self._answer_doctor,
        }
        for method in METHODS:
            if method.direction == "client_to_server":
                connection.on_request(method.name, method.params, served[method.name])
        connection.on_notification("textDocument/didOpen", DidOpenParams, self._did_open)
        connection.on_notification("textDocument/didChange", DidChangeParams, self._did_change)
        connection.on_notification("textDocument/didSave", DidSaveParams, self._did_save)
        connection.on_notification("textDocument/didClose", DidCloseParams, self._did_close)

    async def _session_new(self, params: SessionNewParams) -> SessionNewResult:
        return await self._sessions.create(params)

    async def _turn_start(self, params: TurnStartParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        result, release = await session.start_turn(params)
        return Reply(result, after=release)

    def _turn_cancel(self, params: TurnCancelParams) -> TurnCancelResult:
        session = self._sessions.find(params.session_id)
        cancelled = session is not None and session.cancel(params.turn_id)
        return TurnCancelResult(cancelled=cancelled)

    async def _turn_steer(self, params: TurnSteerParams) -> Reply:
        session = await self._sessions.get(params.session_id)
        release = await session.steer(params)
        return Reply(Empty(), after=release)

    def _change_set_get(self, params: ChangeSetRef) -> ChangeSetView:
        return self._sessions.change_sets_of(params.change_set_id).get(params.change_set_id)

    async def _change_set_decide(self, params: DecideParams) -> DecideResult:
        return await self._sessions.change_sets_of(params.change_set_id).decide(params)

    def _ping(self, params: PingParams) -> PingResult:
        return PingResult(echo=params.echo)

    async def _answer_doctor(self, _params: Empty) -> DoctorResult:
        return await self._doctor()

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
