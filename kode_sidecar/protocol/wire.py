"""JSON-RPC 2.0 envelopes and the LSP messages the fast lane reads itself."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

MessageId = int | str


class Incoming(Struct, frozen=True):
    """Any message from the client (JSON-RPC 2.0 section 4), bodies undecoded.

    A request has `id` and `method`, a notification `method`, an answer `id` and
    `result` or `error`.
    """

    jsonrpc: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Notification(Struct, frozen=True):
    method: str
    params: Any
    jsonrpc: str = "2.0"


class Request(Struct, frozen=True):
    id: MessageId
    method: str
    params: Any
    jsonrpc: str = "2.0"


class Response(Struct, frozen=True):
    id: MessageId | None
    result: Any
    jsonrpc: str = "2.0"


class ResponseError(Struct, frozen=True, omit_defaults=True):
    """JSON-RPC 2.0 section 5.1; `data` is an `ErrorInfo`."""

    code: int
    message: str
    data: Any = None


class ErrorResponse(Struct, frozen=True):
    id: MessageId | None
    error: ResponseError
    jsonrpc: str = "2.0"
