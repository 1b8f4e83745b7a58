"""How far the estimate of a text's tokens is from a tokenizer's count, by kind of text.

The counts are o200k's, taken once with tiktoken 0.12 over the texts of `text_of`, which are the
same on every machine: prose and code are kept beside this file, data is made from a fixed seed.
"""

import base64
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from benchmarks.figures import Figure
from benchmarks.programs import SIDECAR, Arena
from kode_sidecar.agent.context.token_count import text_weight

TEXTS = Path(__file__).with_name("texts")
_MOST_PERCENT = 15.0
_LINES = 120
_KINDS_OF_LINES = ("GET /api/v1/users/{0}/orders?page={1} 200", "took {0} ms, {1} rows")


def _kept(name: str) -> Callable[[random.Random], str]:
    return lambda _rng: (TEXTS / name).read_text(encoding="utf-8")


def _log_line(rng: random.Random) -> str:
    said = rng.choice(_KINDS_OF_LINES).format(rng.randrange(256), rng.randrange(256))
    time = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
    level = rng.choice(("INFO", "WARN", "ERROR", "DEBUG"))
    return f"2026-11-22T{time}.{rng.randrange(1000):03d}Z {level} [http.server] {said}"


def _dump_line(rng: random.Random, at: int) -> str:
    return f"{at * 16:08x}  " + " ".join(f"{byte:02x}" for byte in rng.randbytes(16))


def _numbers(rng: random.Random) -> str:
    return ",".join(f"{rng.uniform(-1e3, 1e3):.4f}" for _ in range(8))


def _lines(line: Callable[[random.Random, int], str]) -> Callable[[random.Random], str]:
    return lambda rng: "\n".join(line(rng, number) for number in range(_LINES))


_MADE: Mapping[str, Callable[[random.Random], str]] = {
    "python": _kept("python.txt"),
    "typescript": _kept("typescript.txt"),
    "english": _kept("english.txt"),
    "chinese": _kept("chinese.txt"),
    "json": _kept("json.txt"),
    "logs": _lines(lambda rng, _at: _log_line(rng)),
    "hex": lambda rng: rng.randbytes(3_000).hex(),
    "hex dump": _lines(_dump_line),
    "base64": lambda rng: base64.b64encode(rng.randbytes(6_000)).decode(),
    "uuids": _lines(lambda rng, _at: str(UUID(int=rng.getrandbits(128)))),
    "numbers": _lines(lambda rng, _at: _numbers(rng)),
}
KINDS: Mapping[str, int] = {
    "python": 1545,
    "typescript": 504,
    "english": 1536,
    "chinese": 1080,
    "json": 495,
    "logs": 3827,
    "hex": 3407,
    "hex dump": 4634,
    "base64": 5411,
    "uuids": 2812,
    "numbers": 4857,
}
"""Tokens by o200k of each kind of text."""


def text_of(kind: str) -> str:
    """Return the text of a kind."""
    return _MADE[kind](random.Random(kind))


def error_of(kind: str) -> float:
    """Return how much larger the estimate is than the count, as a share of it."""
    return text_weight(text_of(kind)) / KINDS[kind] - 1


def estimate(_arena: Arena, _runs: int) -> list[Figure]:
    """The table: nothing of it depends on the machine."""
    return [
        Figure(
            f"token estimate off: {kind}",
            "%",
            {SIDECAR: round(abs(error_of(kind)) * 100, 1)},
            most=_MOST_PERCENT,
        )
        for kind in KINDS
    ]
