"""Messages that arrive whole: prompts, reminders, steering."""

import msgspec

from kode_sidecar.domain.message import Block, Message
from kode_sidecar.kernel import block_events, message_added, message_completed
from kode_sidecar.kernel.contracts import Emit, NewId
from kode_sidecar.main_session.turn_context import TurnContext


def write_message(
    context: TurnContext, opened: Message, content: tuple[Block, ...], new_id: NewId
) -> Message:
    """Fill an opened message and commit it; blocks without an id get one.

    Raises KodeError `Storage`.
    """
    blocks = tuple(
        block if block.id else msgspec.structs.replace(block, id=new_id("block"))
        for block in content
    )
    message = msgspec.structs.replace(opened, content=blocks)
    context.commit(message)
    return message


def report_message(emit: Emit, message: Message, turn_id: str) -> None:
    """Everything there is to say about a committed message."""
    emit(message_added(message, turn_id))
    for block in message.content:
        for event in block_events(block, turn_id, message.id):
            emit(event)
    emit(message_completed(message, turn_id))
