"""Notifies the user, before a request, that its host reads anew what it had cached, and the price.

Hosts read what a request has in common with earlier ones from a cache, at a tenth of the price.
What must break that (a model, an effort, a window that moves) costs money that nobody sees.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from kode_sidecar import __version__
from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.context.fitting import Fitted
from kode_sidecar.agent.context.token_count import message_weight
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.budget import Prices
from kode_sidecar.core.domain.message import Message
from kode_sidecar.core.kernel.contracts import Emit
from kode_sidecar.core.protocol.turn import CachedPart, PromptCost
from kode_sidecar.infrastructure.records.session_prefix import SessionPrefix

# Hosts save what they cached for so long at the least; none says so beforehand.
_LIFE, _LONG_LIFE = timedelta(minutes=5), timedelta(hours=1)


def why_anew(before: SessionPrefix | None, now: SessionPrefix, traits: ModelTraits) -> str:
    """Return why a host cannot use what it cached of the requests with the prefix `before`."""
    if before is None:
        return ""
    if before.version != __version__:
        return "kode-sidecar was updated"
    if before.model != now.model:
        return f"The model is now {now.model}"
    if before.effort != now.effort and traits.effort_in_prefix:
        return f"The thinking effort is now {now.effort or 'the default'}"
    came = [tool.name for tool in now.tools[len(before.tools) :]]
    return f"There are new tools ({', '.join(came)})" if came and not traits.late_tools else ""


class Rereading:
    """Compares each request of a session with the one before."""

    def __init__(self, emit: Emit, prices: Callable[[str], Prices | None]) -> None:
        self._emit = emit
        self._prices = prices
        self._sent: Sequence[Message] = ()
        self._why = ""
        self._announced = ""
        self._moved = False
        self._begun: dict[str, SessionPrefix] = {}

    def begin(
        self,
        before: SessionPrefix | None,
        now: SessionPrefix,
        traits: ModelTraits,
        *,
        goes_on: bool,
    ) -> None:
        """Expect what a turn's first request finds cached. `before` was that of the last request.

        Each branch from another root is compared with its own last one. Of one that this process
        has not asked it is not known.
        """
        known = self._begun.get(now.root)
        self._begun[now.root] = now
        if not goes_on:
            return
        if known is None and before is not None and before.root not in ("", now.root):
            self.expect("The branch has not been asked since kode-sidecar began")
        else:
            self.expect(why_anew(known or before, now, traits))

    def expect(self, why: str) -> None:
        """Announce the next request as one that is read anew as a whole, unless that was done."""
        self._why = "" if why == self._announced else why
        self._announced = ""

    def announce_early(self, why: str, fitted: Fitted) -> None:
        """Notify the user of a choice whose effect comes with the next turn."""
        if why and why != self._announced:
            self.announce("", why, fitted)
        self._announced = why

    def summed_up(self) -> None:
        """A summary changed the conversation, which was announced."""
        self._sent = ()

    def before_sending(
        self, turn_id: str, fitted: Fitted, path: Callable[[], Collection[str]]
    ) -> None:
        """Announce what the host reads anew; `path` returns the ids of the request's branch."""
        sent, self._sent = self._sent, fitted.request.messages
        why, self._why = self._why, ""
        if why:
            self.announce(turn_id, why, fitted)
            return
        same = _same_length(sent, fitted.request.messages)
        # On another branch nothing is lost: what is not shown any more was answered elsewhere.
        if same < len(sent) and not self._moved and sent[same].id in path():
            self._moved = True
            self.announce(turn_id, "Older messages are no longer sent", fitted, same)

    def announce(self, turn_id: str, why: str, fitted: Fitted, same: int | None = None) -> None:
        """Notify the user; `same` is how many messages the host still has cached, None: nothing."""
        share = 1.0
        if same is not None:
            rest = fitted.request.messages[same:]
            share = sum(map(message_weight, rest)) / max(fitted.size.weight, 1.0)
        tokens = round(fitted.size.tokens * min(share, 1.0))
        text = (
            f"{why}, so its host reads about {tokens:,} tokens of this conversation anew"
            f"{price_of(tokens, self._prices(fitted.request.model))}."
        )
        self._emit(Notice(turn_id=turn_id, code="ReadAnew", message=text))


def price_of(tokens: int, prices: Prices | None) -> str:
    """Return the words for the price of reading tokens, beside that of reading them cached."""
    if prices is None:
        return "; what that costs is not known"
    cost, cached = prices.likely(tokens, 0, 0), prices.likely(tokens, tokens, 0)
    return f", for about {cost:.4f} {prices.currency} instead of {cached:.4f}"


def _same_length(old: Sequence[Message], new: Sequence[Message]) -> int:
    """Return how many messages both begin with; notes at the end of the old ones do not count."""
    length = len(old)
    while length and not old[length - 1].id:
        length -= 1
    for at, (one, other) in enumerate(zip(old[:length], new, strict=False)):
        if one.id != other.id or one.content != other.content:
            return at
    return len(old) if length <= len(new) else len(new)


def cached_part(
    shown: Sequence[Message], fitted: Fitted, now: str, *, for_an_hour: bool
) -> CachedPart | None:
    """Return what is cached of a request that begins as those that `shown` answers."""
    answers = [one for one in shown if one.role == "assistant" and one.usage is not None]
    usages = [one.usage for one in answers if one.usage is not None]
    reported = any(usage.cached_tokens or usage.cache_write_tokens for usage in usages)
    # A first request finds nothing in a cache, and some hosts bill nothing for writing to it.
    if not usages or not (reported or len(usages) == 1):
        return None
    until = _time(answers[-1].created_at) + (_LONG_LIFE if for_an_hour else _LIFE)
    if until <= _time(now):
        return None
    text = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return CachedPart(tokens=min(usages[-1].input_tokens, fitted.size.tokens), until=text)


def prompt_cost(fitted: Fitted, cached: CachedPart | None, prices: Prices) -> PromptCost:
    """Return what a host takes for reading a request."""
    tokens = fitted.size.tokens
    known = 0 if cached is None else cached.tokens
    return PromptCost(
        amount=prices.likely(tokens, known, 0),
        uncached=prices.likely(tokens, 0, 0),
        currency=prices.currency,
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
