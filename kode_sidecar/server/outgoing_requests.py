"""Requests from the server to the client: one id table for all of them."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Raw, Struct

from kode_sidecar.errors import METHOD_NOT_FOUND, KodeError
from kode_sidecar.server.codec import (
    Incoming,
    MessageId,
    Notification,
    Request,
    decode_result,
    encode,
)

T = TypeVar("T")


class _Error(Struct):
    """JSON-RPC 2.0 section 5.1, as lenient as clients are."""

    code: int = 0
    message: str = ""


class OutgoingRequests:
    """Sends requests through `put` and matches the answers.

    An answer that nobody waits for (late, unknown, twice) is ignored.
    """

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._count = 0
        self._waiting: dict[MessageId, asyncio.Future[Incoming]] = {}
        self._closed = False

    @overload
    async def send(self, method: str, params: Any, result_type: type[T]) -> T: ...
    @overload
    async def send(self, method: str, params: Any, result_type: Any) -> Any: ...

    async def send(self, method: str, params: Any, result_type: Any) -> Any:
        """Ask, wait, and decode the result as `result_type`.

        A wait that is cancelled is told to the client by `$/cancelRequest`. Raises KodeError:
        `CapabilityMissing` when the client does not know the method, `RequestCancelled` when
        it is gone, `InternalError` for any other error answer or an undecodable result.
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
            self._put(encode(Notification("$/cancelRequest", {"id": request_id})))
            raise
        finally:
            del self._waiting[request_id]
        return _result(method, answer, result_type)

    def answer(self, incoming: Incoming) -> None:
        """Hand an answer of the client to whoever waits for it."""
        if isinstance(incoming.id, int | str):
            waiting = self._waiting.get(incoming.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(incoming)

    def close(self) -> None:
        """The client is gone: every wait ends with `RequestCancelled`, now and later."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_client_gone("its request"))


def _result(method: str, answer: Incoming, result_type: Any) -> Any:
    if isinstance(answer.error, Raw):
        raise _client_error(method, answer.error)
    raw = answer.result if isinstance(answer.result, Raw) else Raw(b"null")
    try:
        return decode_result(raw, result_type)
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
    )


def _client_gone(method: str) -> KodeError:
    return KodeError("RequestCancelled", f"the editor is gone and will not answer {method}")
