"""Apply the user's context edits to a path: messages left out or pinned (F12). Sans-IO.

An answer and the results of its calls stay or go together: leaving out an answer leaves out its
results, and pinning one pins both. A result left out alone is replaced by a sentence.
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
    """Return a path without the summaries that the user left out."""
    return [one for one in path if not (one.is_summary and one.id in edits.left_out)]


def without_left_out(messages: Sequence[Message], edits: ContextEdits) -> list[Message]:
    """Return the messages without those left out; results go only with their answers."""
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
    """Return the ids of pinned messages on a path; answers and their results count together."""
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
    """Return the pinned messages, which stay beside a summary, without older summaries."""
    return [one for one in messages if one.id in pinned and not one.is_summary]


def _left_out(block: ToolResultBlock) -> ToolResultBlock:
    return msgspec.structs.replace(block, content=(TextBlock(text=_LEFT_OUT),))
