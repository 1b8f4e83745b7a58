"""Defines a dialect: how requests are written and answers read. Sans-IO.

`dialects` lists them all. An answer goes from raw bytes through `sse` to the decoder of its
dialect, which returns model events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.model_event import ModelEvent, ModelNotice, ResponseFailed
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.core.text.lenient_json import lenient_json
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.event_decoder import EventDecoder
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors
from kode_sidecar.infrastructure.providers.sse import MAX_EVENT_BYTES, SseDecoder

# White space and the bytes of a byte order mark.
_BLANK = b"\xef\xbb\xbf \t\r\n"


class AnswerDecoder:
    """Reads an event stream, or the whole JSON that some hosts send instead of a stream.

    The first byte decides which, because hosts send wrong content types. However the bytes are
    cut, the events are equal, except for how neighbouring deltas are joined.
    """

    def __init__(self, answer: EventDecoder) -> None:
        self._answer = answer
        self._sse = SseDecoder()
        self._is_stream = False
        self._head: bytes | None = b""  # of a stream in which no event came yet
        self._whole: list[bytes] = []
        self._whole_size = 0

    @property
    def ended(self) -> bool:
        """True if nothing that follows matters."""
        return self._answer.ended

    @property
    def complete(self) -> bool:
        """True if the model's answer is complete, whatever happens to the connection now."""
        return self._answer.complete

    @property
    def growth(self) -> int:
        """The number of characters received, which grows while the model works."""
        return self._answer.growth

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Return the events of one read. Raises KodeError `TooLarge` past the limit."""
        if not self._is_stream:
            self._whole_size += len(data)
            if not self._whole:
                # Strip blanks now, or a host could make us scan them again with every read.
                data = data.lstrip(_BLANK)
            if data:
                self._whole.append(data)
            if self._whole_size > MAX_EVENT_BYTES:
                text = f"The model's host sent more than {MAX_EVENT_BYTES:,} bytes; ask again."
                raise KodeError("TooLarge", text)
            start = self._start()
            if not start or start in b"{[<":
                return []
            self._is_stream = True
            data, self._whole = b"".join(self._whole), []
        events = self._sse.feed(data)
        if self._head is not None:
            self._head = None if events else (self._head + data)[:HEAD_BYTES]
        return self._answer.feed_many(events) if events else []

    def finish(self) -> list[ModelEvent]:
        """Return the events at the end of the body; call once. The last event ends the answer."""
        if self._is_stream:
            events = self._sse.finish()
            wrong = None if self._head is None or events else wrong_stream(self._head)
        else:
            whole = unwrapped(b"".join(self._whole).strip())
            events = [whole] if whole else []
            wrong = wrong_body(whole) if whole else None
        if wrong is not None:
            return [ResponseFailed(wrong)]
        return [*self._answer.feed_many(events), *self._answer.finish()]

    def _start(self) -> bytes:
        """Return the first byte that is not blank; empty while there is none."""
        return self._whole[0][:1] if self._whole else b""


class EncodedRequest(NamedTuple):
    """The body of a request, and notices of the options that were left out of it."""

    body: bytes
    notices: tuple[ModelNotice, ...]


@dataclass(frozen=True)
class Dialect:
    """How requests are written and answers read. Sans-IO; stateless between answers.

    `path` is appended to the base URL, which ends in `/v1`. `headers` makes those of every
    request from the key, names in lower case. `encode_request` gives equal bytes for equal
    requests, so that hosts can cache by prefix. `new_decoder` reads the events of one answer.
    """

    path: str
    headers: Callable[[str], Mapping[str, str]]
    encode_request: Callable[[ModelRequest, ModelProfile], EncodedRequest]
    new_decoder: Callable[[ModelRequest, ModelProfile, ProviderErrors], EventDecoder]


# An answer of status 200 that no model's host sends means that the address is wrong: a web page,
# the words of a proxy, the API of another kind. Asking again would bring the same.
HEAD_BYTES = 64
"""Bytes at the start of a stream that suffice to recognise it."""
_WEB_PAGE = (
    "The provider's address answered with a web page instead of the model's answer: check it "
    "(KIMI_BASE_URL, or `base_url` in config.yaml), and whether this network wants you to log in."
)
_NO_COMPLETION = (
    "The provider's address answered with something else than a model's answer: check it "
    "(KIMI_BASE_URL, or `base_url` in config.yaml); it usually ends in /v1."
)
_FIELDS = (b"data", b"event", b"id", b"retry")
_REFUSALS = ("base_resp", "error_code", "success")
# A completion, a message of Anthropic's, a response of OpenAI's, or an error has one of these.
_TOP = frozenset({"choices", "usage", "error", "type", "output", "code", "detail", *_REFUSALS})


def wrong_stream(head: bytes) -> ErrorInfo | None:
    """Return a failure if a body without any event does not begin like an event stream."""
    line, ended, _ = head.replace(b"\r", b"\n").partition(b"\n")
    name, colon, _ = line.partition(b":")
    if name in (b"", *_FIELDS) or (
        not ended and not colon and any(field.startswith(name) for field in _FIELDS)
    ):
        return None
    return failure("ConfigInvalid", _NO_COMPLETION)


def wrong_body(body: bytes) -> ErrorInfo | None:
    """Return a failure if a body that is no stream is neither a completion nor an error."""
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
