"""The stream folded into what an editor shows: `kode/event` and `kode/delta` of one session.

Pure: no IO, no clock. It works on decoded JSON so that unknown events and blocks, which a
client must ignore, pass through. Editor clients can port it line by line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.terminal.client.session_view import (
    BlockView,
    ChangeSetView,
    FileView,
    HunkView,
    Json,
    MessageView,
    ScoutView,
    TurnView,
)

_PASSING = ("tool.progress", "model.waiting", "changeSet.forming")


def _is_told_again(event: Mapping[str, Any]) -> bool:
    """Return whether an event without a number gets one once the disk can be written again."""
    return event["type"] not in _PASSING and event.get("state") not in ("running", "within")


@dataclass
class SessionFold:
    """All of a session. Feed `event` and `delta`; read the fields.

    `seq` is the last stored event seen; an event at or below it is a repetition and changes
    nothing. `gaps` lists `(first, last)` of what is missing. `anomalies` names every breach of
    the ordering rules: tests hold it empty.
    """

    session_id: str
    seq: int = 0
    title: str | None = None
    head_id: str | None = None
    usage: Json = field(default_factory=dict[str, Any])
    messages: dict[str, MessageView] = field(default_factory=dict[str, MessageView])
    blocks: dict[str, BlockView] = field(default_factory=dict[str, BlockView])
    turns: dict[str, TurnView] = field(default_factory=dict[str, TurnView])
    scouts: dict[str, ScoutView] = field(default_factory=dict[str, ScoutView])
    change_sets: dict[str, ChangeSetView] = field(default_factory=dict[str, ChangeSetView])
    questions: dict[str, Json] = field(default_factory=dict[str, Json])
    notices: list[Json] = field(default_factory=list[Json])
    gaps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    anomalies: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._resolved: set[str] = set()
        self._ended: set[str] = set()
        self._unsaved: list[Json] = []

    @property
    def active_turn(self) -> TurnView | None:
        """The turn that runs."""
        return next((turn for turn in self.turns.values() if turn.stop_reason is None), None)

    def tool_use(self, tool_use_id: str) -> Json:
        """The newest call with that id, empty without one: ids repeat over a model's answers."""
        for message in reversed(self.messages.values()):
            for block in message.blocks:
                if block.type == "tool_use" and block.block.get("toolUseId") == tool_use_id:
                    return block.block
        return {}

    def event(self, event: Mapping[str, Any]) -> bool:
        """Fold one event; False when it was told before."""
        seq = event.get("seq")
        if seq is not None:
            if seq <= self.seq:
                return False
            if seq > self.seq + 1:
                self.gaps.append((self.seq + 1, seq - 1))
                self.anomalies.append(f"O3: events {self.seq + 1} to {seq - 1} are missing")
            self.seq = seq
            if self._told_unsaved(event):
                return False
        elif _is_told_again(event):
            self._unsaved.append(dict(event))
        self._check_turn(event)
        self._fold(event)
        return True

    def delta(self, delta: Mapping[str, Any]) -> str:
        """Fold one delta; returns the text it really added.

        A block of another session, and one that is not open, is left alone.
        """
        block = self.blocks.get(delta["blockId"])
        if block is None:
            return ""
        if block.state == "completed":
            self.anomalies.append(f"O4: delta after the end of block {block.id}")
            return ""
        return block.grow(delta["at"], delta["add"])

    def _told_unsaved(self, event: Mapping[str, Any]) -> bool:
        """Was it told without a number when the disk refused it?

        All of those are told again, in order, before anything new; what stands before one of
        them, or before a new event, is never stored.
        """
        told, self._unsaved = self._unsaved, []
        for index, early in enumerate(told):
            if _same(early, event):
                self._unsaved = told[index + 1 :]
                return True
        return False

    def _fold(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "turn.started":
                self.turns[event["turnId"]] = TurnView(event["turnId"])
            case "turn.completed":
                self._turn_completed(event)
            case "message.added":
                self._message_added(event)
            case "message.completed":
                self._message_completed(event)
            case "block.started":
                self._block_started(event)
            case "block.completed":
                self._block_completed(event)
            case "block.dropped":
                self._block_dropped(event)
            case "tool.progress":
                self._tool_progress(event)
            case "changeSet.updated":
                self._change_set_updated(event)
            case "permission.requested":
                self.questions[event["requestId"]] = dict(event)
            case "permission.resolved":
                self._permission_resolved(event)
            case _:
                self._fold_session(event)

    def _fold_session(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "session.updated":
                self.title = event.get("title", self.title)
                self.head_id = event.get("headId", self.head_id)
            case "usage.updated":
                self.usage = dict(event)
            case "scout.updated":
                self._scout_updated(event)
            case "notice":
                self.notices.append(dict(event))
            case _:
                pass  # a newer server: unknown events are ignored

    def _check_turn(self, event: Mapping[str, Any]) -> None:
        turn = self.turns.get(event.get("turnId", ""))
        # Decisions on a change set may come long after the turn that proposed it.
        if turn is None or turn.stop_reason is None or event["type"] == "changeSet.updated":
            return
        self.anomalies.append(f"O2: {event['type']} after the end of turn {turn.id}")

    def _turn_completed(self, event: Mapping[str, Any]) -> None:
        turn = self.turns.setdefault(event["turnId"], TurnView(event["turnId"]))
        turn.stop_reason = event["stopReason"]
        turn.result = dict(event)
        still_open = [block.id for block in self.blocks.values() if block.state == "open"]
        if still_open:
            self.anomalies.append(f"O4: the turn ended with open blocks {still_open}")

    def _message_added(self, event: Mapping[str, Any]) -> None:
        message_id = event["messageId"]
        if message_id in self.messages:
            self.anomalies.append(f"message {message_id} was added twice")
            return
        self.messages[message_id] = MessageView(
            message_id, event["role"], event.get("parentId"), dict(event)
        )

    def _message_completed(self, event: Mapping[str, Any]) -> None:
        message = self._message(event)
        message.completed = True
        message.info.update(event)

    def _message(self, event: Mapping[str, Any]) -> MessageView:
        message_id = event.get("messageId", "")
        message = self.messages.get(message_id)
        if message is None:
            self.anomalies.append(f"{event['type']} names message {message_id} before it came")
            message = self.messages[message_id] = MessageView(message_id, "")
        return message

    def _block_started(self, event: Mapping[str, Any]) -> BlockView:
        block_id, block = event["blockId"], dict(event["block"])
        if block_id in self.blocks or block_id in self._ended:
            self.anomalies.append(f"O4: block {block_id} started twice")
        view = BlockView(block_id, block["type"], block)
        self.blocks[block_id] = view
        self._message(event).blocks.append(view)
        return view

    def _block_completed(self, event: Mapping[str, Any]) -> None:
        block_id = event["blockId"]
        view = self.blocks.get(block_id)
        if view is None:
            self.anomalies.append(f"O4: block {block_id} completed without a start")
            view = self._block_started(event)
        elif view.state == "completed":
            self.anomalies.append(f"O4: block {block_id} completed twice")
        view.complete(dict(event["block"]))

    def _block_dropped(self, event: Mapping[str, Any]) -> None:
        block_id = event["blockId"]
        view = self.blocks.pop(block_id, None)
        if view is None or view.state == "completed":
            self.anomalies.append(f"O4: block {block_id} dropped but not open")
        if view is not None:
            blocks = self._message(event).blocks
            blocks[:] = [block for block in blocks if block is not view]
        self._ended.add(block_id)

    def _tool_progress(self, event: Mapping[str, Any]) -> None:
        for block in self.blocks.values():
            if (
                block.type == "tool_result"
                and block.state == "open"
                and block.block.get("toolUseId") == event["toolUseId"]
            ):
                block.progress = event.get("message", "")

    def _change_set_updated(self, event: Mapping[str, Any]) -> None:
        change_set_id = event["changeSetId"]
        change_set = self.change_sets.setdefault(
            change_set_id, ChangeSetView(change_set_id, event["state"])
        )
        change_set.state = event["state"]
        for sent in event.get("files", ()):
            file = change_set.files.setdefault(sent["uri"], FileView(sent["uri"], sent["path"]))
            file.version = sent.get("version", file.version)
            for hunk in sent.get("hunks", ()):
                self._hunk(file, hunk)

    def _hunk(self, file: FileView, sent: Mapping[str, Any]) -> None:
        hunk = file.hunks.get(sent["hunkId"])
        if hunk is None:
            if "kind" not in sent:
                self.anomalies.append(f"hunk {sent['hunkId']} was never sent whole")
            file.hunks[sent["hunkId"]] = HunkView(sent["hunkId"], sent["state"], dict(sent))
            return
        hunk.state = sent["state"]
        hunk.info.update(sent)

    def _scout_updated(self, event: Mapping[str, Any]) -> None:
        scout_id = event["scoutId"]
        known = self.scouts.get(scout_id)
        if known is not None and known.state not in ("running", "reporting"):
            self.anomalies.append(f"scout {scout_id} is told of after its end")
        self.scouts[scout_id] = ScoutView(
            scout_id,
            event["title"],
            event["toolUseId"],
            event["state"],
            event.get("toolCalls", 0),
            event.get("elapsedMs", 0),
        )

    def _permission_resolved(self, event: Mapping[str, Any]) -> None:
        request_id = event["requestId"]
        if request_id in self._resolved:
            self.anomalies.append(f"O5: question {request_id} resolved twice")
        self._resolved.add(request_id)
        self.questions.pop(request_id, None)


def attached(
    session_id: str, result: Mapping[str, Any], fold: SessionFold | None = None
) -> SessionFold:
    """Return the answer of `kode/session/attach` as a fold.

    A snapshot makes a new one, a replay leads `fold` on to where the stream goes on.
    """
    if result["mode"] == "replay":
        fold = fold or SessionFold(session_id)
        for event in result.get("events", ()):
            fold.event(event)
    else:
        fold = _snapshot(session_id, result)
    for block in result.get("openBlocks", ()):
        view = fold.blocks.get(block["blockId"])
        if view is not None and view.state == "open":
            view.text, view.lost = block["text"], False
    return fold


def _snapshot(session_id: str, result: Mapping[str, Any]) -> SessionFold:
    fold = SessionFold(session_id, result["seq"])
    fold.title = result["session"]["title"]
    fold.head_id = result.get("headId")
    fold.usage = {name: result[name] for name in ("usage", "cost", "costUsd") if name in result}
    _add_messages(fold, result.get("messages", ()))
    grows = [block["blockId"] for block in result.get("openBlocks", ())]
    _add_messages(fold, result.get("openMessages", ()), completed=False, grows=grows)
    turn_id = result.get("activeTurnId")
    if turn_id is not None:
        fold.turns[turn_id] = TurnView(turn_id)
    for question in result.get("pending", ()):
        if question["type"] == "permission.requested":
            fold.questions[question["requestId"]] = dict(question)
    for change_set in result.get("changeSets", ()):
        fold.change_sets[change_set["changeSetId"]] = _change_set(change_set)
    return fold


def _add_messages(
    fold: SessionFold,
    messages: Iterable[Json],
    *,
    completed: bool = True,
    grows: Iterable[str] = (),
) -> None:
    for message in messages:
        view = MessageView(
            message["id"], message["role"], message.get("parentId"), dict(message), [], completed
        )
        fold.messages[view.id] = view
        for block in message.get("content", ()):
            shown = BlockView(block.get("id", ""), block["type"], dict(block))
            if shown.id not in grows:
                shown.complete(dict(block))
            view.blocks.append(shown)
            fold.blocks[shown.id] = shown


def _change_set(sent: Json) -> ChangeSetView:
    view = ChangeSetView(sent["changeSetId"], sent["state"])
    for file in sent.get("files", ()):
        hunks = {
            hunk["hunkId"]: HunkView(hunk["hunkId"], hunk["state"], dict(hunk))
            for hunk in file.get("hunks", ())
        }
        view.files[file["uri"]] = FileView(file["uri"], file["path"], file.get("version"), hunks)
    return view


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """But for the number and the time."""
    return _bare(one) == _bare(other)


def _bare(event: Mapping[str, Any]) -> Json:
    return {name: value for name, value in event.items() if name not in ("seq", "ts")}
