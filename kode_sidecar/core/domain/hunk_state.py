"""The states of a hunk, and what each one means: everybody asks this table.

A state that is missing here is an error of the type checker, never one in a turn.
"""

from functools import cache
from typing import Literal, NamedTuple, get_args

HunkState = Literal[
    "proposed",
    "applied",
    "rejected",
    "replaced",
    "superseded",
    "stale",
    "conflict",
    "diverged",
    "undone",
]


class StateFacts(NamedTuple):
    """What is true of every hunk in a state.

    `words` are what the model reads of it where nothing more is known, `counted_as` is where it
    stands in the answer to a decision. `is_done`: its text stands there. `is_failed`: it was
    accepted and does not stand there, as far as anybody has seen; it may be accepted again.
    `carries_out` names the decisions that led to it. `rank`: how unlikely it is that a text which
    nobody has looked at shows it.
    """

    words: str
    counted_as: Literal["applied", "rejected", "stale", "conflicts", "nothing"]
    is_done: bool = False
    is_failed: bool = False
    carries_out: tuple[Literal["accept", "replace", "reject"], ...] = ()
    rank: int = 0


@cache
def facts(state: HunkState) -> StateFacts:
    """Return what a state means."""
    match state:
        case "proposed":
            words = "not decided yet: it waits for the user, and your reads show it already."
            return StateFacts(words, "nothing", rank=1)
        case "applied":
            words = "accepted and applied."
            return StateFacts(words, "applied", is_done=True, carries_out=("accept",))
        case "replaced":
            words = "the user replaced it."
            return StateFacts(words, "applied", is_done=True, carries_out=("accept", "replace"))
        case "rejected":
            words = "rejected by the user."
            return StateFacts(words, "rejected", carries_out=("reject",), rank=3)
        case "superseded":
            return StateFacts("replaced by a later edit of yours.", "conflicts")
        case "stale":
            words = "not applied: the file was closed, deleted or is out of step with the editor."
            return StateFacts(words, "stale", is_failed=True)
        case "conflict":
            words = "not applied: the text there changed meanwhile. Read it again before you go on."
            return StateFacts(words, "conflicts", is_failed=True)
        case "diverged":
            words = "sent, but the text there is another one now:"
            return StateFacts(words, "conflicts", is_failed=True)
        case "undone":
            words = "undone by the user: what was there before is there again."
            return StateFacts(words, "rejected", carries_out=("reject",), rank=2)


_STATES: tuple[HunkState, ...] = get_args(HunkState)

DONE: frozenset[HunkState] = frozenset(one for one in _STATES if facts(one).is_done)
"""Applied, with the text that was proposed or the user's own."""

UNSETTLED: frozenset[HunkState] = frozenset(one for one in _STATES if facts(one).is_failed)
"""Not applied, as far as anybody has seen; each may be accepted again."""
