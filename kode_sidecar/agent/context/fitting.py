"""Make a request fit the model's window by leaving messages out, in a fixed order (C10). Sans-IO.

The system prompt, a summary and the newest messages stay; the user's words stay longer than tool
results; the oldest go first. A call and its result stay or go together.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil

import msgspec

from kode_sidecar.agent.context.token_count import Estimate, message_weight
from kode_sidecar.core.domain.message import Message, TextBlock, ToolResultBlock, texts_of
from kode_sidecar.core.kernel.contracts import ModelRequest

COMPACT_AT = 0.92
"""The share of the window at which history is compacted."""
# Above this share messages are left out, so that some room stays for the answer.
_FULL_AT = 0.96
# The answer length that hosts allow by default; with less room, `max_tokens` must be sent.
_USUAL_ANSWER = 32_768
_SMALLEST_ANSWER = 256
# Messages are left out in steps of this share of the window: so a request that grows a little
# keeps its beginning, which hosts cache.
_STEP_SHARE = 0.1

Measure = Callable[[ModelRequest], Estimate]


@dataclass(frozen=True)
class Fitted:
    """A request as it is sent, with its size, and the size before anything was left out.

    `window` is the model's, in tokens; None if unknown: then nothing is left out.
    """

    request: ModelRequest
    size: Estimate
    whole: Estimate
    window: int | None

    @property
    def is_due(self) -> bool:
        """True if history should be compacted before the request is sent."""
        return self.window is not None and self.whole.tokens >= COMPACT_AT * self.window

    @property
    def fits(self) -> bool:
        """True if the request most likely fits the window."""
        return self.window is None or self.size.safe <= self.window

    @property
    def is_trimmed(self) -> bool:
        """True if messages or results were left out."""
        return self.size.weight < self.whole.weight


def fit(
    request: ModelRequest, window: int | None, measure: Measure, pinned: Collection[str] = ()
) -> Fitted:
    """Leave out what does not fit, then limit the answer to the room that is left.

    `pinned` messages stay, even if the request is then too large.
    """
    whole = size = measure(request)
    if window is None:
        return Fitted(_sized(request, size), size, whole, None)
    limit = int(window * _FULL_AT)
    if whole.safe > limit:
        # Tokens per weight of this request, including hidden tokens.
        rate = whole.safe / whole.weight
        excess = (whole.safe - limit) / rate
        kept = trim(request.messages, excess, limit / rate, pinned)
        request = replace(request, messages=kept)
        size = measure(request)
    budget = _budget(request.max_tokens, window - size.safe)
    sent = _sized(replace(request, max_tokens=budget), size)
    return Fitted(sent, size, whole, window)


def _sized(request: ModelRequest, size: Estimate) -> ModelRequest:
    return replace(
        request,
        prompt_tokens=size.safe,
        prompt_likely=size.tokens,
        prompt_at_most=size.most,
    )


def _budget(wanted: int | None, room: int) -> int | None:
    """Return `max_tokens`: hosts refuse a prompt and answer that exceed the window together."""
    room = max(room, _SMALLEST_ANSWER)
    if wanted is None:
        return room if room < _USUAL_ANSWER else None
    return min(wanted, room)


def trim(
    messages: Sequence[Message], excess: float, room: float, pinned: Collection[str] = ()
) -> list[Message]:
    """Return the messages with at least `excess` weight left out, as far as possible.

    They stay in the order that `builder.normalize_messages_for_api` makes. `room` is the weight
    allowed for all of them. `pinned` messages stay unchanged.
    """
    if excess <= 0:
        return list(messages)
    step = max(room * _STEP_SHARE, 1.0)
    cut = _Cut(messages, ceil(excess / step) * step, pinned)
    recent = _last_prompt(messages)
    cut.shorten_results(0, recent)
    cut.drop_answers(0, recent)
    cut.shorten_results(recent, len(messages) - 1)
    cut.drop_prompts(0, recent)
    return cut.left()


class _Cut:
    """Messages being left out until enough weight is gone."""

    def __init__(self, messages: Sequence[Message], excess: float, pinned: Collection[str]) -> None:
        self._messages: list[Message | None] = list(messages)
        self._excess = excess
        self._pinned = pinned

    def left(self) -> list[Message]:
        return [message for message in self._messages if message is not None]

    def shorten_results(self, start: int, end: int) -> None:
        """Replace tool results by a short sentence."""
        for position in range(start, end):
            message = self._messages[position]
            if message is not None and message.role == "tool" and self._may_go(message):
                self._replace(position, message.with_results(_stub))

    def drop_answers(self, start: int, end: int) -> None:
        """Leave out answers, and the results of the calls in them."""
        for position in range(start, end):
            message = self._messages[position]
            if message is not None and message.role == "assistant" and self._may_go(message):
                self._replace(position, None)
                below = position + 1
                if below < end and _role(self._messages[below]) == "tool":
                    self._replace(below, None)

    def drop_prompts(self, start: int, end: int) -> None:
        """Leave out prompts and reminders; only when no answers are left between them."""
        for position in range(start, end):
            message = self._messages[position]
            if message is None or message.role != "user" or message.is_summary:
                continue
            if self._may_go(message):
                self._replace(position, None)

    def _may_go(self, message: Message) -> bool:
        return self._excess > 0 and message.id not in self._pinned

    def _replace(self, position: int, new: Message | None) -> None:
        old = self._messages[position]
        assert old is not None
        self._excess -= message_weight(old) - (message_weight(new) if new is not None else 0.0)
        self._messages[position] = new


def shortened_results(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a short sentence in place of each long tool result."""
    return [one.with_results(_stub) if one.role == "tool" else one for one in messages]


def _role(message: Message | None) -> str:
    """Return the role; empty for a message that is left out."""
    return message.role if message is not None else ""


def _last_prompt(messages: Sequence[Message]) -> int:
    found = (at for at in range(len(messages) - 1, -1, -1) if messages[at].is_prompt)
    return next(found, 0)


def _stub(block: ToolResultBlock) -> ToolResultBlock:
    size = sum(map(len, texts_of(block.content)))
    summary = f" It was: {block.summary}." if block.summary else ""
    text = (
        f"[Left out to make room: {size} characters.{summary} "
        "Call the tool again if you need them.]"
    )
    if len(text) >= size and all(isinstance(part, TextBlock) for part in block.content):
        return block
    return msgspec.structs.replace(block, content=(TextBlock(text=text),))
