"""What is remembered reaches the model with a prompt, each thing once in a conversation (B10)."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from kode_sidecar.context.memory import MemoryNote
from kode_sidecar.context.trimming import is_prompt
from kode_sidecar.domain.agent_event import Notice
from kode_sidecar.domain.message import Block, Message, TextBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Emit, Incoming
from kode_sidecar.turns.context import TurnContext

Recall = Callable[[str, Collection[str]], Awaitable[MemoryNote | None]]
"""`(prompt, ids)`: what is remembered for a prompt, but for these. Raises KodeError."""

_IDS = "memoryIds"


async def recall(context: TurnContext, ask: Recall, emit: Emit) -> None:
    """Before a turn's first step. Memory that fails is told to the user, and the turn goes on."""
    prompt = context.shown[-1] if context.shown else None
    if prompt is None or not is_prompt(prompt):
        return
    try:
        remembered = await remembered_for(prompt.content, context.shown, ask)
    except KodeError as error:
        text = f"{error.message} The turn goes on without what is remembered."
        emit(Notice(turn_id=context.turn_id, code=error.code, message=text, level="warning"))
        return
    if remembered is not None:
        context.remember(remembered)


async def remembered_for(
    blocks: Sequence[Block], shown: Sequence[Message], ask: Recall
) -> Incoming | None:
    """What to tell beside a prompt; what the messages that the model gets say is not told again.

    Raises KodeError as `Recall` does.
    """
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    if not text:
        return None
    reminders = (message for message in shown if not is_prompt(message))
    told = {str(memory_id) for one in reminders for memory_id in one.meta.get(_IDS, ())}
    note = await ask(text, told)
    if note is None:
        return None
    meta = {"origin": "reminder", _IDS: list(note.ids)}
    return Incoming("user", (TextBlock(text=note.text),), meta)
