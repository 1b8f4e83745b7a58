"""What requests leave out of a conversation: by the user's edits, or refused by the host. Sans-IO.

The user leaves messages out or pins them (F12). An answer and the results of its calls stay or go
together: leaving out an answer leaves out its results, and pinning one pins both. A result left out
alone is replaced by a sentence.

A prompt that a content filter or a check of pictures refuses would make every later request fail,
too. It stays in the conversation and is sent again only while nothing newer was asked. Where the
host gives no such reason, two refusals without an answer between them count: one may be a mishap,
and then no word of the user's may be lost.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.error_info import UNNAMED
from kode_sidecar.core.domain.message import REFUSED, Message, TextBlock, ToolResultBlock

_BY_THE_USER = (
    "[The user left this result out of the conversation. "
    "Call the tool again if you still need what it said.]"
)
_BY_THE_HOST = (TextBlock(text="[Left out: the model's host refused to read this.]"),)


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
        one.with_results(_by_the_user) if one.role == "tool" and one.id in gone else one
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


def _by_the_user(block: ToolResultBlock) -> ToolResultBlock:
    return replace(block, content=(TextBlock(text=_BY_THE_USER),))


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
            found[answered:refused] = _without(found[answered:refused])
            answered = refused = len(found)
            unnamed = 0
        found.append(message)
    return found


def leaves_out(path: Sequence[Message]) -> bool:
    """Return whether something refused is left out since the last message, a prompt."""
    return without_refused(path)[:-1] != without_refused(path[:-1])


def _without(messages: Iterable[Message]) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        if message.results:
            found.append(message.with_results(_by_the_host))
        elif message.is_api_error_message or message.is_summary or message.role == "system":
            found.append(message)
    return found


def _by_the_host(block: ToolResultBlock) -> ToolResultBlock:
    return replace(block, content=_BY_THE_HOST, summary="")
