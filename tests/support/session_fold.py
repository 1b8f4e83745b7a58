"""The client's fold with every promise of the stream checked, and what it shows piece by piece.

`anomalies` names each breach of the ordering rules: tests hold it empty. What a breach is follows
from the events alone, so that no fault of the fold can hide one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.watch import Watch

_OF_THE_FOLD = ("messageId", "open", "grown")


@dataclass
class FoldedBlock:
    """A block as it stands now. `lost`: a delta went missing, so `text` ends too early."""

    session: ClientSession
    id: str
    lost: bool

    @property
    def block(self) -> Json:
        """The block as it came on the wire."""
        known = self.session.blocks[self.id]
        return {name: value for name, value in known.items() if name not in _OF_THE_FOLD}

    @property
    def type(self) -> str:
        return self.session.blocks[self.id]["type"]

    @property
    def state(self) -> Literal["open", "completed"]:
        return "open" if self.session.blocks[self.id]["open"] else "completed"

    @property
    def text(self) -> str:
        """What has grown so far, in the end the text."""
        known = self.session.blocks[self.id]
        return known["grown"] if known["open"] else known.get("text", "")

    @property
    def progress(self) -> str:
        """What the running tool said last."""
        call = self.session.blocks[self.id].get("toolUseId", "")
        return self.session.progress.get(call, {}).get("message", "")


@dataclass
class FoldedMessage:
    """A message with its blocks in order."""

    id: str
    role: str
    parent_id: str | None
    completed: bool
    blocks: list[FoldedBlock]

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.blocks if block.type == "text")


@dataclass
class FoldedTurn:
    """A turn; `stop_reason` is None while it runs, `result` its `turn.completed`."""

    id: str
    stop_reason: str | None = None
    result: Json = field(default_factory=dict[str, Any])


@dataclass
class FoldedScout:
    """The newest `scout.updated` of a scout."""

    id: str
    title: str
    tool_use_id: str
    state: str
    tool_calls: int
    elapsed_ms: int


@dataclass
class FoldedHunk:
    """A hunk: `info` is what the fold holds of it."""

    info: Json

    @property
    def id(self) -> str:
        return self.info["hunkId"]

    @property
    def state(self) -> str:
        return self.info["state"]


@dataclass
class FoldedFile:
    """The hunks of a file by id, in order of appearance."""

    uri: str
    path: str
    hunks: dict[str, FoldedHunk]


@dataclass
class FoldedChangeSet:
    """A change set as it stands now."""

    session: ClientSession
    id: str

    @property
    def state(self) -> str:
        return self.session.change_sets[self.id]["state"]

    @property
    def files(self) -> dict[str, FoldedFile]:
        """The files with hunks, by URI."""
        files: dict[str, FoldedFile] = {}
        for info in self.session.hunks_of(self.id):
            file = files.setdefault(info["uri"], FoldedFile(info["uri"], info["path"], {}))
            file.hunks[info["hunkId"]] = FoldedHunk(info)
        return files

    def hunks(self, state: str | None = None) -> list[FoldedHunk]:
        """Return all hunks, or those in one state."""
        return [FoldedHunk(info) for info in self.session.hunks_of(self.id, state)]


class SessionFold:
    """All of a session. Feed `event` and `delta`; read the fields.

    `gaps` lists `(first, last)` of what is missing.
    """

    def __init__(self, session_id: str, seq: int = 0) -> None:
        self.session = ClientSession(session_id, seq)
        self.session_id = session_id
        self.turns: dict[str, FoldedTurn] = {}
        self.questions: dict[str, Json] = {}
        self.gaps: list[tuple[int, int]] = []
        self.anomalies: list[str] = []
        self._blocks: dict[str, str] = {}
        self._messages: set[str] = set()
        self._hunks: set[str] = set()
        self._scouts: dict[str, str] = {}
        self._resolved: set[str] = set()
        self._lost: set[str] = set()

    # ---- what came ------------------------------------------------------------------------------

    def attach(self, reported: Json) -> None:
        """Take the answer of `kode/session/attach`: a replay, or a snapshot into a new fold."""
        for event in reported.get("events", ()):
            self.event(event)
        if reported["mode"] == "replay" and self.seq != reported["seq"]:
            self.anomalies.append(f"O3: the replay ends at {self.seq}, not at {reported['seq']}")
        self.session.attach({**reported, "events": ()})
        self._lost -= {block["blockId"] for block in reported.get("openBlocks", ())}
        if reported["mode"] == "snapshot":
            self._begin(reported)

    def _begin(self, reported: Json) -> None:
        """Go on from a snapshot."""
        states = {True: "open", False: "completed"}
        self._blocks = {key: states[block["open"]] for key, block in self.session.blocks.items()}
        self._messages, self._hunks = set(self.session.messages), set(self.session.hunks)
        if (turn_id := reported.get("activeTurnId")) is not None:
            self.turns[turn_id] = FoldedTurn(turn_id)
        asked = [one for one in reported["pending"] if one["type"] == "permission.requested"]
        self.questions = {one["requestId"]: one for one in asked}

    def event(self, event: Mapping[str, Any]) -> bool:
        """Fold one event; False when it has come before."""
        seq = event.get("seq", 0)
        if seq > self.seq + 1:
            self.gaps.append((self.seq + 1, seq - 1))
            self.anomalies.append(f"O3: events {self.seq + 1} to {seq - 1} are missing")
        if not self.session.event(dict(event)):
            return False
        self._check_turn(event)
        match event["type"]:
            case "message.added" | "message.completed" as kind:
                self._check_message(event, added=kind == "message.added")
            case "block.started" | "block.completed" | "block.dropped":
                self._check_message(event, added=False)
                self._check_block(event)
            case "changeSet.updated":
                self._check_hunks(event)
            case "permission.requested":
                self.questions[event["requestId"]] = dict(event)
            case "permission.resolved":
                self._check_question(event["requestId"])
            case "scout.updated":
                self._check_scout(event["scoutId"], event["state"])
            case _:
                pass
        return True

    def delta(self, delta: Mapping[str, Any]) -> str:
        """Fold one delta; returns the text it really added.

        A block of another session, and one that is not open, is left alone.
        """
        block_id = delta["blockId"]
        if self._blocks.get(block_id) == "completed":
            self.anomalies.append(f"O4: delta after the end of block {block_id}")
        known = self.session.blocks.get(block_id)
        if known is not None and known["open"] and delta["at"] > len(known["grown"]):
            self._lost.add(block_id)
        return self.session.delta(dict(delta))

    # ---- the promises ---------------------------------------------------------------------------

    def _check_turn(self, event: Mapping[str, Any]) -> None:
        kind, turn_id = event["type"], event.get("turnId", "")
        turn = self.turns.get(turn_id)
        # Decisions on a change set may come long after the turn that proposed it.
        if turn is not None and turn.stop_reason is not None and kind != "changeSet.updated":
            self.anomalies.append(f"O2: {kind} after the end of turn {turn_id}")
        if kind == "turn.started":
            self.turns[turn_id] = FoldedTurn(turn_id)
        elif kind == "turn.completed":
            turn = self.turns.setdefault(turn_id, FoldedTurn(turn_id))
            turn.stop_reason, turn.result = event["stopReason"], dict(event)
            still_open = [key for key, state in self._blocks.items() if state == "open"]
            if still_open:
                self.anomalies.append(f"O4: the turn ended with open blocks {still_open}")

    def _check_message(self, event: Mapping[str, Any], *, added: bool) -> None:
        message_id = event.get("messageId", "")
        if added and message_id in self._messages:
            self.anomalies.append(f"message {message_id} was added twice")
        elif not added and message_id not in self._messages:
            self.anomalies.append(f"{event['type']} names message {message_id} before it came")
        self._messages.add(message_id)

    def _check_block(self, event: Mapping[str, Any]) -> None:
        kind, block_id = event["type"], event["blockId"]
        state = self._blocks.get(block_id)
        if kind == "block.started" and state is not None:
            self.anomalies.append(f"O4: block {block_id} started twice")
        elif kind == "block.completed" and state in (None, "dropped"):
            self.anomalies.append(f"O4: block {block_id} completed without a start")
        elif kind == "block.completed" and state == "completed":
            self.anomalies.append(f"O4: block {block_id} completed twice")
        elif kind == "block.dropped" and state != "open":
            self.anomalies.append(f"O4: block {block_id} dropped but not open")
        self._blocks[block_id] = {"block.started": "open"}.get(kind, kind.removeprefix("block."))
        self._lost.discard(block_id)

    def _check_hunks(self, event: Mapping[str, Any]) -> None:
        for hunk in (hunk for file in event.get("files", ()) for hunk in file.get("hunks", ())):
            if hunk["hunkId"] not in self._hunks and "kind" not in hunk:
                self.anomalies.append(f"hunk {hunk['hunkId']} was never sent whole")
            self._hunks.add(hunk["hunkId"])

    def _check_question(self, request_id: str) -> None:
        if request_id in self._resolved:
            self.anomalies.append(f"O5: question {request_id} resolved twice")
        self._resolved.add(request_id)
        self.questions.pop(request_id, None)

    def _check_scout(self, scout_id: str, state: str) -> None:
        if self._scouts.get(scout_id, "running") not in ("running", "reporting"):
            self.anomalies.append(f"scout {scout_id} is told of after its end")
        self._scouts[scout_id] = state

    # ---- what it shows --------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """The newest stored event: one at or below it is a repetition and changes nothing."""
        return self.session.seq

    @property
    def title(self) -> str:
        return self.session.title

    @property
    def head_id(self) -> str | None:
        return self.session.head_id

    @property
    def usage(self) -> Json:
        """What the session has used, and its cost if that is known."""
        used = {"usage": self.session.usage, "cost": self.session.cost}
        return {name: value for name, value in used.items() if value}

    @property
    def notices(self) -> list[Json]:
        return self.session.notices

    @property
    def active_turn(self) -> FoldedTurn | None:
        """The turn that runs."""
        return next((turn for turn in self.turns.values() if turn.stop_reason is None), None)

    @property
    def blocks(self) -> dict[str, FoldedBlock]:
        return {block_id: self._block(block_id) for block_id in self.session.blocks}

    @property
    def messages(self) -> dict[str, FoldedMessage]:
        return {
            message_id: FoldedMessage(
                message_id,
                known.get("role", ""),
                known.get("parentId"),
                known.get("complete", False),
                [self._block(block_id) for block_id in known["blocks"]],
            )
            for message_id, known in self.session.messages.items()
        }

    @property
    def scouts(self) -> dict[str, FoldedScout]:
        return {
            key: FoldedScout(
                key,
                known["title"],
                known["toolUseId"],
                known["state"],
                known.get("toolCalls", 0),
                known.get("elapsedMs", 0),
            )
            for key, known in self.session.scouts.items()
        }

    @property
    def change_sets(self) -> dict[str, FoldedChangeSet]:
        return {key: FoldedChangeSet(self.session, key) for key in self.session.change_sets}

    def _block(self, block_id: str) -> FoldedBlock:
        return FoldedBlock(self.session, block_id, block_id in self._lost)


def attached(session_id: str, reported: Json) -> SessionFold:
    """Return the answer of `kode/session/attach` as a fold."""
    fold = SessionFold(session_id)
    fold.attach(reported)
    return fold


class CheckedWatch(Watch[SessionFold]):
    """The client's watch, in which each session checks what it is sent."""

    async def turn_end(
        self, session_id: str, turn_id: str, within: float | None = None
    ) -> FoldedTurn:
        """Wait for the end of a turn."""

        def ended() -> FoldedTurn | None:
            turn = self.session(session_id).turns.get(turn_id)
            return turn if turn is not None and turn.stop_reason is not None else None

        return await self.until(ended, within)
