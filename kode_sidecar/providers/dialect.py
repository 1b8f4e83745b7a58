"""What a provider's language is: how requests are written, and answers read. Sans-IO.

`dialects` lists those there are. An answer goes from raw bytes through `sse` to the decoder of
its dialect, which gives model events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kode_sidecar.domain.model_event import ModelEvent, ModelNotice, ResponseFailed
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.event_decoder import EventDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors
from kode_sidecar.providers.sse import MAX_EVENT_BYTES, SseDecoder
from kode_sidecar.providers.wrong_address import HEAD_BYTES, unwrapped, wrong_body, wrong_stream

# White space and the bytes of a byte order mark.
_BLANK = b"\xef\xbb\xbf \t\r\n"


class AnswerDecoder:
    """Reads an event stream, or the whole JSON that some hosts send although a stream was asked.

    The first byte tells them apart; hosts get the content type wrong. Any cut of the bytes
    gives the same events, but for how neighbouring deltas are joined.
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
        """Nothing that follows matters."""
        return self._answer.ended

    @property
    def complete(self) -> bool:
        """The model said that it is done, whatever happens to the connection now."""
        return self._answer.complete

    @property
    def growth(self) -> int:
        """How much the model has said; more means that it is at work, as keep-alives do not."""
        return self._answer.growth

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Return what one read means. Raises KodeError `TooLarge` for an endless event or body."""
        if not self._is_stream:
            self._whole_size += len(data)
            if not self._whole:
                # Kept out, or a host could make us look through nothing again and again.
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
        """Return what the end of the body means; call once. The last event ends the answer."""
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
        """Return the first byte that says something; empty while there is none."""
        return self._whole[0][:1] if self._whole else b""


class EncodedRequest(NamedTuple):
    """The body of a request, and notices of the options that were left out of it."""

    body: bytes
    notices: tuple[ModelNotice, ...]


@dataclass(frozen=True)
class Dialect:
    """How requests are written and answers read. Sans-IO; keeps nothing between answers.

    `path` is appended to the base URL, which ends in `/v1`. `headers` makes those of every
    request from the key, names in lower case. `encode_request` gives equal bytes for equal
    requests, so that hosts can cache by prefix. `new_decoder` reads the events of one answer.
    """

    path: str
    headers: Callable[[str], Mapping[str, str]]
    encode_request: Callable[[ModelRequest, ModelProfile], EncodedRequest]
    new_decoder: Callable[[ModelRequest, ModelProfile, ProviderErrors], EventDecoder]
