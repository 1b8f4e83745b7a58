"""One request to the model and its answer, up to its end or its failure."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from kode_sidecar.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.domain.model_event import (
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.dialect import AnswerDecoder
from kode_sidecar.providers.dialects import DIALECTS
from kode_sidecar.providers.endpoint import Endpoint, HostResponse
from kode_sidecar.providers.error_words import seconds_until_reset
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.rate_limiter import MAX_RETRY_AFTER

_MAX_ERROR_BODY = 64 * 1024
# W16: many times what any model may say.
_MAX_ANSWER_CHARS = 32 * 1024 * 1024
# How long the last bytes of a finished answer are waited for, to keep the connection.
_DRAIN_SECONDS = 0.05
_SHOWN = (TextDelta, ThinkingDelta, ThinkingSigned, ToolUseStarted, ToolUseDelta)


class RawAnswer:
    """What a host sent, for debugging: the body of the last answer, cut at a limit."""

    def __init__(self, most_bytes: int = 4 * 1024 * 1024) -> None:
        self._most = most_bytes
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()

    def begin(self, response: HostResponse) -> None:
        """Another answer begins."""
        self.status, self.headers = response.status, response.headers
        self.body.clear()

    def add(self, data: bytes) -> None:
        """More of it."""
        self.body += data[: max(0, self._most - len(self.body))]


class Attempt:
    """Runs once. Afterwards `error` tells why it failed, None when the answer is whole.

    `started`: the answer began; `shown`: the user saw some of it; `usage`: what a failed answer
    reported. `notices` go out with the start of the answer, each that is not yet in `told`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: ModelProfile,
        body: bytes,
        decoder: AnswerDecoder,
        notices: Iterable[ModelNotice],
        told: set[ModelNotice],
        asker: str = "",
    ) -> None:
        self._asker = asker
        self._endpoint = endpoint
        self._model = model
        self._body = body
        self._decoder = decoder
        self._notices = notices
        self._told = told
        self._headers: Mapping[str, str] = {}
        self.error: ErrorInfo | None = None
        self.started = False
        self.shown = False
        self.usage: list[UsageReported] = []

    async def batches(
        self, raw: RawAnswer | None = None
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Return the answer, one batch per read. A failure is in `error`, not among the events."""
        endpoint, decoder = self._endpoint, self._decoder
        try:
            async with endpoint.limiter.turn(), self._ask() as response:
                self._headers = response.headers
                if raw is not None:
                    raw.begin(response)
                if response.status != 200:
                    self._refused(response, await response.read_all(_MAX_ERROR_BODY), raw)
                    return
                self._pause_when_used_up(response)
                growth = 0
                while not decoder.ended and (data := await response.read()):
                    if raw is not None:
                        raw.add(data)
                    events = decoder.feed(data)
                    if decoder.growth > growth:
                        growth = self._checked(decoder.growth)
                        response.note_progress()
                    if events:
                        yield self._passed_on(events)
                yield self._passed_on(decoder.finish())
                self._learn()
                await response.drain(_DRAIN_SECONDS)
        except KodeError as error:
            if not decoder.complete:
                self._fail(error_info(error))
                return
            # The model had said that it was done; only the end of the bytes is missing.
            yield self._passed_on(decoder.finish())

    def _is_news(self, event: ModelEvent) -> bool:
        if isinstance(event, ModelNotice):
            if event in self._told:
                return False
            self._told.add(event)
        return True

    def _ask(self) -> AbstractAsyncContextManager[HostResponse]:
        headers = self._endpoint.headers(self._model)
        path = DIALECTS[self._model.dialect].path
        return self._endpoint.http().stream("POST", path, self._body, headers, self._asker)

    def _refused(self, response: HostResponse, body: bytes, raw: RawAnswer | None) -> None:
        if raw is not None:
            raw.add(body)
        errors = self._endpoint.errors
        self.error = errors.response(response.status, response.headers, body, self._model.id)
        self._learn()

    def _fail(self, error: ErrorInfo) -> None:
        """The answer began and is none; its host can still be asked about this request."""
        self.error = self._endpoint.errors.traced(error, self._headers)

    def _learn(self) -> None:
        if self.error is not None and self.error.code == "RateLimited":
            self._endpoint.limiter.learn(self.error)

    def _checked(self, growth: int) -> int:
        """Raises KodeError `TooLarge` for an answer without end."""
        if growth > _MAX_ANSWER_CHARS:
            text = f"The answer of {self._endpoint.errors.host} has no end; it was cut off."
            raise KodeError("TooLarge", text)
        return growth

    def _pause_when_used_up(self, response: HostResponse) -> None:
        """The host counts, and says that this was the last request for now."""
        seconds = seconds_until_reset(response.headers)
        if seconds is not None:
            self._endpoint.limiter.pause(min(seconds, MAX_RETRY_AFTER))

    def _passed_on(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """Return `events` as they go out: with the notices, without what tells of a failure."""
        if not self.started and events and isinstance(events[0], ResponseStarted):
            self.started = True
            events[1:1] = self._notices
        if any(isinstance(event, ModelNotice) for event in events):
            events = [event for event in events if self._is_news(event)]
        self.shown = self.shown or any(isinstance(event, _SHOWN) for event in events)
        last = events[-1] if events else None
        if isinstance(last, ResponseFailed):
            self._fail(last.error)
        elif isinstance(last, ResponseFinished) and last.reason == "incomplete":
            host = self._endpoint.errors.host
            text = f"The answer of {host} broke off before its end: ask again."
            self._fail(failure("IncompleteAnswer", text))
        else:
            return events
        self.usage = [event for event in events if isinstance(event, UsageReported)]
        return [event for event in events[:-1] if not isinstance(event, UsageReported)]
