"""`serve --grease`: puts in what a client must ignore, so that its tests show whether it does.

A newer server has members, events and block types that a client does not know; events and deltas
may come twice, and deltas overlap or come late. All of it is added in fixed turns, without chance.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from kode_sidecar.devtools.recording.lanes import as_object, read_frame

Json = dict[str, Any]
GREASE = {"grease": {"of": "a newer server"}}
"""The member that is added."""

_EVERY = 3


class Grease:
    """Feed it what is to be said; `said` gives what is said instead."""

    def __init__(self) -> None:
        self._count = 0
        self._first: dict[object, Json] = {}
        self._last: dict[object, Json] = {}
        self._started: dict[object, Json] = {}
        self._asked = False

    def said(self, body: bytes) -> tuple[bytes, ...]:
        """Return the frames to send for one; never fewer, and the first of its kind is itself."""
        frame = read_frame(body)
        if not frame:
            return (body,)
        return tuple(
            json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            for one in self._frames(frame)
        )

    def _frames(self, frame: Json) -> Iterator[Json]:
        self._count += 1
        method, params = frame.get("method"), as_object(frame.get("params"))
        if method == "kode/delta":
            yield from self._deltas(params["deltas"])
        elif method == "kode/event":
            yield from self._events(frame, params)
        elif method is None and isinstance(frame.get("result"), dict):
            yield {**frame, "result": {**cast(Json, frame["result"]), **GREASE}}
        elif str(method).startswith("kode/"):
            yield {**frame, "params": {**params, **GREASE}}
        else:
            yield frame

    def _deltas(self, deltas: list[Json]) -> Iterator[Json]:
        reported = _delta([{**delta, **GREASE} for delta in deltas])
        yield {**reported, "params": {**reported["params"], **GREASE}}
        for delta in deltas:
            if delta["blockId"] in self._last and delta["blockId"] in self._started:
                yield self._started.pop(delta["blockId"])  # sent again, and late
            before = self._last.get(delta["blockId"], delta)
            first = self._first.setdefault(delta["blockId"], delta)
            if self._count % _EVERY == 0:
                yield _delta([delta])
                yield _delta([first])
            elif self._count % _EVERY == 1 and before["at"] + len(before["add"]) == delta["at"]:
                yield _delta([{**before, "add": before["add"] + delta["add"]}])
            self._last[delta["blockId"]] = delta

    def _events(self, frame: Json, params: Json) -> Iterator[Json]:
        events = [{**event, **GREASE} for event in params["events"]]
        yield {**frame, "params": {**params, **GREASE, "events": events}}
        if all(event.get("seq") for event in events):
            yield {**frame, "params": {**params, "events": events}}  # sent again
        session_id = params["sessionId"]
        for event in params["events"]:
            kind = event.get("type")
            if kind == "block.started" and len(events) == 1 and event.get("seq"):
                self._started[event["blockId"]] = frame
            if kind == "turn.started":
                yield _event(session_id, {"type": "grease.happened", "turnId": event["turnId"]})
                yield {"jsonrpc": "2.0", "method": "kode/greased", "params": GREASE}
                yield from self._question()
            elif kind == "message.added" and event.get("role") == "assistant":
                yield from _block(session_id, event["messageId"], f"grease-{self._count}")
            elif kind == "block.completed" and event.get("blockId") in self._last:
                yield _delta([self._last.pop(event["blockId"])])

    def _question(self) -> Iterator[Json]:
        """Ask once what nobody knows."""
        if not self._asked:
            self._asked = True
            yield {"jsonrpc": "2.0", "id": "grease-1", "method": "kode/grease", "params": GREASE}


def _delta(deltas: list[Json]) -> Json:
    unknown = {"blockId": "grease", "at": 0, "add": "of no block"}
    return {"jsonrpc": "2.0", "method": "kode/delta", "params": {"deltas": [unknown, *deltas]}}


def _event(session_id: object, event: Json) -> Json:
    params = {"sessionId": session_id, "events": [event]}
    return {"jsonrpc": "2.0", "method": "kode/event", "params": params}


def _block(session_id: object, message_id: str, block_id: str) -> Iterator[Json]:
    """Yield a block of a type that nobody knows, from its start to its end."""
    block = {"type": "grease", "id": block_id, "of": "a newer server"}
    place = {"messageId": message_id, "blockId": block_id, "block": block}
    yield _event(session_id, {"type": "block.started", **place})
    yield _delta([{"blockId": block_id, "at": 0, "add": "unknown"}])
    yield _event(session_id, {"type": "block.completed", **place})
