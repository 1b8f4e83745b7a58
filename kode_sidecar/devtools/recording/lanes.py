"""Sorts what a process says into lanes: order matters within a lane, not between lanes.

Parallel tools, scouts and answers race each other from run to run. The events of a session are one
lane; what may overtake them has a lane of its own. Sans-IO.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

# Their answers keep their place among the events of the session, which wait while these save.
_IN_ORDER = frozenset(
    f"kode/{name}"
    for name in (
        "session/update",
        "turn/start",
        "turn/cancel",
        "turn/steer",
        "changeSet/decide",
        "changeSet/undo",
        "tree/setHead",
        "context/compact",
    )
)
# Events of one tool call: calls that run at the same time race.
_OF_A_CALL = frozenset({"tool.progress", "block.started", "block.completed"})


class Lane(NamedTuple):
    """What may not overtake each other: of one `kind`, and the same one `of` it by its id."""

    kind: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.of}" if self.of else self.kind


class LanePart(NamedTuple):
    """One thing said. `size` is the characters of a delta, 1 for everything else."""

    lane: Lane
    message: Json
    size: int = 1


def session_lane(session_id: object) -> Lane:
    """Return the lane of a session's events and of the answers in their order."""
    return Lane("session", str(session_id))


class Lanes:
    """Sorts the frames of a server; it must also see those of the client to place answers."""

    def __init__(self) -> None:
        self._asked: dict[object, Json] = {}

    def received(self, body: bytes) -> None:
        """Note a request of the client."""
        frame = read_frame(body)
        if "method" in frame and "id" in frame:
            self._asked[frame["id"]] = frame

    def said(self, body: bytes) -> Iterator[LanePart]:
        """Yield the parts of a frame of the server, without those that only passing time causes."""
        frame = read_frame(body)
        method, params = frame.get("method"), as_object(frame.get("params"))
        if method is None:
            yield LanePart(self._lane_of_answer(frame.get("id")), frame)
        elif method == "kode/event":
            session_id = params.get("sessionId")
            for event in params.get("events", ()):
                if not is_caused_by_time(event):
                    yield LanePart(_lane_of_event(session_id, event), event)
        elif method == "kode/delta":
            for delta in params.get("deltas", ()):
                yield LanePart(Lane("block", str(delta["blockId"])), delta, len(delta["add"]))
        elif method == "$/progress" or method == "window/workDoneProgress/create":
            if as_object(params.get("value")).get("kind") != "report":
                yield LanePart(Lane("progress", str(params.get("token"))), frame)
        else:
            yield LanePart(Lane(str(method)), frame)

    def method_of(self, request_id: object) -> str:
        """Return the method of the client's request with this id."""
        return str(as_object(self._asked.get(request_id)).get("method", ""))

    def params_of(self, request_id: object) -> Json:
        """Return the params of the client's request with this id."""
        return as_object(as_object(self._asked.get(request_id)).get("params"))

    def _lane_of_answer(self, request_id: object) -> Lane:
        method = self.method_of(request_id)
        if method in _IN_ORDER:
            params = self.params_of(request_id)
            if "sessionId" in params:
                return session_lane(params["sessionId"])
        return Lane("answer", f"to {request_id!r} ({method})")


def is_caused_by_time(event: Mapping[str, Any]) -> bool:
    """Return whether an event says only that the model is silent: passing time causes it."""
    return event.get("type") == "model.waiting" and event.get("state") == "silent"


def _lane_of_event(session_id: object, event: Json) -> Lane:
    kind = event.get("type")
    if kind == "scout.updated":
        return Lane("scout", str(event.get("scoutId")))
    if kind in _OF_A_CALL:
        block = as_object(event.get("block"))
        call = event.get("toolUseId")
        if block.get("type") == "tool_result":
            call = block.get("toolUseId")
        if call is not None:
            return Lane("call", f"{call} of {event.get('messageId')}")
    return session_lane(session_id)


def read_frame(body: bytes) -> Json:
    """Return the message, an empty one for what is no JSON object."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        return {}


def as_object(value: object) -> Json:
    """Return a JSON object, an empty one for any other value."""
    return cast(Json, value) if isinstance(value, dict) else {}
