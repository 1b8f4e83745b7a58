"""The user's word about the context, applied to a path: left out, or pinned (F12). Sans-IO.

An answer and the results of its calls stay or go together: without its answer a result is left out,
and a pinned one pins the other. A result that is left out alone leaves a sentence in its place.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.message import Message, TextBlock, ToolResultBlock

_LEFT_OUT = (
    "[The user left this result out of the conversation. "
    "Call the tool again if you still need what it said.]"
)


def in_force(path: Iterable[Message], edits: ContextEdits) -> list[Message]:
    """Return a path without the summaries that the user took back."""
    return [one for one in path if not (one.is_summary and one.id in edits.left_out)]


def without_left_out(messages: Sequence[Message], edits: ContextEdits) -> list[Message]:
    """Return the messages without those that are left out; results of answers that stay, stay."""
    if not edits.left_out:
        return list(messages)
    gone = frozenset(edits.left_out)
    found: list[Message] = []
    answer_stays = False
    for message in messages:
        if message.role == "assistant":
            answer_stays = message.id not in gone
        stays = answer_stays if message.role == "tool" else message.id not in gone
        if stays:
            found.append(message)
    return found


def without_results(messages: Iterable[Message], edits: ContextEdits) -> list[Message]:
    """Return the messages with a sentence in place of each result that is left out."""
    gone = frozenset(edits.left_out)
    return [
        one.with_results(_left_out) if one.role == "tool" and one.id in gone else one
        for one in messages
    ]


def pinned_on(path: Iterable[Message], edits: ContextEdits) -> frozenset[str]:
    """Return the ids of what is pinned on a path: with an answer its results, and vice versa."""
    if not edits.pinned:
        return frozenset()
    found: set[str] = set()
    call: list[Message] = []
    for message in path:
        if message.role == "assistant":
            call = [message]
        elif message.role == "tool":
            call = [*call, message]
        together = call if message.role in ("assistant", "tool") else [message]
        if any(one.id in edits.pinned for one in together):
            found.update(one.id for one in together)
    return frozenset(found)


def only_pinned(messages: Iterable[Message], pinned: Collection[str]) -> list[Message]:
    """Return those of the messages that stay beside a summary of them."""
    return [one for one in messages if one.id in pinned and not one.is_summary]


def _left_out(block: ToolResultBlock) -> ToolResultBlock:
    return msgspec.structs.replace(block, content=(TextBlock(text=_LEFT_OUT),))
