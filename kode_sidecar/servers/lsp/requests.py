"""Requests in flight, both ways: the client's are answered exactly once, ours await answers."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Raw, Struct

from kode_sidecar.core.protocol.handshake import LIMITS
from kode_sidecar.errors import METHOD_NOT_FOUND, KodeError
from kode_sidecar.servers.lsp.codec import (
    LSP,
    IncomingMessage,
    MessageId,
    Notification,
    Request,
    RpcDialect,
    encode,
    encode_error,
    encode_result,
)

Log = Callable[[str, BaseException | None], None]
"""Reports trouble to the developer: a line, and the exception that caused it."""

MAX_IN_FLIGHT = LIMITS["maxRequestsInFlight"]


@dataclass(frozen=True)
class HandlerReply:
    """A result, and `after`, which is called right after the response was queued (O1)."""

    result: Any
    after: Callable[[], None] | None = None


class IncomingRequests:
    """Gives every request of the client exactly one response, through `put`.

    Ids of different types differ: 1 and "1" are two requests.
    """

    def __init__(self, put: Callable[[bytes], None], log: Log) -> None:
        self._put = put
        self._log = log
        self._in_flight: dict[MessageId, Callable[[], object]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._incidents = 0

    def admit(self, request_id: MessageId, cancel: Callable[[], object]) -> None:
        """Register a request; `$/cancelRequest` calls `cancel`.

        Raises KodeError: `InvalidRequest` for an id in use, `Overloaded` above MAX_IN_FLIGHT.
        """
        if request_id in self._in_flight:
            raise KodeError("InvalidRequest", f"request id {request_id!r} is already in use")
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            raise KodeError("Overloaded", f"{MAX_IN_FLIGHT} requests wait for their answers")
        self._in_flight[request_id] = cancel

    def run(self, request_id: MessageId, method: str, result: Any) -> bool:
        """Answer an admitted request with what its handler returned.

        Returns True if that was a coroutine, which now runs as a task.
        """
        if not inspect.iscoroutine(result):
            self.answer(request_id, method, result)
            return False
        task = self._start(self._finish(request_id, method, result))
        self._in_flight[request_id] = task.cancel
        return True

    def run_notification(
        self, method: str, result: Any, on_failure: Callable[[], None] = lambda: None
    ) -> bool:
        """Run a notification's handler to its end; return True if it now runs as a task."""
        if not inspect.iscoroutine(result):
            return False
        self._start(self._finish_notification(method, result, on_failure))
        return True

    def answer(self, request_id: MessageId, method: str, result: Any) -> None:
        """Send the response of an admitted request."""
        after = None
        if isinstance(result, HandlerReply):
            after, result = result.after, result.result
        try:
            body = encode_result(request_id, result)
        except Exception as error:
            self.refuse(request_id, self.incident(method, error))
            return
        self._in_flight.pop(request_id, None)
        self._put(body)
        if after is not None:
            try:
                after()
            except Exception as error:
                self.incident(method, error)

    def refuse(self, request_id: MessageId, error: KodeError) -> None:
        """Send the error response of an admitted request."""
        self._in_flight.pop(request_id, None)
        self._put(encode_error(request_id, error))

    def incident(self, method: str, error: Exception) -> KodeError:
        """Log a bug with its traceback; return the error for the client, just a number (W5)."""
        self._incidents += 1
        code = f"e{self._incidents}"
        self._log(f"{method} failed ({code})", error)
        return KodeError(
            "InternalError",
            f"{method} failed inside the sidecar; its log has the details under {code}",
            details={"incident": code},
        )

    def cancel(self, request_id: object) -> None:
        """Handle `$/cancelRequest`. An id that is not in flight is ignored."""
        if isinstance(request_id, int | str) and request_id in self._in_flight:
            self._in_flight[request_id]()

    async def settle(self, seconds: float) -> None:
        """Wait until running handlers are done, at most `seconds`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _finish(
        self, request_id: MessageId, method: str, handler: Coroutine[Any, Any, Any]
    ) -> None:
        try:
            result = await handler
        except asyncio.CancelledError:
            self.refuse(request_id, KodeError("RequestCancelled", f"{method} was cancelled"))
        except KodeError as error:
            self.refuse(request_id, error)
        except Exception as error:
            self.refuse(request_id, self.incident(method, error))
        else:
            self.answer(request_id, method, result)

    async def _finish_notification(
        self, method: str, handler: Coroutine[Any, Any, Any], on_failure: Callable[[], None]
    ) -> None:
        try:
            await handler
        except Exception as error:
            self.incident(method, error)
            on_failure()


T = TypeVar("T")


class _Error(Struct):
    """JSON-RPC 2.0 section 5.1, as lenient as clients are."""

    code: int = 0
    message: str = ""


REFUSED = "refused"
"""The reason of an error that the client answered itself, unlike one of the connection."""


class OutgoingRequests:
    """Sends requests through `put` and matches the answers.

    An answer that nobody waits for (late, unknown, twice) is ignored.
    """

    def __init__(self, put: Callable[[bytes], None], dialect: RpcDialect = LSP) -> None:
        self._put = put
        self._dialect = dialect
        self._count = 0
        self._waiting: dict[MessageId, asyncio.Future[IncomingMessage]] = {}
        self._closed = False

    @overload
    async def send(self, method: str, params: Any, result_type: type[T]) -> T: ...
    @overload
    async def send(self, method: str, params: Any, result_type: Any) -> Any: ...

    async def send(self, method: str, params: Any, result_type: Any) -> Any:
        """Send a request, wait, and decode the result as `result_type`.

        If the wait is cancelled, the client gets a cancel notification. Raises KodeError:
        `CapabilityMissing` if the client does not know the method, `RequestCancelled` if it is
        gone, `InternalError` for any other error answer or an undecodable result.
        """
        if self._closed:
            raise _client_gone(method)
        self._count += 1
        request_id = f"k{self._count}"
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting
        try:
            self._put(encode(Request(request_id, method, params)))
            answer = await waiting
        except asyncio.CancelledError:
            cancelled = {self._dialect.cancelled: request_id}
            self._put(encode(Notification(self._dialect.cancel, cancelled)))
            raise
        finally:
            del self._waiting[request_id]
        return _result(method, answer, result_type)

    def answer(self, incoming: IncomingMessage) -> None:
        """Pass an answer of the client to the request that waits for it."""
        if isinstance(incoming.id, int | str):
            waiting = self._waiting.get(incoming.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(incoming)

    def close(self) -> None:
        """End every wait, now and later, with `RequestCancelled`: the client is gone."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_client_gone("its request"))


def _result(method: str, answer: IncomingMessage, result_type: Any) -> Any:
    if isinstance(answer.error, Raw):
        raise _client_error(method, answer.error)
    raw = answer.result if isinstance(answer.result, Raw) else Raw(b"null")
    try:
        return msgspec.json.decode(raw, type=result_type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise KodeError("InternalError", f"the editor answered {method} with {error}") from None


def _client_error(method: str, raw: Raw) -> KodeError:
    try:
        error = msgspec.json.decode(raw, type=_Error)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        error = _Error()
    if error.code == METHOD_NOT_FOUND:
        return KodeError("CapabilityMissing", f"the editor does not know {method}")
    return KodeError(
        "InternalError",
        f"the editor answered {method} with an error: {error.message} ({error.code})",
        details={"reason": REFUSED},
    )


def _client_gone(method: str) -> KodeError:
    return KodeError("RequestCancelled", f"the editor is gone and will not answer {method}")
