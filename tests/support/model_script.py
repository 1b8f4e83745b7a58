"""What a model says in tests: `demo.answers`, and ways in which an answer reaches nobody whole."""

from dataclasses import replace
from itertools import pairwise
from random import Random

from kode_sidecar.devtools.demo.answers import (
    DemoCall,
    DemoText,
    Hold,
    Thinking,
    TokenUsage,
    answer,
    hold,
    text,
    thinking,
    tool_call,
)
from kode_sidecar.devtools.demo.model_server import Piece, RecordedResponse, failure

__all__ = [
    "DemoCall",
    "DemoText",
    "Hold",
    "Thinking",
    "TokenUsage",
    "answer",
    "broken_off",
    "cut_at_random",
    "failure",
    "hold",
    "text",
    "thinking",
    "tool_call",
]


def broken_off(response: RecordedResponse, keep: int) -> RecordedResponse:
    """The same answer, but the connection dies after `keep` pieces."""
    return replace(response, pieces=response.pieces[:keep], broken=True)


def cut_at_random(response: RecordedResponse, random: Random) -> RecordedResponse:
    """The same bytes in pieces that respect neither events nor characters. Drops holds."""
    body = response.body
    count = random.randint(1, max(1, len(body) // 20))
    cuts = sorted({0, len(body), *(random.randrange(len(body) + 1) for _ in range(count))})
    pieces = [Piece(body[start:end]) for start, end in pairwise(cuts) if end > start]
    return replace(response, pieces=tuple(pieces))
