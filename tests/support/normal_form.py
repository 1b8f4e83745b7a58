"""A recorded stream without what differs from run to run, so that two runs can be compared.

Deltas are folded per block, events without `seq` and all times are dropped, the results of
side-by-side tool calls stand in call order, and ids are named by order of appearance.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, cast

from kode_sidecar.terminal.client.connection import Frame
from kode_sidecar.terminal.client.fold import Json
from tests.support.session_fold import SessionFold

Notification = tuple[str, Any]
"""Method and params, as `Client.subscribe` hands them out."""

# Field -> the name its values get. The model's own toolUseIds stay as they are.
_ID_FIELDS: Mapping[str, str] = {
    "sessionId": "session",
    "turnId": "turn",
    "messageId": "message",
    "parentId": "message",
    "headId": "message",
    "blockId": "block",
    "id": "block",
    "changeSetId": "changeSet",
    "hunkId": "hunk",
    "supersededBy": "hunk",
    "requestId": "request",
}
_DROPPED = frozenset({"seq", "ts", "createdAt", "durationMs", "elapsedMs"})


def notifications(frames: Iterable[Frame]) -> Iterator[Notification]:
    """The notifications in a connection's log (`Client.frames`), in order."""
    for frame in frames:
        if frame.direction == "in":
            message = frame.message()
            if "method" in message and "id" not in message:
                yield message["method"], message.get("params")


def normal_form(
    stream: Iterable[Notification],
    session_id: str,
    replace: Mapping[str, str] | None = None,
) -> list[Json]:
    """The stored events of one session in normal form.

    A block's deltas become `streamed` on the event that ends it. `replace` maps texts that
    differ by place, such as the workspace's root URI, to names.
    """
    events = _in_call_order(_folded(stream, session_id))
    naming = _Naming(replace or {})
    for event in events:
        naming.learn(event)
    return [cast(Json, naming.clean(event)) for event in events]


def _folded(stream: Iterable[Notification], session_id: str) -> list[Json]:
    fold = SessionFold(session_id)
    events: list[Json] = []
    for method, params in stream:
        if method == "kode/delta":
            for delta in params["deltas"]:
                fold.delta(delta)
        elif method == "kode/event" and params["sessionId"] == session_id:
            for event in params["events"]:
                streamed = _streamed(fold, event)
                if fold.event(event) and "seq" in event:
                    events.append({**event, **streamed})
    return events


def _streamed(fold: SessionFold, event: Json) -> Json:
    """What the deltas of the ending block added up to."""
    if event["type"] not in ("block.completed", "block.dropped"):
        return {}
    block = fold.blocks.get(event["blockId"])
    if block is None or not (block.text or block.lost):
        return {}
    return {"streamed": None if block.lost else block.text}


def _in_call_order(events: Sequence[Json]) -> list[Json]:
    """The events with tool results of each tool message in the order of the calls."""
    ordered = list(events)
    calls: list[str] = []
    for index, event in enumerate(ordered):
        block: Json = event.get("block") or {}
        if event["type"] == "message.added" and event["role"] == "assistant":
            calls = []
        elif event["type"] == "block.completed" and block.get("type") == "tool_use":
            calls.append(block["toolUseId"])
        elif event["type"] == "message.added" and event["role"] == "tool":
            _sort_results(ordered, index, event["messageId"], calls)
    return ordered


def _sort_results(events: list[Json], start: int, message_id: str, calls: Sequence[str]) -> None:
    slots = [
        index
        for index in range(start + 1, len(events))
        if events[index].get("messageId") == message_id and "block" in events[index]
    ]

    def place(event: Json) -> int:
        tool_use_id = event["block"].get("toolUseId")
        return calls.index(tool_use_id) if tool_use_id in calls else len(calls)

    for slot, event in zip(slots, sorted((events[slot] for slot in slots), key=place), strict=True):
        events[slot] = event


class _Naming:
    """Ids get names in order of appearance; then every text that holds one is renamed."""

    def __init__(self, replace: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, count[int]] = {}
        self._replace = replace
        self._pattern: re.Pattern[str] | None = None

    def learn(self, value: Any) -> None:
        if isinstance(value, dict):
            for field, inner in cast(Json, value).items():
                kind = _ID_FIELDS.get(field)
                if kind is not None and isinstance(inner, str):
                    self._name(kind, inner)
                else:
                    self.learn(inner)
        elif isinstance(value, list):
            for inner in cast(list[Any], value):
                self.learn(inner)

    def clean(self, value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast(Json, value).items()
            return {name: self.clean(inner) for name, inner in fields if name not in _DROPPED}
        if isinstance(value, list):
            return [self.clean(inner) for inner in cast(list[Any], value)]
        return self._rename(value) if isinstance(value, str) else value

    def _name(self, kind: str, value: str) -> None:
        if value and value not in self._names:
            number = next(self._counts.setdefault(kind, count(1)))
            self._names[value] = f"{kind}-{number}"
            self._pattern = None

    def _rename(self, text: str) -> str:
        for old, new in self._replace.items():
            text = text.replace(old, new)
        if self._pattern is None and self._names:
            # Longest first: one id may begin with another.
            ids = sorted(self._names, key=len, reverse=True)
            alternatives = "|".join(map(re.escape, ids))
            self._pattern = re.compile(rf"(?<![A-Za-z0-9-])(?:{alternatives})(?![A-Za-z0-9-])")
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._names[match[0]], text)
