"""What a user sends as a prompt."""

from collections.abc import Sequence
from typing import Any

import msgspec

from kode_sidecar.domain.message import Block, ImageBlock, ResourceBlock, TextBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import NewId

TITLE_LENGTH = 60


def prompt_blocks(blocks: Sequence[Block], new_id: NewId) -> tuple[Block, ...]:
    """The blocks of a prompt with ids of ours; blank text is left out.

    Raises KodeError `InvalidParams` for blocks that only a model or a tool makes.
    """
    kept: list[Block] = []
    for position, block in enumerate(blocks):
        if not isinstance(block, TextBlock | ImageBlock | ResourceBlock):
            raise KodeError(
                "InvalidParams",
                f"$.input[{position}]: a prompt holds text, image and resource blocks only.",
            )
        if not isinstance(block, TextBlock) or block.text.strip():
            own: dict[str, Any] = {"blob": None} if isinstance(block, TextBlock) else {}
            kept.append(msgspec.structs.replace(block, id=new_id("block"), **own))
    return tuple(kept)


def title_of(blocks: Sequence[Block]) -> str:
    """The first line with words in it, cut to a title's length."""
    text = next((block.text for block in blocks if isinstance(block, TextBlock)), "")
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
