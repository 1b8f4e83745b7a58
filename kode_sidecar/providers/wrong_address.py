"""Whether a host answered with something that no model's host sends: its address is wrong. Sans-IO.

Such an answer has status 200: a web page, the words of a proxy, the API of another kind. Asking
again would bring the same.
"""

from typing import Any, cast

from kode_sidecar.domain.error_info import ErrorInfo, failure
from kode_sidecar.providers.lenient_json import lenient_json

HEAD_BYTES = 64
"""So much of a stream's beginning tells what it is."""
_WEB_PAGE = (
    "The provider's address answered with a web page instead of the model's answer: check it "
    "(KIMI_BASE_URL, or `base_url` in config.yaml), and whether this network wants you to log in."
)
_NO_COMPLETION = (
    "The provider's address answered with something else than a model's answer: check it "
    "(KIMI_BASE_URL, or `base_url` in config.yaml); it usually ends in /v1."
)
_FIELDS = (b"data", b"event", b"id", b"retry")
# A completion, a message of Anthropic's, a response of OpenAI's, or an error has one of these.
_TOP = frozenset({"choices", "usage", "error", "type", "output", "code", "detail"})


def wrong_stream(head: bytes) -> ErrorInfo | None:
    """Return the failure if a body without any event begins like no event stream."""
    line, ended, _ = head.replace(b"\r", b"\n").partition(b"\n")
    name, colon, _ = line.partition(b":")
    if name in (b"", *_FIELDS) or (
        not ended and not colon and any(field.startswith(name) for field in _FIELDS)
    ):
        return None
    return failure("ConfigInvalid", _NO_COMPLETION)


def wrong_body(body: bytes) -> ErrorInfo | None:
    """Return the failure if a body that is no stream is no completion and no error either."""
    if body[:1] == b"<":
        return failure("ConfigInvalid", _WEB_PAGE)
    value = lenient_json(body)
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        is_known = not _TOP.isdisjoint(fields) or isinstance(fields.get("message"), str)
    else:
        is_known = value is None  # cut off, or an error in a list
    return None if is_known else failure("ConfigInvalid", _NO_COMPLETION)


def unwrapped(body: bytes) -> bytes:
    """Return a body without the list that some hosts put around an error."""
    start = body.find(b"{")
    if body[:1] != b"[" or start < 0:
        return body
    return body[start : body.rfind(b"}") + 1] or body
