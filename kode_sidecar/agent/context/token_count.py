"""Estimate the tokens of a request from the host's counts and the weight of newer text.

Sans-IO. There is no tokenizer: the host reports the size of each request with its answer, and
newer messages are weighed by `text_weight`; each model's real rate is learned.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

import msgspec

from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec

# Tokens per byte of a schema, including the text that hosts add around a tool.
_SCHEMA_RATE = 0.32
MESSAGE_WEIGHT = 4.0
"""The tokens that mark the beginning and end of a message."""
IMAGE_WEIGHT = 1_024.0

MARGIN = 0.05
_UNCOUNTED = 4.0
FIRST_MARGIN = 0.15

# The default rates count like a measurement of this many tokens, and older measurements count less
# and less: conversations change from prose to code.
_PRIOR_WEIGHT = 400.0
_FORGETTING = 0.8
_SMALLEST_STEP = 24.0
_SCALES = (0.4, 2.5)
# If a request has lost more than this share since a measurement, an estimate by bytes is better.
_LOST_SHARE = 0.25


def message_weight(message: Message) -> float:
    """Return the tokens of a message as an average tokenizer counts them."""
    return MESSAGE_WEIGHT + sum(map(block_weight, message.content))


def block_weight(block: Block) -> float:
    """Return the tokens of a block as an average tokenizer counts them; images are a constant."""
    match block:
        case TextBlock() | ThinkingBlock():
            return text_weight(block.text)
        case ToolUseBlock():
            arguments = msgspec.json.encode(block.input).decode()
            return MESSAGE_WEIGHT + text_weight(block.name) + text_weight(arguments)
        case ToolResultBlock():
            return MESSAGE_WEIGHT + sum(map(block_weight, block.content))
        case ResourceBlock():
            return text_weight(block.uri) + text_weight(block.text or "")
        case ImageBlock():
            return IMAGE_WEIGHT


@lru_cache(maxsize=256)
def tool_weight(tool: ToolSpec) -> float:
    """Return the tokens a tool takes: its description and its schema."""
    return text_weight(tool.description) + len(msgspec.json.encode(tool.schema)) * _SCHEMA_RATE


@lru_cache(maxsize=16)
def system_weight(system: str) -> float:
    """Return the tokens of a system prompt; cached, because requests repeat it."""
    return text_weight(system)


@dataclass(frozen=True)
class Rates:
    """The learned rates of a model: real tokens per weight, and tokens the host adds unseen."""

    scale: float = 1.0
    hidden: float = 0.0
    measured: bool = False
    seen_tokens: float = _PRIOR_WEIGHT
    seen_weight: float = _PRIOR_WEIGHT

    def after_whole(self, weight: float, tokens: int) -> "Rates":
        """Learn from a whole request: tokens that the rate does not explain are hidden."""
        hidden = max(tokens - self.scale * weight, -0.5 * weight)
        return replace(self, hidden=hidden, measured=True)

    def after_growth(self, weight: float, tokens: int) -> "Rates":
        """Learn from how much a request grew since it was last measured."""
        low, high = _SCALES
        if weight < _SMALLEST_STEP or not low * weight <= tokens <= high * weight:
            return self
        seen_tokens = self.seen_tokens * _FORGETTING + tokens
        seen_weight = self.seen_weight * _FORGETTING + weight
        return replace(
            self,
            scale=seen_tokens / seen_weight,
            measured=True,
            seen_tokens=seen_tokens,
            seen_weight=seen_weight,
        )


@dataclass(frozen=True)
class Measured:
    """The weight of an answer with its request, and the tokens that the host counted."""

    weight: float
    tokens: int


@dataclass(frozen=True)
class Estimate:
    """The size of a request in tokens. It will hardly exceed `safe`.

    `counted` is how many messages, from the first on, the host has counted; the others, or all if
    it is 0, are estimated by their bytes. `weight` is that of the whole request.
    """

    tokens: int
    safe: int
    counted: int
    weight: float
    base: Measured | None = None

    @property
    def most(self) -> int:
        """The upper limit: several times the estimate for what the host has not counted yet.

        That is about a token for each byte of prose, and more than one for dense text.
        """
        counted = self.base or Measured(0.0, 0)
        grown = max(self.weight - counted.weight, 0.0) * _UNCOUNTED
        return ceil(counted.tokens * (1 + MARGIN) + grown)


def estimate(
    request: ModelRequest,
    measured: Mapping[str, Measured],
    rates: Rates,
    weigh: Callable[[Message], float] = message_weight,
) -> Estimate:
    """Return the size of a request.

    `measured` are answers by message id. The newest one in the request is the base, unless much of
    its own request is gone: then everything is estimated by bytes. `weigh` is `message_weight` or
    a cache of it.
    """
    weights = [weigh(message) for message in request.messages]
    fixed = system_weight(request.system) + sum(map(tool_weight, request.tools))
    weight = fixed + sum(weights)
    grown = 0.0
    for position in range(len(weights) - 1, -1, -1):
        base = measured.get(request.messages[position].id)
        if base is not None:
            lost = base.weight + grown - weight
            if abs(lost) > _LOST_SHARE * base.weight:
                break
            change = rates.scale * (weight - base.weight)
            tokens = max(round(base.tokens + change), 1)
            safe = tokens + round(abs(change) * MARGIN)
            return Estimate(tokens, safe, position + 1, weight, base)
        grown += weights[position]
    tokens = max(round(rates.scale * weight + rates.hidden), 1)
    margin = MARGIN if rates.measured else FIRST_MARGIN
    return Estimate(tokens, round(tokens * (1 + margin)), 0, weight)


def learned(rates: Rates, asked: Estimate, usage: Usage) -> Rates:
    """Return the token rates, corrected by the host's count for one request."""
    if asked.base is None:
        return rates.after_whole(asked.weight, usage.input_tokens)
    growth = asked.weight - asked.base.weight
    return rates.after_growth(growth, usage.input_tokens - asked.base.tokens)


def with_answer(
    asked: Estimate, answer: Message, usage: Usage, *, returns_thinking: bool
) -> Measured:
    """Return the measurement that an answer provides for later requests.

    Reasoning is excluded if the model does not get it back, or if the host only counted it and
    never sent it.
    """
    size = usage.input_tokens + usage.output_tokens
    weight = message_weight(answer)
    thoughts = [block for block in answer.content if isinstance(block, ThinkingBlock)]
    thought = sum(map(block_weight, thoughts))
    if not returns_thinking:
        weight -= thought
    # Some hosts count reasoning apart from the output: then only the total includes it.
    if not (thoughts and returns_thinking) and usage.total_tokens <= size:
        size -= min(usage.reasoning_tokens or round(thought), usage.output_tokens)
    return Measured(asked.weight + weight, size)


def shares(estimate: Estimate, weights: Sequence[float]) -> list[int]:
    """Return whole tokens for each part, in proportion to the weights; their sum is exact."""
    total, done, given = sum(weights) or 1.0, 0.0, 0
    found: list[int] = []
    for weight in weights:
        done += weight
        upto = round(estimate.tokens * done / total)
        found.append(upto - given)
        given = upto
    return found


_TOKENS_PER_PIECE = 0.95
# A space belongs to the word after it; before a number it is a token of its own, mostly.
_TOKENS_PER_SUCH_SPACE = 0.85
_TOKENS_PER_BYTE = 0.25  # of what is not ASCII
# Only long runs can be text without words; most texts have none.
_RUN = re.compile(r"[A-Za-z0-9+/]{14,}={0,2}")
# Each kind of run without words, and its tokens per character.
_DENSE = (
    (re.compile(r"(?=[a-fA-F]{0,20}[0-9])[0-9a-fA-F]{16,}"), 0.60),  # hex
    (
        re.compile(r"(?=[A-Za-z+/]{0,40}[0-9])(?=[a-z0-9+/]{0,40}[A-Z])[A-Za-z0-9+/]{24,}={0,2}"),
        0.69,  # base64
    ),
    (re.compile(r"[a-z]{20,}|[A-Z]{14,}"), 0.35),  # letters that are no words
)
# Of a long text only this many samples of this length are read, evenly spread.
_SAMPLES = 6
_SAMPLE = 256


def text_weight(text: str) -> float:
    """Return the tokens of a text as a usual tokenizer counts them, within 15 % or so.

    Tokenizers cut a text into words, groups of three digits, and marks, mostly one token each: so
    these are counted. Random strings have no words and are weighed by length, non-ASCII text by
    its bytes. `python3 dev.py bench --only estimate` shows the error.
    """
    size = len(text)
    if size <= _SAMPLES * _SAMPLE:
        return _weight(text)
    step = (size - _SAMPLE) / (_SAMPLES - 1)
    starts = [int(number * step) for number in range(_SAMPLES)]
    seen = sum(_weight(text[at : at + _SAMPLE]) for at in starts)
    return seen * size / (_SAMPLES * _SAMPLE)


def _kinds(chars_of: Mapping[str, Iterable[str]], other: str) -> bytes:
    """Return the table for `bytes.translate` that maps each character to its kind."""
    table = bytearray(other.encode() * 256)
    for kind, chars in chars_of.items():
        for char in chars:
            table[ord(char)] = ord(kind)
    return bytes(table)


# Thousands of messages may be weighed before a request. So no regular expression reads the text:
# each byte is mapped to its kind, and only fixed byte strings of kinds are counted.
_KINDS = _kinds(
    {
        "a": ascii_lowercase,
        "A": ascii_uppercase,
        "0": digits,
        "n": "\r\n",
        " ": " ",
        "t": "\t",
        "v": "\v\f\x1c\x1d\x1e\x1f",
        "u": map(chr, range(0x80, 0x100)),
    },
    other=".",
)
_IN_RUN = _kinds({"r": ascii_letters + digits + "+/"}, other=".")
_LONG_RUN = b"r" * 14
_LOWER = _kinds({"a": "a"}, other=" ")
_UPPER = _kinds({"A": "A"}, other=" ")
_LINE_ENDS = _kinds({"n": "n"}, other=" ")
_BLANKS = _kinds({" ": " t", "n": "n"}, other=".")


def _weight(text: str) -> float:
    data, weight = text.encode("utf-8", "replace"), 0.0
    if _LONG_RUN in data.translate(_IN_RUN):
        weight, text = _dense_weight(text)
        data = text.encode("utf-8", "replace")
    kinds = data.translate(_KINDS)
    spaces = kinds.count(b" 0") + kinds.count(b"u0")
    return (
        weight
        + kinds.count(b"u") * _TOKENS_PER_BYTE
        + _pieces(kinds) * _TOKENS_PER_PIECE
        + spaces * _TOKENS_PER_SUCH_SPACE
    )


def _dense_weight(text: str) -> tuple[float, str]:
    """Return the weight of runs without words, and the text without them."""
    weight, runs = 0.0, " ".join(_RUN.findall(text))
    for pattern, rate in _DENSE:
        if dense := pattern.findall(runs):
            weight += len("".join(dense)) * rate
            runs = pattern.sub("", runs)
    return weight, f"{_RUN.sub('', text)} {runs}"


def _pieces(kinds: bytes) -> int:
    """Return how many pieces a tokenizer makes of ASCII text, given as the kinds of its bytes."""
    words = len(kinds.translate(_LOWER).split()) + len(kinds.translate(_UPPER).split())
    words -= kinds.count(b"Aa") - kinds.count(b"AAa")  # "Word" is one, "HTTPword" two
    threes = kinds
    for kind in (b".", b"0"):  # marks and digits, three to a piece
        threes = threes.replace(kind * 3, b"3").replace(kind * 2, b"3")
    groups = threes.count(b"3") + threes.count(b".") + threes.count(b"0")
    lines = len(kinds.translate(_LINE_ENDS).split())  # each with the indentation below it
    blanks = kinds.translate(_BLANKS)
    gaps = blanks.count(b".  ") + blanks.startswith(b"  ")
    return words + groups + lines + gaps
