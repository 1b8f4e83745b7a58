"""`ErrorInfo`: the one shape of a failure on the wire, in events, logs and tool results."""

from typing import Any

from msgspec import Struct

from kode_sidecar.errors import ERRORS, KodeError


class ErrorInfo(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A failure as users and plugin authors see it.

    `code` is a name of the table of errors; `message` says what is wrong and how to fix it.
    """

    code: str
    message: str
    category: str
    retryable: bool
    http_status: int | None = None
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None


def error_info(error: KodeError) -> ErrorInfo:
    """Return the wire form of a `KodeError`."""
    return ErrorInfo(
        code=error.code,
        message=error.message,
        category=error.category,
        retryable=error.retryable,
        http_status=error.http_status,
        retry_after_ms=error.retry_after_ms,
        details=dict(error.details) if error.details else None,
    )


def refuses_content(error: ErrorInfo) -> bool:
    """Return whether a host refused a request for what it holds, so that it never takes it."""
    if error.code in ("ContentFiltered", "TooLarge"):
        return True
    return error.code == "Provider" and error.http_status in (400, 415, 422)


def failure(code: str, message: str, **details: Any) -> ErrorInfo:
    """Return an `ErrorInfo` for a code of the table, for failures that are never raised."""
    _, category, retryable = ERRORS[code]
    return ErrorInfo(
        code=code, message=message, category=category, retryable=retryable, details=details or None
    )
