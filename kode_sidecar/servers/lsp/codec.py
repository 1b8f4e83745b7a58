"""Decodes and encodes JSON-RPC 2.0 messages, and defines how LSP and ACP differ on the wire.

msgspec comes first; the standard `json` handles what msgspec refuses.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.error_info import error_info
from kode_sidecar.core.protocol.base_protocol import (
    JSONRPC,
    BadMessage,
    encode_frame,
    read_json,
    read_message,
)
from kode_sidecar.core.protocol.events import DeltaParams
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.errors import KodeError

MessageId = int | str


class IncomingMessage(Struct, frozen=True):
    """Any message from the client (JSON-RPC 2.0 section 4), params and result undecoded.

    A request has `id` and `method`, a notification only `method`, an answer `id` and
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


T = TypeVar("T")

_incoming = msgspec.json.Decoder(IncomingMessage)
_encoder = msgspec.json.Encoder()
_PATH = re.compile(r" - at `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")


def decode_incoming(body: bytes) -> IncomingMessage:
    """Return the message in `body`, its params undecoded. Raises BadMessage (W1)."""
    try:
        incoming = _incoming.decode(body)
        if not body.isascii():
            body.decode("utf-8")  # msgspec does not check the UTF-8 of raw params
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_again(body)
    if incoming.jsonrpc != JSONRPC:
        return _decode_again(body)
    if incoming.method is UNSET:
        if incoming.id is UNSET or (incoming.result is UNSET and incoming.error is UNSET):
            return _decode_again(body)
    elif incoming.id is None:
        return _decode_again(body)
    return incoming


def _decode_again(body: bytes) -> IncomingMessage:
    """Decode what only msgspec refuses (lone surrogates). Raises BadMessage naming the fault."""
    message = read_message(body)
    try:
        return _incoming.decode(json.dumps(message, ensure_ascii=False))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise BadMessage("ParseError", "the body cannot be read as a JSON-RPC message") from None


class ParamsDecoder(Generic[T]):
    """Decodes the params of one method. Absent or null params count as `{}`."""

    def __init__(self, params_type: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(params_type)

    def decode(self, params: Raw | UnsetType) -> T:
        """Decode. Raises KodeError `InvalidParams`: message and `details.path` name the path."""
        if params is UNSET or bytes(params) == b"null":
            params = Raw(b"{}")
        try:
            return self._decoder.decode(params)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise invalid_params(str(error)) from None


def invalid_params(reason: str) -> KodeError:
    """Return an `InvalidParams` for msgspec's text "Expected `str`, got `int` - at `$.a`"."""
    found = _PATH.search(reason)
    path = found[1] if found else "$"
    reason = _PATH.sub("", reason)
    missing = _MISSING.search(reason)
    if missing:
        path = f"{path}.{missing[1]}"
    return KodeError("InvalidParams", f"{reason} at `{path}`", details={"path": path})


def encode(message: Any) -> bytes:
    """Encode structs and builtins as JSON in UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
        return fix_surrogates(text).encode("utf-8")


def encode_result(request_id: MessageId, result: Any) -> bytes:
    return encode(Response(request_id, result))


def encode_error(request_id: MessageId | None, error: KodeError) -> bytes:
    """Return an error response; `data` is the `ErrorInfo`."""
    return encode(
        ErrorResponse(
            request_id, ResponseError(error.rpc_code, error.message, data=error_info(error))
        )
    )


def document_uri(params: Raw | UnsetType) -> str | None:
    """Return the document's URI from params of its sync that did not decode, or None."""
    try:
        value: Any = read_json(b"{}" if params is UNSET else bytes(params))
        uri = (value.get("textDocument") or value["notebookDocument"])["uri"]
    except (BadMessage, KeyError, TypeError, AttributeError):
        return None
    return uri if isinstance(uri, str) else None


_cancel = ParamsDecoder(dict[str, Any])


def cancelled_id(params: Raw | UnsetType, member: str) -> MessageId | None:
    """Return the id of the request that a cancel notification names, None if it names none."""
    try:
        value = _cancel.decode(params).get(member)
    except KodeError:
        return None
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class RpcDialect:
    """Where LSP and ACP differ; the rest of a connection is shared.

    `frame` frames a body, `deltas` encodes growth of blocks. `cancel` is the notification that
    cancels a request, `cancelled` its member with the id. `has_shutdown`: the client sends
    `shutdown` and `exit`, and uses the standard lane of LSP; without it the end of the input is a
    normal end.
    """

    frame: Callable[[bytes], bytes]
    deltas: Callable[[Sequence[BlockDelta]], bytes]
    cancel: str
    cancelled: str
    has_shutdown: bool


def _kode_delta(deltas: Sequence[BlockDelta]) -> bytes:
    return encode_frame(encode(Notification("kode/delta", DeltaParams(tuple(deltas)))))


LSP = RpcDialect(encode_frame, _kode_delta, "$/cancelRequest", "id", has_shutdown=True)
