"""Decodes the stream of Anthropic's Messages API into model events. Sans-IO.

The kind of an event is the `type` in its data, because gateways leave the event line out.
"""

import json
from collections.abc import Iterable
from typing import Any

from kode_sidecar.core.domain.model_event import (
    FinishReason,
    ModelEvent,
    ThinkingSigned,
    ToolUseStarted,
)
from kode_sidecar.infrastructure.providers.answer_events import TEXT, THINKING
from kode_sidecar.infrastructure.providers.anthropic_wire import (
    AnthropicDelta,
    AnthropicEvent,
    AnthropicUsage,
    ContentBlock,
    MessageHead,
    decode_exact,
    decode_tolerant,
    merged,
    usage_of,
    written_for_an_hour,
)
from kode_sidecar.infrastructure.providers.event_decoder import PASSED_OVER, EventDecoder
from kode_sidecar.infrastructure.providers.profiles import usage_event
from kode_sidecar.infrastructure.providers.tool_call_assembly import free_id

_STOP_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "content_filter",
}


class MessagesDecoder(EventDecoder):
    """Decodes one message: a list of blocks, which never overlap."""

    def _begin(self) -> None:
        super()._begin()
        self._head: MessageHead | None = None
        self._head_came_twice = False
        self._usage: AnthropicUsage | None = None
        self._kinds: dict[int | None, int] = {}
        self._calls = 0
        self._has_nameless_call = False
        self._whole_input = ""
        self._signature: str | None = None
        self._open_index: int | None = None

    def feed_many(self, batch: Iterable[bytes]) -> list[ModelEvent]:
        for _, event in self._read_events(batch, decode_exact, decode_tolerant):
            # The common case, growth of a block, takes the short way.
            if event.type == "content_block_delta":
                if event.delta is not None:
                    self._grow(event.index, event.delta)
            else:
                self._read(event)
        return self._runs.take()

    def finish(self) -> list[ModelEvent]:
        if self._failed:
            return []
        if self._head is None:
            self._start(MessageHead())
        self._close_block()
        runs = self._runs
        for leaked in runs.end_leaks(take_calls=not self._calls):
            own = "" if leaked.tool_use_id in self._taken else leaked.tool_use_id
            self._open_call(own, leaked.name)
            runs.add(self._calls - 1, leaked.arguments)
        if self._usage is not None:
            for_an_hour = written_for_an_hour(self._usage)
            runs.put(usage_event(usage_of(self._usage), self._price, for_an_hour=for_an_hour))
        return self._put_end(has_calls=self._calls > 0, has_nameless_call=self._has_nameless_call)

    def _read(self, event: AnthropicEvent) -> None:
        """Read any event but a block's growth."""
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
                    self._fail(event.error or {"message": event.message})

    def _start(self, head: MessageHead) -> None:
        if self._head is None:
            self._begin_with(head)
        elif head.id == self._head.id:
            self._head_came_twice = True
        else:
            self._restart(head)

    def _restart(self, head: MessageHead) -> None:
        self._drop_attempt()
        self._begin_with(head)

    def _begin_with(self, head: MessageHead) -> None:
        self._begin()
        self._head, self._usage = head, head.usage
        self._put_start(head.id, head.model)

    def _read_whole(self, event: AnthropicEvent) -> None:
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
            # The repeated head was no mistake: its blocks are repeated, too.
            self._restart(self._head)
        self._close_block()
        kind = PASSED_OVER
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
        self._open_index = index

    def _open_call(self, tool_use_id: str, name: str) -> None:
        number = self._calls
        self._calls += 1
        if not name:
            self._has_nameless_call = True
            return
        tool_use_id = tool_use_id or free_id("toolu_", number, self._taken)
        self._runs.put(ToolUseStarted(number, tool_use_id, name))

    def _grow(self, index: int | None, delta: AnthropicDelta) -> None:
        kind = self._kinds.get(index)
        if kind is None:
            # The start of the block is lost; its deltas still show its kind.
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
            elif delta.signature is not None and index == self._open_index:
                # One that comes after its block would sign the next one, or an empty one.
                self._signature = delta.signature
        elif kind != PASSED_OVER and delta.partial_json:
            self._whole_input = ""
            if not self._has_nameless_call:
                self._runs.add(kind, delta.partial_json)

    def _close_block(self) -> None:
        """Close the open block, if there is one; blocks never overlap."""
        self._open_index = None
        if self._signature is not None:
            self._runs.put(ThinkingSigned(self._signature))
            self._signature = None
        if self._whole_input:
            if not self._has_nameless_call:
                self._runs.add(self._calls - 1, self._whole_input)
            self._whole_input = ""

    def _reason(self) -> FinishReason:
        if self._calls and (self._has_gap or self._runs.call_is_torn):
            # A part of a call may be lost, so the call must not run.
            return "incomplete"
        if self._raw_reason is None:
            if not self._done:
                return "incomplete"
            return "tool_calls" if self._calls else "other"
        reason = _STOP_REASONS.get(self._raw_reason, "other")
        return "tool_calls" if reason in ("stop", "other") and self._calls else reason


def _json_text(value: Any) -> str:
    """Return the input that came with a call's start; "" for the placeholder {}."""
    return json.dumps(value, ensure_ascii=False) if value else ""
