"""Answers of OpenAI-compatible hosts, one for each shape that was met in the field."""

from tests.infrastructure.providers.streams import presets
from tests.infrastructure.providers.streams.answer import Stream
from tests.infrastructure.providers.streams.chat_calls import LEAKS, TOOLS
from tests.infrastructure.providers.streams.chat_ends import ENDS, ERRORS, USAGES
from tests.infrastructure.providers.streams.chat_words import REASONING, TEXT
from tests.infrastructure.providers.streams.damage import CHAT_DAMAGE, CHAT_IDENTITY

STREAMS: dict[str, Stream] = {
    f"{group}: {name}": found
    for group, streams in {
        "text": TEXT,
        "reasoning": REASONING,
        "tools": TOOLS,
        "usage": USAGES,
        "end": ENDS,
        "error": ERRORS,
        "leak": LEAKS,
        "damage": CHAT_DAMAGE,
        "identity": CHAT_IDENTITY,
        "preset": presets.STREAMS,
    }.items()
    for name, found in streams.items()
}
