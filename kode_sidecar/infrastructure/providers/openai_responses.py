"""Decodes the stream of OpenAI's Responses API into model events. Sans-IO.

An answer is a list of items: reasoning, messages, calls. An item is identified by its index in the
list, because gateways give it a new id with every event; its closing event is authoritative.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kode_sidecar.core.domain.model_event import (
    FinishReason,
    ModelEvent,
    TextMarked,
    ThinkingSigned,
)
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.infrastructure.providers.answer_events import TEXT, THINKING
from kode_sidecar.infrastructure.providers.event_decoder import PASSED_OVER, EventDecoder
from kode_sidecar.infrastructure.providers.openai_wire import ToolCallDelta, ToolFunction
from kode_sidecar.infrastructure.providers.profiles import usage_event
from kode_sidecar.infrastructure.providers.responses_wire import (
    Item,
    ResponsesEvent,
    ResponsesReply,
    decode_exact,
    decode_tolerant,
    fields_of,
    parts_text,
    text_of,
    usage_of,
    whole_reply,
)
from kode_sidecar.infrastructure.providers.tool_call_assembly import ToolCallAssembly

REASONING_ITEM = "reasoning_item"
"""The name in a thinking block's `opaque` of the item that its host wants back."""
PHASE = "phase"
"""The field that marks a message as interim or final: newer models want it back unchanged."""
_CALL = 0
_KINDS = {"message": TEXT, "reasoning": THINKING, "function_call": _CALL}
_KIND_OF_DELTA = {
    "response.output_text.delta": TEXT,
    "response.refusal.delta": TEXT,
    "response.reasoning_summary_text.delta": THINKING,
    "response.reasoning_text.delta": THINKING,
    "response.function_call_arguments.delta": _CALL,
}
_LAST_EVENTS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
# Hosts close an answer with `response.completed` whose status says something else.
_ENDS_OTHERWISE = ("incomplete", "failed", "cancelled")
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
# The fields of a reasoning item that its host reads again.
_KEPT = ("type", "id", "summary", "content", "encrypted_content")


class _Slot(Struct):
    """An item of the answer. `number` is our own index, `said` its text so far.

    `part` is the part of a summary that grows; `is_named`: a call has its id and name.
    """

    number: int
    kind: int
    said: list[str] = []
    part: int | None = None
    is_named: bool = False
    is_closed: bool = False


class ResponsesDecoder(EventDecoder):
    """Decodes one answer. Its last event says how it ended; `_last` is the reply in that event."""

    def _begin(self) -> None:
        super()._begin()
        self._head: ResponsesReply | None = None
        self._last: ResponsesReply | None = None
        self._calls = ToolCallAssembly(self._taken)
        self._head_came_twice = False
        self._slots: list[_Slot] = []
        self._at_index: dict[int, _Slot] = {}
        self._at_id: dict[str | int, _Slot] = {}

    def feed_many(self, batch: Iterable[bytes]) -> list[ModelEvent]:
        for data, event in self._read_events(batch, decode_exact, decode_tolerant):
            kind = _KIND_OF_DELTA.get(event.type)
            if kind is None:
                self._read(event, data)
            elif isinstance(event.delta, str):
                self._grow(self._slot(event, kind), event.delta, event.summary_index)
        return self._runs.take()

    def finish(self) -> list[ModelEvent]:
        if self._failed:
            return []
        if self._head is None:
            self._start(ResponsesReply())
        runs, calls, last = self._runs, self._calls, self._last
        for leaked in runs.end_leaks(take_calls=not calls.count):
            self._put_all(calls.add_complete(*leaked))
        self._put_all(calls.finish())
        if last is not None and last.usage is not None:
            runs.put(usage_event(usage_of(last.usage), self._price))
        return self._put_end(has_calls=calls.count > 0, has_nameless_call=calls.has_nameless_call())

    def _read(self, event: ResponsesEvent, data: bytes) -> None:
        """Read any event but an item's growth."""
        item = fields_of(event.item)
        reply = event.response or ResponsesReply()
        match event.type:
            case "response.created" | "response.in_progress" | "response.queued":
                self._announce(reply, is_first=event.type == "response.created")
            case "response.output_item.added":
                self._open(event, item)
            case "response.output_item.done":
                self._close(self._slot(event, _KINDS.get(text_of(item, "type"))), item)
            case "response.function_call_arguments.done":
                slot = self._slot(event, _CALL)
                if isinstance(event.arguments, str):
                    self._check_arguments(slot, event.arguments)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end(reply, _LAST_EVENTS[event.type])
            case "" if event.object == "response":
                reply = whole_reply(data)
                self._end(reply, reply.status or "completed")
            case _:
                if event.type == "error" or event.error or (not event.type and event.message):
                    self._fail(event.error or {"code": event.code, "message": event.message})

    def _announce(self, head: ResponsesReply, *, is_first: bool) -> None:
        """Begin the answer, or another one if a gateway repeated the request."""
        if self._head is None:
            self._start(head)
        elif is_first and head.id == self._head.id:
            self._head_came_twice = True
        elif is_first:
            self._restart(head)

    def _start(self, head: ResponsesReply) -> None:
        self._begin()
        self._head = head
        self._put_start(head.id, head.model)

    def _restart(self, head: ResponsesReply) -> None:
        self._drop_attempt()
        self._start(head)

    def _end(self, reply: ResponsesReply, status: str) -> None:
        """Read the last event: how the answer ended, and all of its items again."""
        if status == "completed" and reply.status in _ENDS_OTHERWISE:
            status = reply.status
        if status == "failed":
            self._fail(reply.error or {"message": "no reason was given"})
            return
        if self._head is None:
            self._start(reply)
        output = reply.output or ()
        if len(output) > len(self._slots):
            self._read_unreported(output)
        elif output and self._slots and self._slots[-1].kind == TEXT:
            self._say_rest(self._slots[-1], fields_of(output[-1]))
        reply.status = status
        self._last, self._done, self._raw_reason = reply, True, _raw_reason(reply)

    def _read_unreported(self, output: Iterable[Any]) -> None:
        """Read the items that had no event of their own."""
        for index, item in enumerate(map(fields_of, output)):
            if index not in self._at_index and item.get("id") not in self._at_id:
                kind = _KINDS.get(text_of(item, "type"))
                self._close(self._new_slot(index, item.get("id"), kind), item)

    def _open(self, event: ResponsesEvent, item: Item) -> None:
        if self._head_came_twice and event.output_index in self._at_index:
            # The repeated head was no mistake: its items are repeated, too.
            self._restart(self._head or ResponsesReply())
        kind = _KINDS.get(text_of(item, "type"))
        slot = self._new_slot(event.output_index, item.get("id"), kind)
        if slot.kind == _CALL:
            self._grow_call(slot, item, text_of(item, "arguments"))

    def _new_slot(self, index: int | None, item_id: object, kind: int | None) -> _Slot:
        if self._head is None:
            self._start(ResponsesReply())
        slot = _Slot(len(self._slots), PASSED_OVER if kind is None else kind)
        self._slots.append(slot)
        if index is not None:
            self._at_index[index] = slot
        if isinstance(item_id, str | int):
            self._at_id[item_id] = slot
        return slot

    def _slot(self, event: ResponsesEvent, kind: int | None) -> _Slot:
        """Return the item of an event; a new one of this kind if the item's start is lost."""
        found = None if event.item_id is None else self._at_id.get(event.item_id)
        if found is None and event.output_index is not None:
            found = self._at_index.get(event.output_index)
        elif found is None and self._slots and not self._slots[-1].is_closed:
            found = self._slots[-1]
        if found is None:
            found = self._new_slot(event.output_index, event.item_id, kind)
        return found

    def _grow(self, slot: _Slot, text: str, part: int | None) -> None:
        if slot.kind == _CALL:
            self._grow_call(slot, {}, text)
        elif slot.kind != PASSED_OVER:
            before = self._slots[slot.number - 1] if slot.number else None
            follows = before is not None and before.kind == slot.kind and before.said
            if (slot.part != part) if slot.said else follows:
                text = f"\n\n{text}"
            slot.part = part
            slot.said.append(text)
            self._runs.add(slot.kind, text)

    def _grow_call(self, slot: _Slot, item: Item, arguments: str) -> None:
        name, call_id = text_of(item, "name") or None, text_of(item, "call_id") or None
        if slot.is_named:
            # Some hosts give a complete call another id; the first one was already sent on.
            name = call_id = None
        slot.is_named = slot.is_named or (name is not None and call_id is not None)
        if arguments:
            slot.said.append(arguments)
        fragment = ToolCallDelta(slot.number, call_id, ToolFunction(name, arguments))
        self._put_all(self._calls.feed((fragment,)))

    def _close(self, slot: _Slot, item: Item) -> None:
        """Close an item; its final content counts if no deltas came before."""
        if slot.is_closed:
            return
        slot.is_closed = True
        if slot.kind == _CALL:
            self._grow_call(slot, item, "")
            if "arguments" in item:
                self._check_arguments(slot, text_of(item, "arguments"))
        elif slot.kind == TEXT:
            self._say_rest(slot, item)
            if phase := text_of(item, PHASE):
                self._runs.put(TextMarked({PHASE: phase}))
        elif slot.kind == THINKING:
            self._close_reasoning(slot, item)

    def _say_rest(self, slot: _Slot, item: Item) -> None:
        """Add what the whole text of an item says beyond its deltas."""
        whole, grown = parts_text(item.get("content")), "".join(slot.said).removeprefix("\n\n")
        if not slot.said:
            self._grow(slot, whole, None)
        elif len(whole) > len(grown) and whole.startswith(grown):
            slot.said.append(whole[len(grown) :])
            self._runs.add(TEXT, whole[len(grown) :])

    def _close_reasoning(self, slot: _Slot, item: Item) -> None:
        if not slot.said:
            reported = parts_text(item.get("summary"), "\n\n") or parts_text(item.get("content"))
            if reported:
                self._grow(slot, reported, None)
        if item.get("encrypted_content") or item.get("content"):
            kept = {name: item[name] for name in _KEPT if item.get(name) is not None}
            self._runs.put(ThinkingSigned(None, opaque={REASONING_ITEM: kept}))

    def _check_arguments(self, slot: _Slot, whole: str) -> None:
        """Compare the collected arguments with the complete ones: deltas may have been lost."""
        grown = "".join(slot.said)
        if not grown:
            self._grow_call(slot, {}, whole)
        elif fix_surrogates(grown) != fix_surrogates(whole):
            self._has_gap = True

    def _reason(self) -> FinishReason:
        count = self._calls.count
        if self._last is None or (count and (self._has_gap or self._runs.call_is_torn)):
            # A part of a call may be lost, so the call must not run.
            return "incomplete"
        match self._last.status:
            case "completed":
                return "tool_calls" if count else "stop"
            case "incomplete":  # whatever cut it, its calls do not run
                return _INCOMPLETE.get(self._raw_reason or "", "length" if count else "other")
            case "cancelled" | "in_progress" | "queued":
                return "incomplete"
            case _:
                return "tool_calls" if count else "other"


def _raw_reason(last: ResponsesReply) -> str:
    """Return the host's word for the end: the reason if there is one, else the status."""
    return text_of(fields_of(last.incomplete_details), "reason") or last.status or ""
