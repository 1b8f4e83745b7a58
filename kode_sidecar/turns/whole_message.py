"""Messages that arrive whole: prompts, reminders, steering."""

from typing import Any

import msgspec

from kode_sidecar.domain.message import Message
from kode_sidecar.kernel import block_events, message_added, message_completed
from kode_sidecar.kernel.contracts import Emit, Incoming, NewId
from kode_sidecar.turns.context import TurnContext


def write_incoming(
    context: TurnContext, incoming: Incoming, new_id: NewId, **known: Any
) -> Message:
    """Place it below the newest message and commit it; blocks without an id get one.

    `known` are more fields of the message, such as its usage. Raises KodeError `Storage`.
    """
    opened = context.open(incoming.role, incoming.meta)
    blocks = tuple(
        block if block.id else msgspec.structs.replace(block, id=new_id("block"))
        for block in incoming.content
    )
    message = msgspec.structs.replace(opened, content=blocks, **known)
    context.commit(message)
    return message


def report_message(emit: Emit, message: Message, turn_id: str) -> None:
    """Everything there is to say about a committed message."""
    emit(message_added(message, turn_id))
    for block in message.content:
        for event in block_events(block, turn_id, message.id):
            emit(event)
    emit(message_completed(message, turn_id))
