"""Sends one request to a model and reads its answer, up to its end or its failure."""

import dataclasses
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial

from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.core.domain.message import LostUsage, Usage
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ModelNotice,
    RequestHeld,
    RequestSent,
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
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpRequest
from kode_sidecar.infrastructure.providers.dialect import AnswerDecoder
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.endpoint import Endpoint, HostResponse
from kode_sidecar.infrastructure.providers.error_words import (
    error_payload,
    error_words,
    seconds_until_reset,
)
from kode_sidecar.infrastructure.providers.model_names import answers_for, is_family
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, usage_event
from kode_sidecar.infrastructure.providers.rate_limiter import MAX_RETRY_AFTER, RequestDelay
from kode_sidecar.infrastructure.providers.refusal_fixes import Refusal
from kode_sidecar.infrastructure.providers.request_options import guessed_tokens
from kode_sidecar.infrastructure.providers.sendable_history import pictures

_MAX_ERROR_BODY = 64 * 1024
# W16: many times the longest answer of any model.
_MAX_ANSWER_CHARS = 32 * 1024 * 1024
# How long to wait for the last bytes of a finished answer, so that its connection can be reused.
_DRAIN_SECONDS = 0.05
_TOKENS_PER_CHARACTER = 0.3
# A host's count below this share of ours is more than an inexact estimate.
_READ_SHARE = 0.6
_SHOWN = (TextDelta, ThinkingDelta, ThinkingSigned, ToolUseStarted, ToolUseDelta)


_MOST_RAW = 4 * 1024 * 1024


class RawAnswer:
    """The host's last answer for debugging: status, headers, and the body up to a limit."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()

    def begin(self, response: HostResponse) -> None:
        """Start recording another answer."""
        self.status, self.headers = response.status, response.headers
        self.body.clear()

    def add(self, data: bytes) -> None:
        """Append to the body."""
        self.body += data[: max(0, _MOST_RAW - len(self.body))]


class Attempt:
    """Runs once. Afterwards `error` is the failure, None if the answer is complete.

    `started`: the answer began; `shown`: the user saw some of it; `usage`: the usage that a failed
    answer reported. `refusal` is what the host said to the request.
    `notices`, and those of options that `model` does not accept, follow the start
    of the answer, unless they are already in `said`. `patience`: seconds the host may be
    silent; None: its timeouts.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: ModelProfile,
        request: ModelRequest,
        said: set[ModelNotice],
        notices: Iterable[ModelNotice] = (),
        patience: float | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        if request.stream and not model.streams:
            request = dataclasses.replace(request, stream=False)
        self._request = request
        self._dialect = DIALECTS[model.dialect]
        self._body, dropped = self._dialect.encode_request(request, model)
        self._notices = (*notices, *dropped, *_unseen(request, model))
        self._reported = said
        timeouts = endpoint.timeouts(model)
        self._timeouts = (timeouts if request.stream else timeouts.whole()).at_most(patience)
        self._headers: Mapping[str, str] = {}
        self.error: ErrorInfo | None = None
        self.refusal: Refusal | None = None
        self.started = False
        self.shown = False
        self.usage: list[UsageReported] = []
        self._said = 0

    @property
    def lost(self) -> LostUsage | None:
        """Return the usage of a failed attempt; None if the host had not begun to answer."""
        return None if self.error is None or not self.started else self._estimate()

    def _cut(self, decoder: AnswerDecoder) -> LostUsage | None:
        """Return the usage of an answer that nobody reads on."""
        self._said, self.usage = decoder.growth, _usage_in(decoder.finish())
        return self._estimate() if self.started else None

    def _estimate(self) -> LostUsage:
        """Usage reported before the end misses most output, which is estimated by its length."""
        said = self.usage[0] if self.usage else None
        output = round(self._said * _TOKENS_PER_CHARACTER)
        if said is not None and said.usage.output_tokens >= output / 2:
            return LostUsage(usage=said.usage, cost=said.cost, cost_usd=said.cost_usd)
        known = said.usage if said is not None else Usage(input_tokens=self._asked_tokens())
        known = replace(known, output_tokens=output, total_tokens=known.input_tokens + output)
        priced = usage_event(known, self._model.price)
        cost = priced.cost and replace(priced.cost, amount=round(priced.cost.amount, 6))
        dollars = priced.cost_usd if priced.cost_usd is None else round(priced.cost_usd, 6)
        return LostUsage(usage=known, cost=cost, cost_usd=dollars, estimated=True)

    def _cut_notice(self, events: Iterable[ModelEvent]) -> list[ModelNotice]:
        """Return a notice if the host counted far fewer tokens than we sent: it cut the prompt."""
        asked = self._request.prompt_tokens or 0
        for said in _usage_in(events):
            if 0 < said.usage.input_tokens < asked * _READ_SHARE:
                text = (
                    f"{self._endpoint.errors.host} read {said.usage.input_tokens:,} of about "
                    f"{asked:,} tokens: it left out the beginning of the conversation. Give the "
                    "model a larger context there (OLLAMA_CONTEXT_LENGTH, or num_ctx), or say its "
                    "`context_window` in config.yaml."
                )
                notice = ModelNotice("PromptCut", text)
                return [notice] if self._is_news(notice) else []
        return []

    def _rerouted(self, begun: ResponseStarted) -> list[ModelNotice]:
        """Return a notice if another model answers than the one asked, as hosts do with old ids."""
        asked = self._model.id
        if not begun.model or is_family(asked) or answers_for(begun.model, asked):
            return []
        text = (
            f"{self._endpoint.errors.host} answers for {asked} with {begun.model}, whose price "
            "and window may differ. Name the model you want with the setting `model`."
        )
        return [ModelNotice("ModelRetired", text)]

    def _asked_tokens(self) -> int:
        """Estimate the input tokens, rounded to two digits: it is no more exact than that."""
        return int(float(f"{self._request.prompt_tokens or guessed_tokens(self._body):.2g}"))

    async def batches(
        self, raw: RawAnswer | None = None
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Yield the answer, one batch per read. A failure goes into `error`."""
        endpoint = self._endpoint
        decoder: AnswerDecoder | None = None
        try:
            hold = endpoint.limiter.hold()
            if hold is not None:
                yield [_held(hold, endpoint.errors.host)]
            async with AsyncExitStack() as held:
                self._begin = await held.enter_async_context(endpoint.limiter.turn())
                if hold is not None:
                    yield [RequestSent()]
                response = await held.enter_async_context(self._ask())
                self._headers = response.headers
                if raw is not None:
                    raw.begin(response)
                if response.status != 200:
                    self._refused(response, await response.read_all(_MAX_ERROR_BODY), raw)
                    return
                self._pause_when_used_up(response)
                answer = self._dialect.new_decoder(self._request, self._model, endpoint.errors)
                decoder = AnswerDecoder(answer)
                self._request.meter.lost = partial(self._cut, decoder)
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
                self._said = decoder.growth
                yield self._passed_on(decoder.finish())
                self._learn()
                await response.drain(_DRAIN_SECONDS)
        except KodeError as error:
            if decoder is None or not decoder.complete:
                if decoder is not None:
                    self._said = decoder.growth
                    self.usage = _usage_in(decoder.finish())
                self._fail(error_info(error))
                return
            # The model's answer was complete; only the end of the stream is missing.
            yield self._passed_on(decoder.finish())

    def _is_news(self, event: ModelEvent) -> bool:
        if isinstance(event, ModelNotice):
            if event in self._reported:
                return False
            self._reported.add(event)
        return True

    def _ask(self) -> AbstractAsyncContextManager[HostResponse]:
        headers = self._endpoint.headers(self._model)
        path, asker = self._dialect.path, self._request.asker
        http = self._endpoint.http()
        return http.stream(HttpRequest("POST", path, headers, self._body, asker, self._timeouts))

    def _refused(self, response: HostResponse, body: bytes, raw: RawAnswer | None) -> None:
        if raw is not None:
            raw.add(body)
        errors = self._endpoint.errors
        error = errors.response(response.status, response.headers, body, self._model.id)
        self.error = self._sized(error)
        said = error_words(error_payload(body)).all
        self.refusal = Refusal(response.status, said, self._body)
        self._learn()

    def _fail(self, error: ErrorInfo) -> None:
        """Set `error`, with the host's own id of this request for its support."""
        self.error = self._sized(self._endpoint.errors.traced(error, self._headers))

    def _sized(self, error: ErrorInfo) -> ErrorInfo:
        """Return the error; one about the length of a first prompt with the prompt's size.

        A new session would not help there.
        """
        request, window = self._request, (error.details or {}).get("window")
        begun = any(message.role == "assistant" for message in request.messages)
        if error.code != "ContextOverflow" or begun:
            return error
        size = request.prompt_likely or guessed_tokens(self._body)
        window = window or self._model.context_window
        reads = f"reads {window:,} at most" if window else "reads less"
        _, mark, said = error.message.partition(" It said: ")
        text = (
            f"The prompt has about {size:,} tokens, with instructions and tools, and "
            f"{self._model.id} {reads}: shorten it, attach less, or choose a model with a larger "
            "window."
        )
        return replace(error, message=f"{text}{mark}{said}")

    def _learn(self) -> None:
        if self.error is not None and self.error.code == "RateLimited":
            self._endpoint.limiter.learn(self.error)

    def _checked(self, growth: int) -> int:
        """Return `growth`. Raises KodeError `TooLarge` for an answer that does not end."""
        if growth > _MAX_ANSWER_CHARS:
            text = f"The answer of {self._endpoint.errors.host} has no end; it was cut off."
            raise KodeError("TooLarge", text)
        return growth

    def _pause_when_used_up(self, response: HostResponse) -> None:
        """Pause if the headers say that this was the last request allowed for now."""
        seconds = seconds_until_reset(response.headers)
        if seconds is not None:
            self._endpoint.limiter.pause(min(seconds, MAX_RETRY_AFTER))

    def _passed_on(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """Return `events` with the notices, and without the events of a failure."""
        if not self.started and events and isinstance(events[0], ResponseStarted):
            self.started = True
            self._begin()
            events[1:1] = [*self._notices, *self._rerouted(events[0])]
        if any(isinstance(event, ModelNotice) for event in events):
            events = [event for event in events if self._is_news(event)]
        if self._model.cuts_silently:
            events = [*self._cut_notice(events), *events]
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
        self.usage = _usage_in(events)
        return [event for event in events[:-1] if not isinstance(event, UsageReported)]


def _unseen(request: ModelRequest, model: ModelProfile) -> list[ModelNotice]:
    """Return a notice if the model gets notes in place of pictures: not only it must know."""
    if model.images or not pictures(request.messages):
        return []
    text = f"{model.id} reads text only: it does not see the pictures of this conversation."
    return [ModelNotice("PicturesLeftOut", text)]


def _held(hold: RequestDelay, host: str) -> RequestHeld:
    """Return what the user is notified of while a request of ours is not sent yet."""
    if hold.seconds is not None:
        rate = f"allows {hold.per_minute} requests a minute" if hold.per_minute else "asked to wait"
        text = f"Waiting {hold.seconds:.0f} s: {host} {rate}."
        return RequestHeld("limited", text, hold.seconds)
    at_once = f"{host} answers {hold.at_once} at a time" if hold.at_once else "they came first"
    return RequestHeld("queued", f"Waiting for earlier requests: {at_once}.")


def _usage_in(events: Iterable[ModelEvent]) -> list[UsageReported]:
    return [event for event in events if isinstance(event, UsageReported)]
