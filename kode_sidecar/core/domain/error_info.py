"""`ErrorInfo`: the one shape of a failure on the wire, in events, logs and tool results."""

import re
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


# Words by which hosts say that they refused a prompt or a picture, not the form of the request.
_NAMES_CONTENT = re.compile(
    r"image|picture|media|audio|video|\bpdf\b|moderat|polic(?:y|ies)|sensitive|inappropriate|flagged"
    r"|\brisk|inspection|unsafe|图片|图像|内容|敏感|违规|安全",
    re.IGNORECASE,
)
UNNAMED = "unnamed"


def refused_content(error: ErrorInfo) -> str | None:
    """Return the code of a failure by which a host refused a request for what it holds.

    `UNNAMED` if the host does not say that this was the reason; None if it was not.
    """
    if error.code == "ContentFiltered" or (error.code == "TooLarge" and error.http_status == 413):
        return error.code
    if error.code != "Provider" or error.http_status not in (400, 415, 422):
        return None
    return error.code if _NAMES_CONTENT.search(error.message) else UNNAMED


def failure(code: str, message: str, **details: Any) -> ErrorInfo:
    """Return an `ErrorInfo` for a code of the table, for failures that are never raised."""
    _, category, retryable = ERRORS[code]
    return ErrorInfo(
        code=code, message=message, category=category, retryable=retryable, details=details or None
    )
