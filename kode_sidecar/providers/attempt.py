"""One request to the model and its answer, up to its end or its failure."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

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
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.provider_errors import ProviderErrors

if TYPE_CHECKING:  # httpx is loaded by a thread, after the process answers
    from kode_sidecar.providers.http_client import HttpClient

_MAX_ERROR_BODY = 64 * 1024
# How long the last bytes of a finished answer are waited for, to keep the connection.
_DRAIN_SECONDS = 0.05
_SHOWN = (TextDelta, ThinkingDelta, ThinkingSigned, ToolUseStarted, ToolUseDelta)


class Attempt:
    """Runs once. Afterwards `error` tells why it failed, None when the answer is whole.

    `started`: the answer began; `shown`: the user saw some of it; `usage`: what a failed answer
    reported. `notices` go out with the start of the answer, each that is not yet in `told`.
    """

    def __init__(
        self,
        decoder: AnswerDecoder,
        errors: ProviderErrors,
        notices: Iterable[ModelNotice] = (),
        told: set[ModelNotice] | None = None,
    ) -> None:
        self._decoder = decoder
        self._errors = errors
        self._notices = notices
        self._told: set[ModelNotice] = set() if told is None else told
        self.error: ErrorInfo | None = None
        self.started = False
        self.shown = False
        self.usage: list[UsageReported] = []

    async def batches(
        self,
        http: "HttpClient",
        model_id: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """The answer, one batch per read. A failure is in `error`, not among the events."""
        decoder = self._decoder
        try:
            async with http.stream("POST", path, body, headers) as response:
                if response.status != 200:
                    refusal = await response.read_all(_MAX_ERROR_BODY)
                    self.error = self._errors.response(
                        response.status, response.headers, refusal, model_id
                    )
                    return
                growth = 0
                while not decoder.ended and (data := await response.read()):
                    events = decoder.feed(data)
                    if decoder.growth > growth:
                        growth = decoder.growth
                        response.note_progress()
                    if events:
                        yield self._passed_on(events)
                yield self._passed_on(decoder.finish())
                await response.drain(_DRAIN_SECONDS)
        except KodeError as error:
            if not decoder.complete:
                self.error = error_info(error)
                return
            # The model had said that it was done; only the end of the bytes is missing.
            yield self._passed_on(decoder.finish())

    def _is_news(self, event: ModelEvent) -> bool:
        if isinstance(event, ModelNotice):
            if event in self._told:
                return False
            self._told.add(event)
        return True

    def _passed_on(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """`events` as they go out: with the notices, without what tells of a failure."""
        if not self.started and events and isinstance(events[0], ResponseStarted):
            self.started = True
            events[1:1] = self._notices
        if any(isinstance(event, ModelNotice) for event in events):
            events = [event for event in events if self._is_news(event)]
        self.shown = self.shown or any(isinstance(event, _SHOWN) for event in events)
        last = events[-1] if events else None
        if isinstance(last, ResponseFailed):
            self.error = last.error
        elif isinstance(last, ResponseFinished) and last.reason == "incomplete":
            text = f"The answer of {self._errors.host} broke off before its end: ask again."
            self.error = failure("IncompleteAnswer", text)
        else:
            return events
        self.usage = [event for event in events if isinstance(event, UsageReported)]
        return [event for event in events[:-1] if not isinstance(event, UsageReported)]
