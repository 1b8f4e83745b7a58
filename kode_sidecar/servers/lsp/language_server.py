"""pygls as the server of the standard lane: its dispatch and types, our reader and writer.

Only the loader imports this module, at the first request that it serves: lsprotocol takes half a
second. A contract test checks the private names of pygls used here; its version is pinned.
"""

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from lsprotocol import types
from msgspec import Raw
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from kode_sidecar import __version__
from kode_sidecar.core.protocol.base_protocol import JSONRPC, read_json
from kode_sidecar.core.protocol.handshake import SERVER_NAME
from kode_sidecar.errors import ERRORS, KodeError
from kode_sidecar.servers.lsp.codec import IncomingMessage, MessageId
from kode_sidecar.servers.lsp.requests import IncomingRequests, Log
from kode_sidecar.servers.lsp.standard_lane import STANDARD_NOTIFICATIONS, Features

_INITIALIZE_ID = "kode-initialize"
_KODE_CODES = {
    rpc_code: code for code, (rpc_code, _, _) in reversed(ERRORS.items()) if rpc_code > -33000
}


class KodeProtocol(LanguageServerProtocol):
    """pygls' protocol without its reader, its writer, its error texts and its leaks.

    Built on the loader's thread, used on the loop. The output of pygls goes to `requests`, `put`
    and `log`, which are set before anything is handled.
    """

    requests: IncomingRequests
    put: Callable[[bytes], None]
    log: Log

    def initialize(self, params: dict[str, Any]) -> None:
        """Pass pygls the `initialize` that `boot.stdio_handshake` has already answered."""
        attempts: list[dict[str, Any]] = [params, {"capabilities": {}}]
        for attempt in attempts:
            try:
                message = self._structure("initialize", attempt, _INITIALIZE_ID)
            except KodeError as error:
                self.log(f"unusual `initialize`: {error.message}", None)
                continue
            self.handle_message(message)
            return

    def handle(self, incoming: IncomingMessage) -> None:
        """Serve one request; bad params get an error answer."""
        assert isinstance(incoming.method, str), "the connection has looked"
        assert isinstance(incoming.id, int | str), "the connection has looked"
        raw = bytes(incoming.params) if isinstance(incoming.params, Raw) else b"{}"
        try:
            message = self._structure(incoming.method, read_json(raw), incoming.id)
        except KodeError as error:
            self.requests.refuse(incoming.id, error)
            return
        self.handle_message(message)

    def cancel(self, request_id: MessageId) -> None:
        """Handle `$/cancelRequest` for a request handed over earlier."""
        self._handle_cancel_notification(request_id)

    def send_request(self, *_: Any, **__: Any) -> Any:
        """Refuse: the connection holds the only id table for our requests."""
        raise RuntimeError("requests to the client go through Connection.request")

    def _send_handler_result(self, future: "Future[Any]", *, msg_id: MessageId) -> None:
        """Answer a request with the result or error of its handler."""
        self._request_futures.pop(msg_id, None)
        requests = self.requests
        if future.cancelled():
            requests.refuse(msg_id, KodeError("RequestCancelled", "the request was cancelled"))
            return
        error = future.exception()
        if error is not None:
            requests.refuse(msg_id, self._kode_error(error))
        elif msg_id != _INITIALIZE_ID:
            requests.answer(msg_id, "the request", future.result())

    def _send_response(
        self, msg_id: MessageId, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        """Answer a request that never reached a handler."""
        requests = self.requests
        if error is None:
            requests.answer(msg_id, "the request", result)
        else:
            code = _KODE_CODES.get(error.code, "InternalError")
            requests.refuse(msg_id, KodeError(code, error.message))

    def _send_data(self, data: Any) -> None:
        """Send a notification of pygls' own."""
        body = json.dumps(data, default=self._serialize_message, separators=(",", ":"))
        self.put(body.encode("ascii"))

    def _structure(self, method: str, params: object, request_id: MessageId) -> Any:
        """Return the typed message. Only its top level is checked: nested objects are just data."""
        data: dict[str, Any] = {"jsonrpc": JSONRPC, "id": request_id, "method": method}
        try:
            return self.structure_message({**data, "params": params or {}})
        except JsonRpcException as error:
            raise _invalid_params(error) from None

    def _kode_error(self, error: BaseException) -> KodeError:
        if isinstance(error, KodeError):
            return error
        if isinstance(error, JsonRpcInvalidParams):
            return KodeError("InvalidParams", error.message, details={"path": "$"})
        bug = error if isinstance(error, Exception) else RuntimeError(repr(error))
        return self.requests.incident("the request", bug)


class KodeLanguageServer(LanguageServer):
    """Registers features and logs errors."""

    log: Log

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log the error; pygls would show a popup in the editor."""
        self.log(f"standard lane: {source.__name__}", error)


def build_language_server(
    params: dict[str, Any],
    features: Features,
    *,
    requests: IncomingRequests,
    put: Callable[[bytes], None],
    log: Log,
) -> KodeProtocol:
    """Build a server that has seen the client's `initialize`. Takes tens of milliseconds."""
    # pygls logs whole bodies and tracebacks; errors go to `log` instead.
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    server = KodeLanguageServer(
        SERVER_NAME,
        __version__,
        protocol_cls=KodeProtocol,
        notebook_document_sync=types.NotebookDocumentSyncOptions(
            [types.NotebookDocumentFilterWithNotebook("*")], save=True
        ),
    )
    server.log = log
    protocol = cast(KodeProtocol, server.protocol)
    protocol.requests, protocol.put, protocol.log = requests, put, log
    _register(server, features)
    protocol.initialize(params)
    return protocol


def _register(server: KodeLanguageServer, features: Features) -> None:
    def served_elsewhere(_params: Any) -> None:
        """Do nothing: the fast lane serves it. Registered so that pygls announces it."""

    for method in (*STANDARD_NOTIFICATIONS, types.TEXT_DOCUMENT_DID_SAVE):
        server.feature(method)(served_elsewhere)
    for name, run in features.commands.items():
        server.command(name)(_command(run))
    features.register(server)


def _command(run: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    async def command(*arguments: Any) -> Any:
        return await run(arguments)

    return command


def _invalid_params(error: JsonRpcException) -> KodeError:
    """Return an error that names the JSON path as the fast lane does.

    cattrs nests the failures, and notes on each the name or index where it happened.
    """
    failure: BaseException = error.__cause__ or error
    path = ""
    while isinstance(failure, BaseExceptionGroup):
        failure = cast(BaseException, failure.exceptions[0])
        for note in getattr(failure, "__notes__", ()):
            if hasattr(note, "name"):
                path += f".{note.name}"
            elif hasattr(note, "index"):
                path += f"[{note.index}]"
    path = "$" + path.removeprefix(".params")
    reason = "required field missing" if isinstance(failure, KeyError) else "wrong type or value"
    return KodeError("InvalidParams", f"{reason} at `{path}`", details={"path": path})
