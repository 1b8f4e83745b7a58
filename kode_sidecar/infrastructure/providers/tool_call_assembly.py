"""Assembles the fragments of a stream into tool calls. Sans-IO."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct

from kode_sidecar.core.domain.message import Message, ToolUseBlock
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    OpaqueData,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.infrastructure.providers.openai_wire import ToolCallDelta


class _Call(Struct):
    """One call. `number` is our own index; its arguments wait until the call is open."""

    number: int
    wire_index: int | None
    id: str = ""
    name: str = ""
    waiting: list[str] = []
    is_open: bool = False
    opaque: dict[str, Any] = {}


class ToolCallAssembly:
    """Turns fragments into `ToolUseStarted` and `ToolUseDelta`, whatever the host leaves out.

    A fragment belongs to the call of its index, else of its id, else to the newest call. A new id
    and a name on an index in use open another call. The first id and name win. `taken` are the
    ids in the conversation, which no made-up id repeats.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._calls: list[_Call] = []
        self._taken = taken

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self._calls)

    def feed(self, fragments: Sequence[ToolCallDelta], *, whole: bool = False) -> list[ModelEvent]:
        """Return the events of one chunk's fragments. `whole`: each one is a complete call."""
        out: list[ModelEvent] = []
        for fragment in fragments:
            call = self._open_new(fragment) if whole else self._owner(fragment)
            function = fragment.function
            call.id = call.id or _id(fragment)
            if fragment.extra_content:
                call.opaque = {**call.opaque, "extra_content": fragment.extra_content}
            arguments = ""
            if function is not None:
                call.name = call.name or function.name or ""
                arguments = _json_text(function.arguments)
            self._grow(call, arguments, out)
        return out

    def finish(self) -> list[ModelEvent]:
        """Open the calls whose id never came, and return what the host wants back with each.

        A made-up id has the form that the model itself would write.
        """
        out: list[ModelEvent] = []
        for call in self._calls:
            if not call.is_open and call.name:
                call.id = call.id or free_id(f"functions.{call.name}:", call.number, self._taken)
                self._grow(call, "", out)
            if call.is_open and call.opaque:
                out.append(OpaqueData(call.opaque, call.number))
        return out

    def has_nameless_call(self) -> bool:
        """Return whether a call has no name: it can be neither run nor answered."""
        return any(not call.name for call in self._calls)

    def add_complete(self, tool_use_id: str, name: str, arguments: str) -> list[ModelEvent]:
        """Add a call that did not come in fragments; return its events."""
        number = len(self._calls)
        if tool_use_id in self._taken:
            tool_use_id = free_id(f"functions.{name}:", number, self._taken)
        call = _Call(number=number, wire_index=None, id=tool_use_id, name=name)
        self._calls.append(call)
        out: list[ModelEvent] = []
        self._grow(call, arguments, out)
        return out

    def _grow(self, call: _Call, arguments: str, out: list[ModelEvent]) -> None:
        if not call.is_open:
            if not (call.id and call.name):
                call.waiting.append(arguments)
                return
            call.is_open = True
            out.append(ToolUseStarted(call.number, call.id, call.name))
            arguments = "".join([*call.waiting, arguments])
        if arguments:
            out.append(ToolUseDelta(call.number, arguments))

    def _owner(self, fragment: ToolCallDelta) -> _Call:
        function = fragment.function
        named = function is not None and bool(function.name)
        calls = self._calls
        if fragment.index is not None:
            calls = [call for call in calls if call.wire_index == fragment.index]
        if call_id := _id(fragment):
            for call in calls:
                if call.id == call_id:
                    return call
            if not calls or (named and calls[-1].id) or fragment.index is None:
                return self._open_new(fragment)
        return calls[-1] if calls else self._open_new(fragment)

    def _open_new(self, fragment: ToolCallDelta) -> _Call:
        call = _Call(number=len(self._calls), wire_index=fragment.index)
        self._calls.append(call)
        return call


def called_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Return the ids of all calls in a conversation."""
    blocks = (block for message in messages for block in message.content)
    return frozenset(block.tool_use_id for block in blocks if isinstance(block, ToolUseBlock))


def free_id(beginning: str, number: int, taken: Collection[str]) -> str:
    """Return an id that no call of the conversation has; models count their calls through it."""
    number += len(taken)
    while f"{beginning}{number}" in taken:
        number += 1
    return f"{beginning}{number}"


def _id(fragment: ToolCallDelta) -> str:
    return "" if fragment.id is None else str(fragment.id)


def _json_text(arguments: object) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)
