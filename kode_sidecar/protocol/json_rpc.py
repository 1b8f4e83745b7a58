"""One JSON-RPC 2.0 message read with the standard `json`. Cheap to import.

The front door has nothing else; the full server uses it for messages msgspec refuses, to
find out what is wrong with them or to read them after all.
"""

import json

from kode_sidecar.errors import KodeError

JSONRPC = "2.0"
LOST_FRAMING = "lost the frame boundary"
Message = dict[str, object]


class BadMessage(KodeError):
    """A body that is no JSON-RPC message. `request_id` is what the answer carries."""

    def __init__(self, code: str, message: str, request_id: int | str | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def read_message(body: bytes) -> Message:
    """The message in `body`; lone surrogates become U+FFFD.

    Raises BadMessage: `ParseError` for what is not JSON in UTF-8, `InvalidRequest` for what is
    JSON but no message (JSON-RPC 2.0 sections 4 and 5.1). Batches are not part of LSP.
    """
    value = read_json(body)
    if isinstance(value, list):
        raise BadMessage("InvalidRequest", "batches are not supported; send one message a frame")
    if not isinstance(value, dict):
        raise BadMessage("InvalidRequest", "a message must be a JSON object")
    message: Message = value  # type: ignore[reportUnknownVariableType]: JSON keys are strings
    _check_envelope(message)
    return message


def _check_envelope(message: Message) -> None:
    known_id = message_id(message)
    if known_id is None and message.get("id") is not None:
        raise BadMessage("InvalidRequest", "`id` must be an integer or a string")
    if message.get("jsonrpc") != JSONRPC:
        raise BadMessage("InvalidRequest", '`jsonrpc` must be "2.0"', known_id)
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessage("InvalidRequest", "`method` must be a string", known_id)
        if "id" in message and known_id is None:
            raise BadMessage("InvalidRequest", "`id` must be an integer or a string")
    elif "id" not in message or not ("result" in message or "error" in message):
        raise BadMessage("InvalidRequest", "a message needs a `method`, or an `id` and a result")


def message_id(message: Message) -> int | str | None:
    """The id if it is one: LSP 3.17 allows integers and strings, and `true` is neither."""
    value = message.get("id")
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def read_json(body: bytes) -> object:
    """The value in `body`. Raises BadMessage `ParseError`."""
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\ud" in body or b"\\uD" in body:
            text = json.dumps(value, ensure_ascii=False)
            value = json.loads(mend_surrogates(text))
    except UnicodeDecodeError:
        raise BadMessage("ParseError", "the body is not UTF-8") from None
    except ValueError as error:
        raise BadMessage("ParseError", f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadMessage("ParseError", "the body is nested too deeply") from None
    return value


def mend_surrogates(text: str) -> str:
    """`text` as UTF-8 can carry it: lone surrogates become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def error_body(request_id: int | str | None, error: KodeError, **data: object) -> bytes:
    """An error response. `data` joins the `ErrorInfo` in `error.data`."""
    return _encode(
        {
            "jsonrpc": JSONRPC,
            "id": request_id,
            "error": {
                "code": error.rpc_code,
                "message": error.message,
                "data": error.as_data() | data,
            },
        }
    )


def lost_framing(failure: ValueError) -> bytes:
    """The last thing said before the process ends: the input can no longer be cut into frames."""
    return error_body(None, KodeError("ParseError", f"{LOST_FRAMING}: {failure}"))


def result_body(request_id: int | str, result: object) -> bytes:
    """A response with its result."""
    return _encode({"jsonrpc": JSONRPC, "id": request_id, "result": result})


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii")
