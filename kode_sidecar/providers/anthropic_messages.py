"""The stream of Anthropic's Messages API as model events. Sans-IO.

One decoder per answer: `feed_many` what the event stream decoder gives, until `ended` or the end
of the bytes, then `finish`. A whole message or an error body goes the same way, as one event.
The kind of an event is the `type` in its data; gateways leave the event line out.
"""

import json
from collections.abc import Iterable
from typing import Any

from kode_sidecar.domain.model_event import (
    AttemptDropped,
    FinishReason,
    ModelEvent,
    ResponseFailed,
    ResponseStarted,
    ThinkingSigned,
    ToolUseStarted,
)
from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.answer_events import TEXT, THINKING, DeltaRuns, put_end
from kode_sidecar.providers.anthropic_wire import (
    BlockDelta,
    ContentBlock,
    Event,
    MessageHead,
    WireUsage,
    decode_exact,
    decode_tolerant,
    merged,
    usage_of,
)
from kode_sidecar.providers.lenient_json import is_utf8
from kode_sidecar.providers.profiles import ModelProfile, Price, usage_event
from kode_sidecar.providers.provider_errors import ProviderErrors

_PASSED_OVER = -4
"""The kind of a block that we have no use for, with all its deltas."""

_STOP_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "content_filter",
}


class MessagesDecoder:
    """Events of one answer; the arguments are those of `ChatDecoder`."""

    def __init__(
        self,
        *,
        price: Price | None = None,
        tool_names: frozenset[str] = frozenset(),
        errors: ProviderErrors | None = None,
        provider: str = "",
    ) -> None:
        self._errors = errors or ProviderErrors()
        self._price = price
        self._provider = provider
        self._runs = DeltaRuns(tool_names)
        self._done = False
        self._failed = False
        self._bad_in_a_row = 0
        self.bad_events = 0
        self._begin(None)

    @classmethod
    def of(
        cls, request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
    ) -> "MessagesDecoder":
        """Return the decoder for the answer to a request."""
        names = frozenset(tool.name for tool in request.tools)
        return cls(price=profile.price, tool_names=names, errors=errors, provider=profile.provider)

    def _begin(self, head: MessageHead | None) -> None:
        """Nothing was said yet in the message that `head` announces."""
        self._head = head
        self._has_gap = False
        self._head_came_twice = False
        self._usage: WireUsage | None = head and head.usage
        self._raw_reason: str | None = None
        self._kinds: dict[int | None, int] = {}
        self._calls = 0
        self._has_nameless_call = False
        self._whole_input = ""
        self._signature: str | None = None

    @property
    def ended(self) -> bool:
        """Nothing that follows matters: the end mark came, an error, or garbage."""
        return self._done or self._failed or self._bad_in_a_row > 1

    @property
    def complete(self) -> bool:
        """The model said that it is done, whatever happens to the connection now."""
        return self._done or self._raw_reason is not None

    @property
    def growth(self) -> int:
        """How many characters the model has said; more means that it is at work."""
        return self._runs.growth

    def feed_many(self, batch: Iterable[bytes]) -> list[ModelEvent]:
        """Return what the events of one read mean, in order. Bytes that are no JSON are passed over
        once; two in a row end the answer.
        """
        for data in batch:
            if self.ended:
                break
            try:
                event = decode_exact(data)
            except (ValueError, RecursionError):
                event = self._salvage(data)
                if event is None:
                    continue
            self._bad_in_a_row = 0
            # The common case, growth of a block, takes the short way.
            if event.type == "content_block_delta":
                if event.delta is not None:
                    self._grow(event.index, event.delta)
            else:
                self._read(event)
        return self._runs.take()

    def finish(self) -> list[ModelEvent]:
        """Return what the end of the answer means; call once, after the last `feed_many`."""
        if self._failed:
            return []
        if self._head is None:
            self._start(MessageHead())
        self._close_block()
        runs = self._runs
        for leaked in runs.end_leaks(take_calls=not self._calls):
            self._open_call(leaked.tool_use_id, leaked.name)
            runs.add(self._calls - 1, leaked.arguments)
        if self._usage is not None:
            runs.put(usage_event(usage_of(self._usage), self._price))
        put_end(
            runs,
            self._reason(),
            self._raw_reason,
            self._errors.host,
            marked=self._done,
            damaged=self.bad_events > 0,
            has_calls=self._calls > 0,
            has_nameless_call=self._has_nameless_call,
        )
        return runs.take()

    def _read(self, event: Event) -> None:
        """Everything but growth."""
        match event.type:
            case "message_start":
                head = event.message
                self._start(head if isinstance(head, MessageHead) else MessageHead())
            case "content_block_start":
                self._open_block(event.index, event.content_block or ContentBlock())
            case "content_block_stop":
                self._close_block()
            case "message_delta":
                self._usage = merged(self._usage, event.usage)
                if event.delta is not None:
                    self._raw_reason = event.delta.stop_reason or self._raw_reason
            case "message_stop":
                self._done = True
            case "message":
                self._read_whole(event)
            case "ping":
                pass
            case _:
                if event.type == "error" or event.error:
                    self._failed = True
                    error = event.error or {"message": event.message}
                    self._runs.put(ResponseFailed(self._errors.in_stream(error)))

    def _start(self, head: MessageHead) -> None:
        if self._head is None:
            self._begin_with(head)
        elif head.id == self._head.id:
            self._head_came_twice = True
        else:
            self._restart(head)

    def _restart(self, head: MessageHead) -> None:
        """A gateway asked again in the middle of an answer: only the new one counts."""
        self._runs.restart()
        self._runs.put(AttemptDropped(f"{self._errors.host} began its answer anew."))
        self._begin_with(head)

    def _begin_with(self, head: MessageHead) -> None:
        self._begin(head)
        self._runs.put(ResponseStarted(head.id or None, head.model or None, self._provider or None))

    def _read_whole(self, event: Event) -> None:
        self._start(MessageHead(event.id, event.model, event.usage))
        for index, block in enumerate(event.content or ()):
            self._open_block(index, block)
        self._close_block()
        self._raw_reason = event.stop_reason
        self._done = True

    def _open_block(self, index: int | None, block: ContentBlock) -> None:
        if self._head is None:
            self._start(MessageHead())
        elif self._head_came_twice and index in self._kinds:
            # The same head again was no slip: its blocks come again, too.
            self._restart(self._head)
        self._close_block()
        kind = _PASSED_OVER
        match block.type:
            case "text":
                kind = TEXT
                if block.text:
                    self._runs.add(TEXT, block.text)
            case "thinking":
                kind = THINKING
                self._runs.add(THINKING, block.thinking or "")
                self._signature = block.signature or ""
            case "redacted_thinking":
                self._runs.put(ThinkingSigned(block.data or "", redacted=True))
            case "tool_use":
                kind = self._calls
                self._open_call(block.id or "", block.name or "")
                self._whole_input = _json_text(block.input)
            case _:
                pass
        self._kinds[index] = kind

    def _open_call(self, tool_use_id: str, name: str) -> None:
        number = self._calls
        self._calls += 1
        if not name:
            self._has_nameless_call = True
            return
        self._runs.put(ToolUseStarted(number, tool_use_id or f"toolu_{number}", name))

    def _grow(self, index: int | None, delta: BlockDelta) -> None:
        kind = self._kinds.get(index)
        if kind is None:
            # The start of the block is lost; its deltas still say what it is.
            named = "thinking" if delta.thinking is not None else "text"
            self._open_block(
                index, ContentBlock("tool_use" if delta.partial_json is not None else named)
            )
            kind = self._kinds[index]
        if kind == TEXT:
            if delta.text:
                self._runs.add(TEXT, delta.text)
        elif kind == THINKING:
            if delta.thinking:
                self._runs.add(THINKING, delta.thinking)
            elif delta.signature is not None:
                self._signature = delta.signature
        elif kind != _PASSED_OVER and delta.partial_json:
            self._whole_input = ""
            if not self._has_nameless_call:
                self._runs.add(kind, delta.partial_json)

    def _close_block(self) -> None:
        """The open block is whole, if there is one; blocks never overlap."""
        if self._signature is not None:
            self._runs.put(ThinkingSigned(self._signature))
            self._signature = None
        if self._whole_input:
            if not self._has_nameless_call:
                self._runs.add(self._calls - 1, self._whole_input)
            self._whole_input = ""

    def _salvage(self, data: bytes) -> Event | None:
        """An event that strict JSON refuses; two in a row that nobody can read end the stream."""
        if data.strip() == b"[DONE]":
            self._done = self._raw_reason is not None
            return None
        event = decode_tolerant(data)
        if event is None:
            self._bad_in_a_row += 1
        else:
            self._runs.torn = True
        if event is None or not is_utf8(data):
            self.bad_events += 1
            self._has_gap = self._has_gap or self._raw_reason is None
        return event

    def _reason(self) -> FinishReason:
        if self._calls and (self._has_gap or self._runs.call_is_torn):
            # What was lost may be a line of a call: such a call never runs.
            return "incomplete"
        if self._raw_reason is None:
            if not self._done:
                return "incomplete"
            return "tool_calls" if self._calls else "other"
        reason = _STOP_REASONS.get(self._raw_reason, "other")
        return "tool_calls" if reason in ("stop", "other") and self._calls else reason


def _json_text(value: Any) -> str:
    """The input that some hosts send whole with the start of a call; `{}` is a place holder."""
    return json.dumps(value, ensure_ascii=False) if value else ""
