"""Ids of tool calls that the next host accepts, too. Sans-IO.

A model's own ids go back letter by letter: some models read their numbering. Ids that another
host gave may hold letters that this one refuses, and ids may repeat from answer to answer.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence, Set

import msgspec

from kode_sidecar.domain.message import Block, Message, ToolResultBlock, ToolUseBlock

Keeps = Callable[[Message, str, Set[str]], bool]
"""Whether an id of a message stays; the ids in use before it are the third argument."""

_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
# The shortest limit among the hosts that have one.
_LONGEST = 40
_WITH_ID = (ToolUseBlock, ToolResultBlock)


def with_safe_ids(messages: Sequence[Message], keeps: Keeps) -> list[Message]:
    """The history with every id replaced in call and result that `keeps` refuses, that is
    empty, or that its own message has used before.

    A message's ids depend on what is before it alone, so a growing history keeps its beginning.
    """
    used: set[str] = set()
    new_ids: defaultdict[str, deque[str]] = defaultdict(deque)

    def renamed(message: Message, block: Block) -> Block:
        if isinstance(block, ToolUseBlock):
            new_id = old_id = block.tool_use_id
            # Twice in one message an id would name two calls, and an empty one none.
            if not old_id or new_ids[old_id] or not keeps(message, old_id, used):
                new_id = _safe(old_id, used)
            used.add(new_id)
            new_ids[old_id].append(new_id)
        elif isinstance(block, ToolResultBlock) and new_ids[block.tool_use_id]:
            new_id, old_id = new_ids[block.tool_use_id].popleft(), block.tool_use_id
        else:
            return block
        return block if new_id == old_id else msgspec.structs.replace(block, tool_use_id=new_id)

    out: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            # An id that repeats names the newest call.
            new_ids.clear()
        if any(isinstance(block, _WITH_ID) for block in message.content):
            blocks = tuple(renamed(message, block) for block in message.content)
            if blocks != message.content:
                message = msgspec.structs.replace(message, content=blocks)
        out.append(message)
    return out


def is_foreign(message: Message, provider: str) -> bool:
    """Whether another provider than this one gave the answer, as far as both are known."""
    return bool(provider and message.provider) and message.provider != provider


def _safe(tool_use_id: str, used: Set[str]) -> str:
    safe = base = _REFUSED.sub("_", tool_use_id)[:_LONGEST] or "call"
    number = 1
    while safe in used:
        number += 1
        safe = f"{base[: _LONGEST - 1 - len(str(number))]}_{number}"
    return safe
