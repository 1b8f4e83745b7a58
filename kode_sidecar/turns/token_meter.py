"""What a session knows of the size of its requests."""

from collections.abc import Callable, Sequence

from kode_sidecar.context.token_count import (
    Estimate,
    Measured,
    Rates,
    estimate,
    learned,
    message_weight,
    with_answer,
)
from kode_sidecar.domain.message import Block, Message
from kode_sidecar.kernel.contracts import ModelRequest

ContextWindow = Callable[[str], int | None]
"""The window of a model in tokens, None where nobody knows it."""

ReturnsThinking = Callable[[str], bool]
"""Whether a model gets its reasoning back."""

REMEMBERED_ANSWERS = 200
# Fewer tokens for a request's weight than this are no count of it: some hosts leave out what they
# had cached.
_LEAST_PLAUSIBLE = 0.25


class LearnedRates:
    """What all sessions of this process have learned, by the model's name."""

    def __init__(self) -> None:
        self._rates: dict[str, Rates] = {}

    def of(self, model: str) -> Rates:
        """The rates of a model; those everybody starts with while nothing is known."""
        return self._rates.get(model, Rates())

    def learn(self, model: str, asked: Estimate, answer: Message) -> None:
        """Take the lesson of one answer."""
        if answer.usage is not None:
            self._rates[model] = learned(self.of(model), asked, answer.usage)


class TokenMeter:
    """Estimates requests of one session; the newest answers on every branch are remembered.

    So is the weight of each message: every step asks with all of them again.
    """

    def __init__(self, rates: LearnedRates) -> None:
        self._rates = rates
        self._measured: dict[str, Measured] = {}
        self._weights: dict[str, tuple[Sequence[Block], float]] = {}

    def estimate(self, request: ModelRequest) -> Estimate:
        """The size of a request."""
        return estimate(request, self._measured, self._rates.of(request.model), self._weigh)

    def answered(
        self,
        request: ModelRequest,
        asked: Estimate,
        answer: Message,
        *,
        returns_thinking: bool = True,
    ) -> None:
        """A request was answered; hosts that tell no usage, or nonsense, teach nothing.

        `returns_thinking`: later requests hold the reasoning of this answer.
        """
        usage = answer.usage
        if usage is None or answer.is_api_error_message:
            return
        if usage.input_tokens <= _LEAST_PLAUSIBLE * asked.weight:
            return
        self._rates.learn(request.model, asked, answer)
        self._measured[answer.id] = with_answer(
            asked, answer, usage, returns_thinking=returns_thinking
        )
        if len(self._measured) > REMEMBERED_ANSWERS:
            del self._measured[next(iter(self._measured))]

    def _weigh(self, message: Message) -> float:
        known = self._weights.get(message.id)
        # A request may hold a message otherwise than the tree does, under the same id.
        if known is not None and known[0] is message.content:
            return known[1]
        weight = message_weight(message)
        self._weights[message.id] = (message.content, weight)
        return weight
