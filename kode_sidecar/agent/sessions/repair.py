"""Repair a session whose process died, or whose files were damaged.

`messages.jsonl` is the truth about what was said. Its messages that the journal lacks are reported;
what the journal has of a cut-off answer is saved as a message; every tool call gets a result;
steering that no model has received is saved; every turn ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import msgspec

from kode_sidecar.agent.event_log import OpenedSession, OpenMessage, SessionStream
from kode_sidecar.agent.turns import SessionServices
from kode_sidecar.core.domain.agent_event import (
    AskResolved,
    BlockCompleted,
    BlockDropped,
    BlockStarted,
    DecisionResolved,
    Event,
    PermissionRequested,
    PermissionResolved,
    TurnCompleted,
    TurnStarted,
    UsageUpdated,
)
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import (
    Block,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    unanswered,
)
from kode_sidecar.core.kernel import message_added, message_completed
from kode_sidecar.core.kernel.contracts import Clock, NewId
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles
from kode_sidecar.infrastructure.records.spending import Totals

_UNFINISHED = "Not finished: the sidecar ended while this ran. Whatever it had done is done."


CUT_OFF = "cutOff"
"""In the meta of an answer: its process was killed while the model still spoke."""

EmitEvent = Callable[[Event], object]


def repair_session(
    session: OpenedSession, clock: Clock, new_id: NewId, emit: EmitEvent | None = None
) -> None:
    """Write what is missing, so that conversation and history agree.

    No turn may run. Events go to the journal, or to `emit` if the session has a stream already.
    Blocks while it writes. Raises KodeError `Storage`.
    """
    work = _Repair(session, clock, new_id, emit)
    work.finish_messages()
    work.report_messages()
    work.answer_calls()
    work.save_steering()
    work.end_turns()


class _Repair:
    def __init__(
        self, session: OpenedSession, clock: Clock, new_id: NewId, emit: EmitEvent | None
    ) -> None:
        self._emit: EmitEvent = emit or self._journal
        self._session_id = session.records.meta.id
        self._records = session.records
        self._conversation = session.conversation
        self._history = session.history
        self._scouts_spent = session.scouts_spent
        self._clock = clock
        self._new_id = new_id

    def finish_messages(self) -> None:
        """Save the reported part of incomplete messages: nothing else of them exists."""
        for opened in tuple(self._history.messages.values()):
            message = opened.message(self._session_id)
            if message.id in self._conversation:
                continue
            if message.parent_id is not None and message.parent_id not in self._conversation:
                message = msgspec.structs.replace(message, parent_id=None, depth=0)
            grown = {key: block.text for key, block in self._history.blocks.items()}
            kept = tuple(_cut_off(message.content, grown))
            if message.role == "assistant":
                meta = {**message.meta, CUT_OFF: True}
                message = msgspec.structs.replace(message, meta=meta)
            if message.origin == "steer" and self._history.steered:
                # The steering text is known in full; reported blocks keep their ids.
                ids = chain(opened.blocks, repeat(""))
                kept = tuple(
                    msgspec.structs.replace(block, id=known or block.id)
                    for block, known in zip(self._history.steered[0].input, ids, strict=False)
                )
            results = self._missing_results(message, kept, opened)
            self._write(msgspec.structs.replace(message, content=(*kept, *results)))
        self._records.growth.clear()

    def report_messages(self) -> None:
        """Emit the events of stored messages that were never reported."""
        messages = self._conversation.messages
        last_turn = messages[-1].turn_id if messages else ""
        for message in messages:
            if message.id in self._history.completed_messages:
                continue
            turn_id = message.turn_id
            if turn_id and turn_id == last_turn and turn_id not in self._history.known_turns:
                self._emit(TurnStarted(turn_id=turn_id, message_id=message.id))
            self._report(message)

    def answer_calls(self) -> None:
        """Add cancelled results to tool calls at the end of a branch: nothing will answer them."""
        for leaf in self._conversation.leaves():
            if leaf.role == "assistant" and leaf.calls:
                results = tuple(map(self._unfinished, leaf.calls))
                self._say("tool", leaf, results, {"turnId": leaf.turn_id})

    def save_steering(self) -> None:
        """Save steering that no step of its turn took, so that the next turn gets it."""
        for steered in tuple(self._history.steered):
            mine = [one for one in self._conversation.messages if one.turn_id == steered.turn_id]
            if mine:
                meta = {"origin": "steer", "turnId": steered.turn_id}
                self._say("user", mine[-1], steered.input, meta)

    def end_turns(self) -> None:
        """Emit the end of every turn that has none."""
        for turn_id in tuple(self._history.turns):
            for request_id, question in tuple(self._history.questions.items()):
                asked = isinstance(question, PermissionRequested)
                resolved = PermissionResolved if asked else DecisionResolved
                if question.turn_id == turn_id:
                    self._emit(resolved(turn_id=turn_id, request_id=request_id, by="cancel"))
            for request_id, ask in tuple(self._history.asks.items()):
                if ask.turn_id == turn_id:
                    self._emit(AskResolved(turn_id=turn_id, request_id=request_id, by="cancel"))
            session, turn = Totals(spent=self._scouts_spent), Totals()
            for message in self._conversation.messages:
                session.add_message(message)
                if message.turn_id == turn_id:
                    turn.add_message(message)
            self._emit(
                UsageUpdated(usage=session.usage, cost=session.cost, cost_usd=session.cost_usd)
            )
            self._emit(
                TurnCompleted(
                    turn_id=turn_id,
                    stop_reason="interrupted",
                    usage=turn.usage,
                    cost=turn.cost,
                    cost_usd=turn.cost_usd,
                )
            )

    def _missing_results(
        self, message: Message, kept: tuple[Block, ...], opened: OpenMessage
    ) -> tuple[Block, ...]:
        """Return results for the calls of the parent message that `kept` leaves unanswered."""
        if message.role != "tool" or message.parent_id is None:
            return ()
        answered = {block.tool_use_id for block in kept if isinstance(block, ToolResultBlock)}
        begun = {
            block.tool_use_id: block.id
            for block in opened.blocks.values()
            if isinstance(block, ToolResultBlock)
        }
        return tuple(
            self._unfinished(call, begun.get(call.tool_use_id, ""))
            for call in self._conversation.get(message.parent_id).calls
            if call.tool_use_id not in answered
        )

    def _unfinished(self, call: ToolUseBlock, block_id: str = "") -> ToolResultBlock:
        result = unanswered(call, _UNFINISHED, block_id=block_id or self._new_id("block"))
        grown = self._history.blocks.get(block_id)
        if grown is None or not grown.text:
            return result
        shown = TextBlock(text=f"{_UNFINISHED} Its output until then:\n{grown.text}")
        return msgspec.structs.replace(result, content=(shown,))

    def _say(
        self, role: Role, parent: Message, content: tuple[Block, ...], meta: dict[str, Any]
    ) -> None:
        self._write(
            Message(
                id=self._new_id("message"),
                session_id=self._session_id,
                role=role,
                content=content,
                parent_id=parent.id,
                depth=parent.depth + 1,
                created_at=self._clock.timestamp(),
                meta=meta,
            )
        )

    def _write(self, message: Message) -> None:
        self._records.append(message)
        self._conversation.add(message)
        self._report(message)

    def _report(self, message: Message) -> None:
        """Emit the events of a message that were not emitted before."""
        turn_id = message.turn_id
        if turn_id in self._history.known_turns and turn_id not in self._history.turns:
            turn_id = ""  # that turn is over (O2)
        opened = self._history.messages.get(message.id)
        reported = dict(opened.blocks) if opened else {}
        if opened is None:
            self._emit(message_added(message, turn_id))
        for block in message.content:
            block = block if block.id else msgspec.structs.replace(block, id=self._new_id("block"))
            if block.id not in reported:
                self._emit(
                    BlockStarted(
                        turn_id=turn_id, message_id=message.id, block_id=block.id, block=block
                    )
                )
                self._emit(_completed(block, turn_id, message.id))
            elif block.id in self._history.blocks:
                self._emit(_completed(block, turn_id, message.id))
        for block_id in [name for name in reported if name in self._history.blocks]:
            self._emit(
                BlockDropped(
                    turn_id=turn_id, message_id=message.id, block_id=block_id, reason="interrupted"
                )
            )
        self._emit(message_completed(message, turn_id))

    def _journal(self, event: Event) -> None:
        journal = self._records.journal
        stamped = msgspec.structs.replace(
            event, seq=journal.last_seq + 1, ts=self._clock.timestamp()
        )
        journal.append(stamped)
        self._history.feed(stamped)


def _cut_off(content: Iterable[Block], grown: Mapping[str, str]) -> Iterator[Block]:
    """Yield the blocks that are whole, and what had grown of words; half a call is none."""
    for block in content:
        text = grown.get(block.id)
        if text is None:
            yield block
        elif text and isinstance(block, TextBlock | ThinkingBlock):
            yield msgspec.structs.replace(block, text=text)


def _completed(block: Block, turn_id: str, message_id: str) -> BlockCompleted:
    return BlockCompleted(turn_id=turn_id, message_id=message_id, block_id=block.id, block=block)


def write_left_over(
    records: ConversationFiles,
    conversation: Conversation,
    stream: SessionStream,
    services: SessionServices,
) -> None:
    """Write what a failing disk refused before. Raises KodeError `Storage` if it still fails."""
    stream.recover()
    if stream.history.messages or stream.history.steered:
        session = OpenedSession(records, conversation, stream.history)
        repair_session(session, services.clock, services.new_id, stream)
