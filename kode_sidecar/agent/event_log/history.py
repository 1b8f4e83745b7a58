"""Derive a session's state from its events: open turns, messages, blocks, questions, edits.

It does no IO. `SessionStream` feeds it every event; for a reopened session it is fed the events of
the journal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kode_sidecar.core.domain.agent_event import (
    AskRequested,
    AskResolved,
    BlockCompleted,
    BlockDropped,
    BlockStarted,
    ChangeSetUpdated,
    DecisionRequested,
    DecisionResolved,
    Event,
    MessageAdded,
    MessageCompleted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PlanItem,
    PlanUpdated,
    ReviewUpdated,
    SessionUpdated,
    TurnCompleted,
    TurnStarted,
    TurnSteered,
)
from kode_sidecar.core.domain.change_set import ChangeSet
from kode_sidecar.core.domain.event_parts import APPLYING_MODES
from kode_sidecar.core.domain.finding import FindingView
from kode_sidecar.core.domain.message import Block, Message

LOSS = "MessagesLost"
"""The code of the notice about messages that can no longer be read."""

_REPORTS_AT_ONCE = (*APPLYING_MODES, "ask")
"""The modes in which a call's result reports the hunk status, so that no reminder is needed."""


@dataclass
class UnfinishedBlock:
    """A block that is still growing. `parts` are the texts of its deltas."""

    block: Block
    message_id: str
    parts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self.parts)


@dataclass
class OpenMessage:
    """An incomplete message, with its blocks in order; open blocks are as they started."""

    added: MessageAdded
    blocks: dict[str, Block] = field(default_factory=dict[str, Block])

    def message(self, session_id: str) -> Message:
        """Return the message with the blocks known so far."""
        return self.added.message(session_id, self.blocks.values())


class EventHistory:
    """The state after the events fed so far, in order; deltas go to `blocks` in between.

    `turns`, `messages`, `blocks`, `questions` and `asks` are the open ones; `last_turn` is the end
    of the newest finished turn; `plan` is the model's newest, `findings` those of code reviews;
    `steered` is steering that is in no message yet; `decided_since_turn` are decided hunks that no
    model was informed of; `lost` counts completed messages that could not be read when the session
    was opened.
    """

    def __init__(self) -> None:
        self.turns: dict[str, TurnStarted] = {}
        self.known_turns: set[str] = set()
        self.messages: dict[str, OpenMessage] = {}
        self.completed_messages: set[str] = set()
        self.lost = 0
        self.loss_reported = False
        self.blocks: dict[str, UnfinishedBlock] = {}
        self.steered: list[TurnSteered] = []
        self.questions: dict[str, PermissionRequested | DecisionRequested] = {}
        self.asks: dict[str, AskRequested] = {}
        self.last_turn: TurnCompleted | None = None
        self.change_sets: dict[str, ChangeSet] = {}
        self.decided_since_turn: set[str] = set()
        self.plan: tuple[PlanItem, ...] = ()
        self.findings: tuple[FindingView, ...] = ()
        self.title = ""
        self.agent = ""

    def feed_all(self, events: Iterable[object]) -> None:
        """Feed events from disk; skips unknown ones of newer versions."""
        for event in events:
            if isinstance(event, ChangeSetUpdated):
                self._change_set(event)
            elif isinstance(event, Event):
                self.feed(event)

    def feed(self, event: Event) -> None:  # noqa: C901 - a table
        """Update the state with the next event."""
        match event:
            case MessageAdded() | MessageCompleted() | BlockStarted() | BlockCompleted():
                self._feed_message(event)
            case BlockDropped():
                self.blocks.pop(event.block_id, None)
                if event.message_id in self.messages:
                    self.messages[event.message_id].blocks.pop(event.block_id, None)
            case TurnStarted() | TurnSteered() | TurnCompleted():
                self._feed_turn(event)
            case PermissionRequested() | DecisionRequested():
                self.questions[event.request_id] = event
            case PermissionResolved() | DecisionResolved():
                self.questions.pop(event.request_id, None)
            case AskRequested():
                self.asks[event.request_id] = event
            case AskResolved():
                self.asks.pop(event.request_id, None)
            case PlanUpdated():
                self.plan = event.items
            case ReviewUpdated():
                self.findings = event.findings
            case Notice(code=code) if code == LOSS:
                self.loss_reported = True
            case SessionUpdated(title=title) if title is not None:
                self.title = title
            case _:
                pass

    def _feed_message(
        self, event: MessageAdded | MessageCompleted | BlockStarted | BlockCompleted
    ) -> None:
        match event:
            case BlockStarted():
                self.blocks[event.block_id] = UnfinishedBlock(event.block, event.message_id)
                self._place(event.message_id, event.block_id, event.block)
            case BlockCompleted():
                self.blocks.pop(event.block_id, None)
                self._place(event.message_id, event.block_id, event.block)
            case MessageAdded():
                self.messages[event.message_id] = OpenMessage(event)
            case MessageCompleted():
                opened = self.messages.pop(event.message_id, None)
                self.completed_messages.add(event.message_id)
                if opened is not None:
                    self._drop_reported(opened)

    def _feed_turn(self, event: TurnStarted | TurnSteered | TurnCompleted) -> None:
        match event:
            case TurnStarted():
                self.turns[event.turn_id] = event
                self.known_turns.add(event.turn_id)
                self.agent = event.agent or self.agent
            case TurnSteered():
                self.steered.append(event)
            case TurnCompleted():
                started = self.turns.pop(event.turn_id, None)
                self.known_turns.add(event.turn_id)
                self.last_turn = event
                if started is not None and started.mode in _REPORTS_AT_ONCE:
                    self.decided_since_turn -= self._hunks_of(event.turn_id)

    def _drop_reported(self, message: OpenMessage) -> None:
        """Drop what a completed message reports to the model.

        Steering messages keep their order. A reminder reports nothing if a power cut left it empty.
        """
        added, has_words = message.added, not self.blocks.keys() >= message.blocks.keys()
        if added.meta.get("origin") == "reminder" and has_words:
            self.decided_since_turn.clear()
        if added.meta.get("origin") == "steer" and self.steered:
            self.steered.pop(0)

    def _hunks_of(self, turn_id: str) -> set[str]:
        sets = (one for one in self.change_sets.values() if one.turn_id == turn_id)
        return {hunk_id for one in sets for hunk_id in one.hunks}

    def _place(self, message_id: str, block_id: str, block: Block) -> None:
        if message_id in self.messages:
            self.messages[message_id].blocks[block_id] = block

    def _change_set(self, event: ChangeSetUpdated) -> None:
        change_set = self.change_sets.get(event.change_set_id)
        if change_set is None:
            change_set = ChangeSet(event.change_set_id, event.turn_id)
            self.change_sets[event.change_set_id] = change_set
        self.decided_since_turn |= change_set.receive(event.files, event.seq)
