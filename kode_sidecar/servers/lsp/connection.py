"""The fast lane: handles messages in arrival order, from the moment the process runs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from msgspec import Raw, UnsetType

from kode_sidecar.core.protocol.base_protocol import LOST_FRAMING, BadMessage, lost_framing
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp import codec
from kode_sidecar.servers.lsp.codec import LSP, IncomingMessage, MessageId, Notification, RpcDialect
from kode_sidecar.servers.lsp.outbox import Outbox
from kode_sidecar.servers.lsp.reader import EndOfInput
from kode_sidecar.servers.lsp.requests import IncomingRequests, Log, OutgoingRequests
from kode_sidecar.servers.lsp.standard_lane import (
    STANDARD_NOTIFICATIONS,
    StandardLane,
)

T = TypeVar("T")
P = TypeVar("P")
Handler = Callable[[P], Any]

_MESSAGES_PER_TURN = 64
_CANCEL_SECONDS = 0.3
_MOST_FAULTS = 200
_WARNING = 2  # LSP's MessageType
_SYNC_METHODS = frozenset(
    f"{kind}/{name}"
    for kind in ("textDocument", "notebookDocument")
    for name in ("didOpen", "didChange", "didSave", "didClose")
)


@dataclass(frozen=True)
class _Route:
    decoder: codec.ParamsDecoder[Any]
    handler: Handler[Any]


class Connection:
    """Serves one client. Register handlers before messages are pumped; all runs on the loop.

    A handler is `def` or `async def`; it gets the decoded params and returns a result or a
    `HandlerReply`. Messages are handled in arrival order up to a handler's first await (O10). Its
    KodeError becomes the error answer; any other exception answers InternalError without details.

    `on_broken_sync(uri)` is called for document sync messages that could not be decoded or
    applied; `uri` is None if unknown. `notify_delta` sends growth of a block, `flow` waits for a
    slow client: both are the outbox's. `on_exit()` is called for `exit`. `log(line, error)`
    informs the client's developer and writes nothing to the wire.
    """

    def __init__(
        self,
        outbox: Outbox,
        requests: IncomingRequests,
        lane: StandardLane,
        *,
        log: Log,
        on_exit: Callable[[], None],
        dialect: RpcDialect = LSP,
    ) -> None:
        self._dialect = dialect
        self.on_broken_sync: Callable[[str | None], None] = lambda _uri: None
        self.shutdown_seen = False
        self._input_ended = asyncio.Event()
        self._outbox = outbox
        self.notify_delta = outbox.put_delta
        self.flow = outbox.flow
        self._incoming = requests
        self._outgoing = OutgoingRequests(outbox.put, dialect)
        self._lane = lane
        self.log = log
        self._reported_faults: set[str] = set()
        self._on_exit = on_exit
        self._requests: dict[str, _Route] = {}
        self._notifications: dict[str, _Route] = {}
        self._pop: Callable[[], bytes | EndOfInput | None] = _nothing
        self._pumping = False

    def on_request(self, method: str, params_type: type[P], handler: Handler[P]) -> None:
        """Serve requests for `method`; bad params are refused without calling the handler."""
        self._requests[method] = _Route(codec.ParamsDecoder(params_type), handler)

    def on_notification(self, method: str, params_type: type[P], handler: Handler[P]) -> None:
        """Serve notifications of `method`."""
        self._notifications[method] = _Route(codec.ParamsDecoder(params_type), handler)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification; never blocks."""
        self._outbox.put(codec.encode(Notification(method, params)))

    @overload
    async def request(self, method: str, params: Any, result_type: type[T]) -> T: ...
    @overload
    async def request(self, method: str, params: Any, result_type: Any) -> Any: ...

    async def request(self, method: str, params: Any, result_type: Any) -> Any:
        """Send a request to the client. Raises KodeError as `OutgoingRequests.send` does."""
        try:
            return await self._outgoing.send(method, params, result_type)
        except KodeError as error:
            if error.code == "InternalError":  # an answer of the wrong shape
                self.report_fault(error.message)
            raise

    def report_fault(self, line: str) -> None:
        """Report once, on stderr and in the editor's log, what was ignored, for client authors."""
        if line in self._reported_faults:
            return
        if len(self._reported_faults) < _MOST_FAULTS:
            self._reported_faults.add(line)
        self.log(line, None)
        if self._dialect.has_shutdown:
            self.notify("window/logMessage", {"type": _WARNING, "message": f"kode: {line}"})

    def read_from(self, pop: Callable[[], bytes | EndOfInput | None]) -> None:
        """Set where `pump` takes items from."""
        self._pop = pop

    def pump(self) -> None:
        """Handle what has arrived. Call it once after each arrival, on the loop."""
        if not self._pumping:
            self._pumping = True
            self._pump_some()

    async def close(self, grace: float) -> None:
        """Stop. With `grace` (seconds), first handle what was read, and wait for its handlers."""
        if grace:
            await self._input_ended.wait()
            await self._incoming.settle(grace)
        self._pop = _nothing
        self._outgoing.close()
        self._incoming.cancel_all()
        await self._incoming.settle(_CANCEL_SECONDS)

    def _pump_some(self) -> None:
        for _ in range(_MESSAGES_PER_TURN):
            item = self._pop()
            if item is None:
                self._pumping = False
                return
            try:
                if self._handle(item):
                    break
            except Exception as error:  # a bug here must not block later messages
                self._incoming.incident("a message", error)
        # A started task runs its first step before this: both are scheduled in order.
        asyncio.get_running_loop().call_soon(self._pump_some)

    def _handle(self, item: bytes | EndOfInput) -> bool:
        """Handle one item; return True if a task was started."""
        if isinstance(item, EndOfInput):
            if item.failure is not None:
                self._outbox.put(lost_framing(item.failure))
                self.log(f"{LOST_FRAMING}: {item.failure}", None)
            self._input_ended.set()
            return False
        try:
            incoming = codec.decode_incoming(item)
        except BadMessage as error:
            self._outbox.put(codec.encode_error(error.request_id, error))
            if b"textDocument/did" in item:
                self.on_broken_sync(None)
            return False
        if not isinstance(incoming.method, str):
            self._outgoing.answer(incoming)
            return False
        if isinstance(incoming.id, int | str):
            return self._handle_request(incoming.id, incoming.method, incoming)
        return self._handle_notification(incoming.method, incoming)

    def _handle_request(
        self, request_id: MessageId, method: str, incoming: IncomingMessage
    ) -> bool:
        route = self._requests.get(method)
        has_shutdown = self._dialect.has_shutdown
        by_lane = has_shutdown and route is None and method in self._lane.requests
        ends = has_shutdown and method == "shutdown"
        try:
            self._check_lifecycle(method)
            if route is None and not (ends or by_lane):
                raise KodeError("MethodNotFound", f"there is no request `{method}`")
            self._incoming.admit(request_id, lambda: self._lane.cancel(request_id))
        except KodeError as error:
            self._outbox.put(codec.encode_error(request_id, error))
            return False
        if route is None:
            if by_lane:
                self._lane.submit(incoming)
            else:
                self.shutdown_seen = True
                self._incoming.answer(request_id, method, None)
            return False
        try:
            result = route.handler(route.decoder.decode(incoming.params))
        except KodeError as error:
            self._incoming.refuse(request_id, error)
            return False
        except Exception as error:
            self._incoming.refuse(request_id, self._incoming.incident(method, error))
            return False
        return self._incoming.run(request_id, method, result)

    def _check_lifecycle(self, method: str) -> None:
        if self.shutdown_seen:
            raise KodeError("InvalidRequest", f"`{method}` came after `shutdown`; send `exit`")
        if method == "initialize":
            raise KodeError("InvalidRequest", "the server is already initialized")

    def _handle_notification(self, method: str, incoming: IncomingMessage) -> bool:
        if method == "exit" and self._dialect.has_shutdown:
            self._pop = _nothing
            # `close` may wait for the end of input, which nobody reads from now on.
            self._input_ended.set()
            self._on_exit()
            return False
        if self.shutdown_seen:
            return False
        if method == self._dialect.cancel:
            self._incoming.cancel(codec.cancelled_id(incoming.params, self._dialect.cancelled))
            return False
        route = self._notifications.get(method)
        return route is not None and self._run_notification(route, method, incoming.params)

    def _run_notification(self, route: _Route, method: str, params: Raw | UnsetType) -> bool:
        def broken() -> None:
            if method in _SYNC_METHODS:
                self.on_broken_sync(codec.document_uri(params))

        try:
            result = route.handler(route.decoder.decode(params))
        except KodeError as error:
            line = f"{method} was dropped: {error.message}"
            if method in STANDARD_NOTIFICATIONS:
                self.log(line, None)
            else:
                self.report_fault(line)
            broken()
            return False
        except Exception as error:
            self._incoming.incident(method, error)
            broken()
            return False
        return self._incoming.run_notification(method, result, broken)


def _nothing() -> None:
    """Return no message, as nothing has arrived or no more messages are handled."""
