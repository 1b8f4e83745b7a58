"""The ordering rules of the protocol (O1-O6, O9), checked on the log of a connection.

Independent of any fold: it looks at the frames in the order in which they came.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.terminal.client.connection import Frame

Json = dict[str, Any]

_AFTER_ITS_TURN = ("changeSet.updated",)
"""Decisions may come long after the turn that proposed."""


def breaches(frames: Iterable[Frame]) -> list[str]:
    """Every breach of a rule, with the rule's name first; empty when all is in order."""
    log = _Log()
    for frame in frames:
        if frame.direction == "in":
            log.incoming(frame.message(), frame.body)
        elif frame.direction == "out":
            log.outgoing(frame.message())
    return [*log.breaches, *log.unfinished()]


def starts_after_cancel(frames: Iterable[Frame]) -> list[str]:
    """What a session began after it had answered a cancel (O8), for sessions that never steer.

    A call that was not run any more has its result, which says so.
    """
    asked: dict[Any, str] = {}
    stopped: set[str] = set()
    begun: dict[str, str] = {}
    for frame in frames:
        message = frame.message() if frame.direction != "raw" else {}
        method, params = message.get("method"), message.get("params")
        if method == "kode/turn/cancel":
            asked[message["id"]] = params["sessionId"]
        elif method is None and message.get("result") == {"cancelled": True}:
            stopped.add(asked[message["id"]])
        elif method == "kode/event" and params["sessionId"] in stopped:
            for event in params["events"]:
                _begin(event, params["sessionId"], stopped, begun)
    return list(begun.values())


def _begin(event: Json, session_id: str, stopped: set[str], begun: dict[str, str]) -> None:
    kind, block = event["type"], event.get("block", {})
    if kind == "turn.completed":
        stopped.discard(session_id)
    elif kind == "message.added" and event["role"] == "assistant":
        begun[event["messageId"]] = f"O8: an answer of the model began in {session_id}"
    elif kind == "block.started" and block["type"] == "tool_result":
        begun[event["blockId"]] = f"O8: {block['toolUseId']} began in {session_id}"
    elif kind == "block.completed" and block.get("status") == "cancelled":
        begun.pop(event["blockId"], None)


@dataclass
class _Block:
    turn_id: str
    kind: str
    text: list[str] = field(default_factory=list[str])
    length: int = 0
    open: bool = True


@dataclass
class _Log:
    breaches: list[str] = field(default_factory=list[str])
    seqs: dict[str, int] = field(default_factory=dict[str, int])
    asked: dict[Any, str] = field(default_factory=dict[Any, str])
    answered: set[Any] = field(default_factory=set[Any])
    said: list[bytes] = field(default_factory=list[bytes])
    blocks: dict[str, _Block] = field(default_factory=dict[str, _Block])
    turns: dict[str, str] = field(default_factory=dict[str, str])
    questions: dict[str, str] = field(default_factory=dict[str, str])
    proposed: set[str] = field(default_factory=set[str])

    def outgoing(self, message: Json) -> None:
        if "method" in message and "id" in message:
            self.asked[message["id"]] = message["method"]

    def incoming(self, message: Json, body: bytes) -> None:
        method = message.get("method")
        if method is None:
            self._response(message)
        elif method == "kode/event":
            for event in message["params"]["events"]:
                self._event(message["params"]["sessionId"], event)
        elif method == "kode/delta":
            for delta in message["params"]["deltas"]:
                self._delta(delta)
        elif method == "workspace/applyEdit":
            self._edit(message["params"]["edit"])
        self.said.append(body)

    def unfinished(self) -> Iterable[str]:
        for block_id, block in self.blocks.items():
            if block.open and self.turns.get(block.turn_id) == "completed":
                yield f"O4: block {block_id} of a completed turn was never closed"
        for request_id, turn_id in self.questions.items():
            if turn_id != "resolved" and self.turns.get(turn_id) == "completed":
                yield f"O5: question {request_id} of a completed turn was never resolved"

    def _breach(self, text: str) -> None:
        self.breaches.append(text)

    def _response(self, message: Json) -> None:
        request_id = message["id"]
        if request_id is None:
            return
        if request_id not in self.asked or request_id in self.answered:
            self._breach(f"O9: a second or unasked answer to {request_id}")
        self.answered.add(request_id)
        result = message.get("result")
        if not isinstance(result, dict) or result.get("deduplicated"):
            return
        method = self.asked.get(request_id)
        created = {"kode/session/new": ("sessionId",), "kode/turn/start": ("turnId", "messageId")}
        for name in created.get(method or "", ()):
            made = result[name].encode()
            if any(made in body for body in self.said):
                self._breach(f"O1: {name} {result[name]} was named before the answer to {method}")
        if method == "kode/session/new":
            self.seqs.setdefault(result["sessionId"], result["seq"])

    def _event(self, session_id: str, event: Json) -> None:
        kind, turn_id = event["type"], event.get("turnId", "")
        if session_id not in self.seqs:
            self._breach(f"O1: {kind} of session {session_id} before it was made")
        if "seq" in event:
            if event["seq"] != self.seqs.get(session_id, 0) + 1:
                self._breach(f"O3: seq {event['seq']} after {self.seqs.get(session_id)}")
            self.seqs[session_id] = event["seq"]
        self._turn(kind, turn_id, event)
        if kind.startswith("block."):
            self._block(kind, turn_id, event)
        elif kind == "changeSet.updated":
            self.proposed |= {file["uri"] for file in event.get("files", ())}
        elif kind == "permission.requested":
            if event["requestId"] in self.questions:
                self._breach(f"O5: question {event['requestId']} was asked twice")
            self.questions[event["requestId"]] = turn_id
        elif kind == "permission.resolved":
            if self.questions.get(event["requestId"], "resolved") == "resolved":
                self._breach(f"O5: question {event['requestId']} resolved out of turn")
            self.questions[event["requestId"]] = "resolved"

    def _turn(self, kind: str, turn_id: str, event: Json) -> None:
        if not turn_id:
            return
        state = self.turns.get(turn_id)
        if kind == "turn.started":
            if state is not None:
                self._breach(f"O2: turn {turn_id} started twice")
            self.turns[turn_id] = "running"
        elif state is None:
            self._breach(f"O2: {kind} before turn {turn_id} started")
        elif state == "completed" and kind not in _AFTER_ITS_TURN:
            self._breach(f"O2: {kind} after the end of turn {turn_id}")
        if kind == "turn.completed":
            self.turns[turn_id] = "completed"

    def _block(self, kind: str, turn_id: str, event: Json) -> None:
        block_id = event["blockId"]
        block = self.blocks.get(block_id)
        if kind == "block.started":
            if block is not None:
                self._breach(f"O4: block {block_id} started twice")
            self.blocks[block_id] = _Block(turn_id, event["block"]["type"])
            return
        if block is None or not block.open:
            self._breach(f"O4: {kind} of {block_id}, which is not open")
            return
        block.open = False
        if kind == "block.completed" and block.text and block.kind in ("text", "thinking"):
            whole = event["block"]["text"]
            if whole != "".join(block.text):
                self._breach(f"O4: block {block_id} is not what its deltas said")

    def _delta(self, delta: Json) -> None:
        block = self.blocks.get(delta["blockId"])
        if block is None or not block.open:
            self._breach(f"O4: a delta of {delta['blockId']}, which is not open")
            return
        if delta["at"] != block.length:
            self._breach(f"O4: a delta at {delta['at']} of {delta['blockId']}, not {block.length}")
        block.text.append(delta["add"])
        block.length += len(delta["add"])

    def _edit(self, edit: Json) -> None:
        changes = edit.get("documentChanges") or []
        uris = {*edit.get("changes", {}), *(change["textDocument"]["uri"] for change in changes)}
        for uri in uris - self.proposed:
            self._breach(f"O6: an edit of {uri} that was never proposed")
