"""Leaves out of requests what the model's host refused for what it holds.

A prompt that a content filter or a check of pictures refuses would make every later request fail,
too. It stays in the conversation and is sent again only while nothing newer was asked. Where the
host gives no such reason, two refusals without an answer between them count: one may be a mishap,
and then no word of the user's may be lost.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import UNNAMED
from kode_sidecar.core.domain.message import REFUSED, Message, TextBlock, ToolResultBlock

_LEFT_OUT = (TextBlock(text="[Left out: the model's host refused to read this.]"),)


def without_refused(messages: Iterable[Message]) -> list[Message]:
    """Return messages without those that the host refused, if the user went on after them.

    Refused is what came after the last answer. A tool's result gets a note in its place, because
    each call needs one.
    """
    found: list[Message] = []
    answered, refused, unnamed = 0, 0, 0
    for message in messages:
        if message.is_api_error_message:
            unnamed += message.meta.get(REFUSED) == UNNAMED
            if REFUSED in message.meta and (unnamed > 1 or message.meta[REFUSED] != UNNAMED):
                refused = len(found)
        elif message.role == "assistant":
            answered, unnamed = len(found) + 1, 0
        elif message.is_prompt and refused > answered:
            found[answered:refused] = _left(found[answered:refused])
            answered = refused = len(found)
            unnamed = 0
        found.append(message)
    return found


def leaves_out(path: Sequence[Message]) -> bool:
    """Return whether something refused is left out since the last message, a prompt."""
    return without_refused(path)[:-1] != without_refused(path[:-1])


def _left(messages: Iterable[Message]) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        if message.results:
            found.append(message.with_results(_noted))
        elif message.is_api_error_message or message.is_summary or message.role == "system":
            found.append(message)
    return found


def _noted(block: ToolResultBlock) -> ToolResultBlock:
    return replace(block, content=_LEFT_OUT, summary="")
