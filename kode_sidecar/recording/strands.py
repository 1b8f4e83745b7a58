"""What a process says, taken apart into strands: order matters within each one, not between them.

Parallel tools, scouts and answers race each other from run to run. Everything of a session's own
course is one strand; what may overtake it has a strand of its own. Sans-IO.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

# Their answers have a fixed place among the events of the session: it is held while they save.
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
# About one tool call, whoever calls beside it.
_OF_A_CALL = frozenset({"tool.progress", "block.started", "block.completed"})


class Part(NamedTuple):
    """One thing said. `grown` counts characters of a delta; everything else counts as one."""

    strand: str
    message: Json
    grown: int = 0


class Strands:
    """Sorts frames; it must see those of the client, too, to know what an answer answers."""

    def __init__(self) -> None:
        self._asked: dict[object, Json] = {}

    def heard(self, body: bytes) -> None:
        """A frame of the client."""
        frame = read_frame(body)
        if "method" in frame and "id" in frame:
            self._asked[frame["id"]] = frame

    def said(self, body: bytes) -> Iterator[Part]:
        """The parts of a frame of the server, but for what only the time of day brings about."""
        frame = read_frame(body)
        method, params = frame.get("method"), as_object(frame.get("params"))
        if method is None:
            yield Part(self._strand_of_answer(frame.get("id")), frame)
        elif method == "kode/event":
            session_id = params.get("sessionId")
            for event in params.get("events", ()):
                if not is_by_play(event):
                    yield Part(_strand_of_event(session_id, event), event)
        elif method == "kode/delta":
            for delta in params.get("deltas", ()):
                yield Part(f"block {delta['blockId']}", delta, len(delta["add"]))
        elif method == "$/progress" or method == "window/workDoneProgress/create":
            if as_object(params.get("value")).get("kind") != "report":
                yield Part(f"progress {params.get('token')}", frame)
        else:
            yield Part(f"{method}", frame)

    def method_of(self, request_id: object) -> str:
        """What the client asked with this id."""
        return str(as_object(self._asked.get(request_id)).get("method", ""))

    def _strand_of_answer(self, request_id: object) -> str:
        method = self.method_of(request_id)
        if method in _IN_ORDER:
            params = as_object(self._asked[request_id].get("params"))
            if "sessionId" in params:
                return f"session {params['sessionId']}"
        return f"answer to {request_id!r} ({method})"


def is_by_play(event: Mapping[str, Any]) -> bool:
    """Told because time passes: that the model is silent."""
    return event.get("type") == "model.waiting" and event.get("state") == "silent"


def _strand_of_event(session_id: object, event: Json) -> str:
    kind = event.get("type")
    if kind == "scout.updated":
        return f"scout {event.get('scoutId')}"
    if kind in _OF_A_CALL:
        block = as_object(event.get("block"))
        call = event.get("toolUseId")
        if block.get("type") == "tool_result":
            call = block.get("toolUseId")
        if call is not None:
            return f"call {call} of {event.get('messageId')}"
    return f"session {session_id}"


def read_frame(body: bytes) -> Json:
    """The message; an empty one for what is none."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        return {}


def as_object(value: object) -> Json:
    """A JSON object, or an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}
