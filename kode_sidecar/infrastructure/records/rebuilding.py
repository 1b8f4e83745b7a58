"""Recovers the messages of a conversation that a damaged disk lost.

A message that is complete in the journal is rebuilt. If one is lost for good and others follow it,
a stand-in replaces it: the tree keeps its shape, and the stand-in says what is missing.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockStarted,
    MessageAdded,
    MessageCompleted,
)
from kode_sidecar.core.domain.message import Block, Message, Role, TextBlock
from kode_sidecar.infrastructure.records.journal import StoredEvent, UnknownEvent

LOST = "lost"
"""The `meta.origin` of a stand-in."""

_SAID_BY: dict[Role, str] = {"user": "The user's words", "tool": "Results of tools"}
_LOST_TEXT = (
    "[{what} stood here. They were damaged on disk and could not be read again; what is above and "
    "below is as it was.]"
)


def with_stand_ins(
    messages: Sequence[Message], events: Iterable[StoredEvent], session_id: str
) -> Sequence[Message]:
    """Return the messages, with a stand-in before each one whose parent is missing.

    The stand-in contains whatever the events still have of the parent.
    """
    if not missing_parents(messages):
        return messages
    reported = _PartialMessages(events)
    ids = {message.id for message in messages}
    whole: list[Message] = []
    for message in messages:
        chain = [message]
        while (parent_id := chain[-1].parent_id) is not None and parent_id not in ids:
            ids.add(parent_id)
            chain.append(reported.stand_in(parent_id, chain[-1], whole, session_id))
        whole += reversed(chain)
    return whole


def missing_parents(messages: Sequence[Message]) -> Collection[str]:
    """Return the ids of parents that are not among the messages."""
    ids = {message.id for message in messages}
    return {one.parent_id for one in messages if one.parent_id is not None} - ids


class _PartialMessages:
    """What the events contain of incomplete messages."""

    def __init__(self, events: Iterable[StoredEvent]) -> None:
        self._added: dict[str, MessageAdded] = {}
        self._blocks: dict[str, dict[str, Block]] = {}
        for event in events:
            if isinstance(event, MessageAdded):
                self._added[event.message_id] = event
            elif isinstance(event, BlockCompleted):
                self._blocks.setdefault(event.message_id, {})[event.block_id] = event.block

    def stand_in(
        self, lost_id: str, child: Message, above: Sequence[Message], session_id: str
    ) -> Message:
        """Return a stand-in for a message that a child names as its parent."""
        added = self._added.get(lost_id)
        if added is None:
            parent = _likely_parent(child, above)
            role: Role = "assistant" if child.role != "assistant" else "user"
            if parent is not None and parent.role == "assistant" and role == "user":
                role = "tool"
            parent_id, depth = (parent.id, parent.depth + 1) if parent else (None, 0)
        else:
            role, parent_id, depth = added.role, added.parent_id, added.depth
        text = _LOST_TEXT.format(what=_SAID_BY.get(role, "Words of the model"))
        blocks = self._blocks.get(lost_id, {}).values()
        meta = {name: child.meta[name] for name in ("turnId",) if name in child.meta}
        return Message(
            id=lost_id,
            session_id=session_id,
            role=role,
            content=(*blocks, TextBlock(id=f"{lost_id}-lost", text=text)),
            parent_id=parent_id,
            depth=depth,
            created_at=added.created_at if added else child.created_at,
            meta={**(added.meta if added else meta), "origin": LOST},
        )


def _likely_parent(child: Message, above: Sequence[Message]) -> Message | None:
    """Return the newest message two levels above a child: a branch is written in order."""
    before = (one for one in reversed(above) if one.depth == child.depth - 2)
    return next(before, None)


def complete_messages(events: Iterable[StoredEvent], session_id: str) -> list[Message]:
    """Return the messages that are complete in these events, in the order of their completion.

    A message with a missing event in between is left out: the event may have held a block.
    """
    added: dict[str, MessageAdded] = {}
    blocks: dict[str, dict[str, Block | None]] = {}
    found: list[Message] = []
    last = gap = 0
    for event in events:
        if event.seq != last + 1 or isinstance(event, UnknownEvent):
            gap = event.seq
        last = event.seq
        match event:
            case MessageAdded():
                added[event.message_id] = event
            case BlockStarted():  # fixes its place among the blocks
                blocks.setdefault(event.message_id, {})[event.block_id] = None
            case BlockCompleted():
                blocks.setdefault(event.message_id, {})[event.block_id] = event.block
            case MessageCompleted():
                whole = blocks.pop(event.message_id, {}).values()
                opened = added.pop(event.message_id, None)
                if opened is not None and opened.seq > gap:
                    content = [block for block in whole if block is not None]
                    found.append(_whole(opened.message(session_id, content), event))
            case _:
                pass
    return found


def _whole(message: Message, completed: MessageCompleted) -> Message:
    return msgspec.structs.replace(
        message,
        usage=completed.usage,
        cost=completed.cost,
        cost_usd=completed.cost_usd,
        lost=completed.lost,
        duration_ms=completed.duration_ms,
        response_id=completed.response_id,
        provider=completed.provider,
        model=completed.model,
        is_api_error_message=completed.is_api_error_message,
    )


def with_rebuilt(
    kept: Sequence[Message], events: Sequence[StoredEvent], session_id: str
) -> Sequence[Message]:
    """Return `kept`, with the messages that only the events have inserted at their places."""
    reported = complete_messages(events, session_id)
    places = {message.id: place for place, message in enumerate(reported)}
    known = {message.id for message in kept}
    found = list(kept)
    for message in reported:
        if message.id in known:
            continue
        before = (
            number
            for number in range(len(found), 0, -1)
            if places.get(found[number - 1].id, len(reported)) < places[message.id]
        )
        found.insert(next(before, 0), message)
    return found
