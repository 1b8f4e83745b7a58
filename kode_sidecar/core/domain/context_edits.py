"""What the user decided about the context: messages left out of it, and messages pinned to it."""

from collections.abc import Callable, Collection, Iterable

from msgspec import Struct


class ContextEdits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ids of messages, in the order in which the user named them.

    The model is not told what is `left_out`; a summary among it is a compaction taken back. What is
    `pinned` is always told: neither a summary nor a lack of room takes its place.
    """

    left_out: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    def edited(
        self,
        leave_out: Collection[str] = (),
        pin: Collection[str] = (),
        restore: Collection[str] = (),
    ) -> "ContextEdits":
        """Return these after another decision; the newest one about a message counts."""
        named = {*leave_out, *pin, *restore}
        return ContextEdits(
            left_out=_once(*(one for one in self.left_out if one not in named), *leave_out),
            pinned=_once(*(one for one in self.pinned if one not in named), *pin),
        )

    def renamed(self, new_id: Callable[[str], str | None]) -> "ContextEdits":
        """Return the same about copies of the messages; None: of this one there is no copy."""
        return ContextEdits(
            left_out=_known(map(new_id, self.left_out)), pinned=_known(map(new_id, self.pinned))
        )


def _once(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _known(ids: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(one for one in ids if one is not None)


NO_EDITS = ContextEdits()
"""The user decided nothing: the sidecar sees to it alone."""
