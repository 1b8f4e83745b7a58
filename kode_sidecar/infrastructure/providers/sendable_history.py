"""The last gate before a request: a history that no host refuses, whatever is in it. Sans-IO.

One event in a history can make every later request fail: a name of a tool that the model made up,
a picture that is not what it is called, pictures that pile up. All dialects send what passes here;
what is stored and shown stays as it came.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResultContent,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.domain.pictures import TAKEN_PICTURES, picture_kind
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.request_options import Keeps, with_safe_ids

# The narrowest rule for names of called tools is Moonshot's; others take up to 64 letters, too.
_REFUSED_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_SHORTEST_NAME = 3
# Pictures in base64. A request beyond them is refused by some host as too large.
_MOST_PICTURES = 20
_MOST_PICTURE_BYTES = 20 * 1024 * 1024
_LARGEST_PICTURE = 7 * 1024 * 1024


def sendable_messages(
    messages: Sequence[Message], profile: ModelProfile, keeps: Keeps
) -> list[Message]:
    """Return a history as the host takes it; a message depends only on those before it.

    Ids that `keeps` refuses, that are empty or that repeat in their own message are replaced.
    """
    passed = _Pictures(profile.most_pictures)
    found = [passed.checked(_with_legal_names(one)) for one in with_safe_ids(messages, keeps)]
    return [passed.without_dropped(one) for one in found]


def legal_name(name: str) -> str:
    """Return a tool's name with the letters and the length that every host takes back."""
    legal = _REFUSED_IN_NAME.sub("_", name)[:_LONGEST_NAME]
    if not legal or legal[0].isdigit() or legal[0] == "-":
        legal = f"_{legal}"[:_LONGEST_NAME]
    return legal if legal == name else legal.ljust(_SHORTEST_NAME, "_")


def _with_legal_names(message: Message) -> Message:
    if all(call.name == legal_name(call.name) for call in message.calls):
        return message
    content = tuple(
        replace(block, name=legal_name(block.name)) if isinstance(block, ToolUseBlock) else block
        for block in message.content
    )
    return replace(message, content=content)


class _Size(NamedTuple):
    picture: ImageBlock
    size: int


class _Pictures:
    """Checks each picture, and drops the oldest ones when there are too many.

    Half of what is allowed stays then, so that the start of a request changes seldom: hosts cache
    requests by their start.
    """

    def __init__(self, most: int | None) -> None:
        self._most = _MOST_PICTURES if most is None else most
        self._newest: list[_Size] = []
        self._dropped: set[int] = set()

    def checked(self, message: Message) -> Message:
        """Return the message with the kinds of its pictures put right, and count them."""
        if not any(isinstance(block, ImageBlock | ToolResultBlock) for block in message.content):
            return message
        content = tuple(self._block(block) for block in message.content)
        return message if content == message.content else replace(message, content=content)

    def without_dropped(self, message: Message) -> Message:
        """Return the message with a note for each picture that was dropped."""
        if not self._dropped:
            return message
        content = tuple(self._left(block) for block in message.content)
        return message if content == message.content else replace(message, content=content)

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResultBlock):
            parts = tuple(self._picture(one) for one in block.content)
            return block if parts == block.content else replace(block, content=parts)
        return self._picture(block) if isinstance(block, ImageBlock) else block

    def _picture(self, block: ResultContent) -> ResultContent:
        if not isinstance(block, ImageBlock):
            return block
        kind = picture_kind(block) or block.media_type
        if kind not in TAKEN_PICTURES:
            return _note(kind, "left out, for models read PNG, JPEG, GIF and WebP only")
        if len(block.data) > _LARGEST_PICTURE:
            return _note(kind, "left out, for it is larger than hosts take")
        taken = block if kind == block.media_type else replace(block, media_type=kind)
        self._newest.append(_Size(taken, len(block.data)))
        if self._is_full(self._most, _MOST_PICTURE_BYTES):
            while len(self._newest) > 1 and self._is_full(self._most // 2, _MOST_PICTURE_BYTES / 2):
                self._dropped.add(id(self._newest.pop(0).picture))
            if self._most == 0:
                self._dropped.add(id(self._newest.pop().picture))
        return taken

    def _is_full(self, most: int, size: float) -> bool:
        return len(self._newest) > most or sum(one.size for one in self._newest) > size

    def _left(self, block: Block) -> Block:
        if isinstance(block, ToolResultBlock):
            parts = tuple(_dropped_note(p) if id(p) in self._dropped else p for p in block.content)
            return block if parts == block.content else replace(block, content=parts)
        return _dropped_note(block) if id(block) in self._dropped else block


def pictures(messages: Iterable[Message]) -> int:
    """Return the number of pictures in messages, those of tools included."""
    blocks = (block for message in messages for block in message.content)
    parts = (block.content if isinstance(block, ToolResultBlock) else (block,) for block in blocks)
    return sum(isinstance(part, ImageBlock) for part in chain.from_iterable(parts))


def _dropped_note(block: Block) -> TextBlock:
    kind = block.media_type if isinstance(block, ImageBlock) else "image"
    return _note(kind, "left out, for newer ones fill the request")


def _note(kind: str, why: str) -> TextBlock:
    return TextBlock(text=f"[An image, {kind}: {why}.]")
