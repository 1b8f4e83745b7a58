"""Answers of Anthropic's Messages API, one for each shape that was met or is documented."""

from tests.providers.streams.answer import Stream
from tests.providers.streams.anthropic_blocks import BLOCKS, TOOLS
from tests.providers.streams.anthropic_ends import ENDS, ERRORS, FORMS, RESTARTS, USAGES
from tests.providers.streams.damage import ANTHROPIC_DAMAGE

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
