"""The base of all dialects' decoders: the state of one answer, its start and its end. Sans-IO.

Feed a decoder with the data of events by `feed_many` until `ended` or the end of the bytes, then
call `finish`. A whole answer or an error body is fed as one event.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self, TypeVar

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    FinishReason,
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
)
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.core.text.lenient_json import is_utf8
from kode_sidecar.infrastructure.providers.answer_events import DeltaRuns
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, TokenPrice, WireNames
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors
from kode_sidecar.infrastructure.providers.tool_call_assembly import called_ids

PASSED_OVER = -4
"""The kind of a block that is ignored, with all its deltas."""
# An answer that ends for one of these reasons may be empty, and its calls do not run.
_SAYS_ENOUGH: frozenset[FinishReason] = frozenset(
    {"incomplete", "length", "content_filter", "paused"}
)
_T = TypeVar("_T")


class AnswerContext(NamedTuple):
    """What a decoder knows of the request that is answered, and of the `provider` who was asked.

    `price` converts its usage into cost. `tool_names` are the tools that a call leaked into the
    text may name; without them text is never held back. `taken` are the ids of calls in the
    conversation: a made-up one must differ from them. `names` are the host's own.
    """

    price: TokenPrice | None = None
    tool_names: frozenset[str] = frozenset()
    errors: ProviderErrors = ProviderErrors()
    provider: str = ""
    taken: frozenset[str] = frozenset()
    names: WireNames = WireNames()


NO_CONTEXT = AnswerContext()


class EventDecoder(ABC):
    """Decodes one answer. Neighbouring deltas of one `feed_many` become one event."""

    _think_tags = False

    def __init__(self, context: AnswerContext = NO_CONTEXT) -> None:
        self._errors = context.errors
        self._price = context.price
        self._provider = context.provider
        self._taken = context.taken
        self._runs = DeltaRuns(context.tool_names, think_tags=self._think_tags)
        self._done = False
        self._failed = False
        self._bad_in_a_row = 0
        self.bad_events = 0
        self._begin()

    @classmethod
    def of(cls, request: ModelRequest, profile: ModelProfile, errors: ProviderErrors) -> Self:
        """Return the decoder for the answer to a request."""
        tools = frozenset(tool.name for tool in request.tools)
        taken = called_ids(request.messages)
        return cls(
            AnswerContext(profile.price, tools, errors, profile.provider, taken, profile.names)
        )

    def _begin(self) -> None:
        """Reset the state for the start of an answer."""
        self._has_gap = False
        self._raw_reason: str | None = None

    @property
    def ended(self) -> bool:
        """True if nothing that follows matters: after the end mark, an error, or garbage."""
        return self._done or self._failed or self._bad_in_a_row > 1

    @property
    def complete(self) -> bool:
        """True if the model's answer is complete, whatever happens to the connection now."""
        return self._done or self._raw_reason is not None

    @property
    def growth(self) -> int:
        """The number of characters received; it grows while the model works."""
        return self._runs.growth

    @abstractmethod
    def feed_many(self, batch: Iterable[bytes]) -> list[ModelEvent]:
        """Return the model events for the data of one read, in order. Data that is no JSON is
        skipped once; twice in a row ends the answer.
        """

    @abstractmethod
    def finish(self) -> list[ModelEvent]:
        """Return the events at the end of the answer; call once, after the last `feed_many`."""

    @abstractmethod
    def _reason(self) -> FinishReason: ...

    def _read_events(
        self,
        batch: Iterable[bytes],
        exact: Callable[[bytes], _T],
        tolerant: Callable[[bytes], _T | None],
    ) -> Iterator[tuple[bytes, _T]]:
        for data in batch:
            # Same as `ended`; per delta, calling the property would cost as much as all of this.
            if self._done or self._failed or self._bad_in_a_row > 1:
                break
            try:
                event = exact(data)
            except (ValueError, RecursionError):
                salvaged = self._salvage(data, tolerant)
                if salvaged is None:
                    continue
                event = salvaged
            if self._bad_in_a_row:
                self._bad_in_a_row = 0
            yield data, event

    def _salvage(self, data: bytes, tolerant: Callable[[bytes], _T | None]) -> _T | None:
        """Read an event that strict JSON refuses; two unreadable ones in a row end the stream."""
        if data.strip() == b"[DONE]":
            self._done = self._ends_with_mark()
            return None
        event = tolerant(data)
        if event is None:
            self._bad_in_a_row += 1
        else:
            self._runs.torn = True
        if event is None or not is_utf8(data):
            self.bad_events += 1
            self._has_gap = self._has_gap or self._raw_reason is None
        return event

    def _ends_with_mark(self) -> bool:
        """Return whether `[DONE]`, which a gateway may add in any dialect, ends this answer."""
        return self._raw_reason is not None

    def _put_all(self, events: Iterable[ModelEvent]) -> None:
        for event in events:
            self._runs.put(event)

    def _put_start(self, response_id: object, model: str | None) -> None:
        """Add the start event; gateways leave its id or model empty."""
        named = None if response_id in (None, "") else str(response_id)
        self._runs.put(ResponseStarted(named, model or None, self._provider or None))

    def _drop_attempt(self) -> None:
        """Drop the answer so far: a gateway repeated the request, and only the new one counts."""
        self._runs.restart()
        self._runs.put(AttemptDropped(f"{self._errors.host} began its answer anew."))

    def _fail(self, error: Any) -> None:
        self._failed = True
        self._runs.put(ResponseFailed(self._errors.in_stream(error)))

    def _put_end(self, *, has_calls: bool, has_nameless_call: bool) -> list[ModelEvent]:
        """Return the last events: notices of damage, then the answer's end or its failure."""
        runs, reason, host = self._runs, self._reason(), self._errors.host
        fault = _fault(reason, runs, has_calls=has_calls, has_nameless_call=has_nameless_call)
        if fault is not None:
            runs.put(ResponseFailed(fault))
            return runs.take()
        if reason != "incomplete" and self.bad_events:
            runs.put(damage_notice(host))
        if reason != "incomplete" and not self._done:
            text = f"{host} ends its answers without the usual end mark; they are taken as whole."
            runs.put(ModelNotice("StreamUnmarkedEnd", text))
        runs.put(ResponseFinished(reason, self._raw_reason))
        return runs.take()


def damage_notice(host: str) -> ModelNotice:
    """Return the notice that a damaged event was skipped."""
    text = f"{host} sent a damaged piece of an answer; it was left out, so words may be missing."
    return ModelNotice("StreamDamaged", text)


def _fault(
    reason: FinishReason, runs: DeltaRuns, *, has_calls: bool, has_nameless_call: bool
) -> ErrorInfo | None:
    if reason in _SAYS_ENOUGH:
        return None
    if has_nameless_call:
        return failure("IncompleteAnswer", "The model called a tool without naming it; ask again.")
    if not runs.has_text and not has_calls:
        return failure(
            "EmptyAnswer", "The model ended its answer without saying anything; ask again."
        )
    return None
