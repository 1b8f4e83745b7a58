"""Answers of Anthropic's Messages API, one for each shape that was met or is documented."""

from tests.infrastructure.providers.streams.answer import Stream
from tests.infrastructure.providers.streams.anthropic_blocks import BLOCKS, TOOLS
from tests.infrastructure.providers.streams.anthropic_ends import (
    ENDS,
    ERRORS,
    FORMS,
    RESTARTS,
    USAGES,
)
from tests.infrastructure.providers.streams.damage import ANTHROPIC_DAMAGE

STREAMS: dict[str, Stream] = {
    f"{group}: {name}": found
    for group, streams in {
        "blocks": BLOCKS,
        "tools": TOOLS,
        "usage": USAGES,
        "end": ENDS,
        "restart": RESTARTS,
        "error": ERRORS,
        "form": FORMS,
        "damage": ANTHROPIC_DAMAGE,
    }.items()
    for name, found in streams.items()
}
