"""A request made to fit the model's window (C10). Sans-IO."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kode_sidecar.context.compaction import COMPACT_AT
from kode_sidecar.context.token_count import Estimate
from kode_sidecar.context.trimming import trim
from kode_sidecar.kernel.contracts import ModelRequest

# What is left for the answer at least; above that, messages are left out.
_FULL_AT = 0.96
# What hosts allow an answer when nothing is asked for; in a smaller room they must be told.
_USUAL_ANSWER = 32_768
_SMALLEST_ANSWER = 256

Measure = Callable[[ModelRequest], Estimate]


@dataclass(frozen=True)
class Fitted:
    """A request as it is sent, with its size, and the size of all there was to say.

    `window` is the model's, in tokens; None where nobody knows it: then nothing is left out.
    """

    request: ModelRequest
    size: Estimate
    whole: Estimate
    window: int | None

    @property
    def is_due(self) -> bool:
        """Whether history should be summed up before anything is sent."""
        return self.window is not None and self.whole.tokens >= COMPACT_AT * self.window

    @property
    def fits(self) -> bool:
        """Whether the model can be expected to take it."""
        return self.window is None or self.size.safe <= self.window

    @property
    def is_trimmed(self) -> bool:
        """Whether something was left out."""
        return self.size.weight < self.whole.weight


def fit(request: ModelRequest, window: int | None, measure: Measure) -> Fitted:
    """Leave out what there is no room for, then keep the answer to the room that is left."""
    whole = size = measure(request)
    if window is None:
        return Fitted(request, size, whole, None)
    limit = int(window * _FULL_AT)
    if whole.safe > limit:
        # Tokens per weight of this very request; what is hidden counts as part of it.
        rate = whole.safe / whole.weight
        excess = (whole.safe - limit) / rate
        kept = trim(request.messages, excess, limit / rate)
        request = replace(request, messages=kept)
        size = measure(request)
    budget = _budget(request.max_tokens, window - size.safe)
    sent = replace(request, max_tokens=budget, prompt_tokens=size.safe)
    return Fitted(sent, size, whole, window)


def _budget(wish: int | None, room: int) -> int | None:
    """`max_tokens`: prompt and answer together must fit into the window, or hosts refuse."""
    room = max(room, _SMALLEST_ANSWER)
    if wish is None:
        return room if room < _USUAL_ANSWER else None
    return min(wish, room)
