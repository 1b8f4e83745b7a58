"""The user's decisions about the context: messages left out of it or pinned to it."""

from collections.abc import Callable, Collection, Iterable

from msgspec import Struct


class ContextEdits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ids of messages, in the order in which the user named them.

    The model does not see messages in `left_out`; leaving out a summary undoes its compaction. It
    always sees those in `pinned`: no summary and no lack of space removes them.
    """

    left_out: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    def edited(
        self,
        leave_out: Collection[str] = (),
        pin: Collection[str] = (),
        restore: Collection[str] = (),
    ) -> "ContextEdits":
        """Return the edits after another decision; the newest one about a message counts."""
        named = {*leave_out, *pin, *restore}
        return ContextEdits(
            left_out=_once(*(one for one in self.left_out if one not in named), *leave_out),
            pinned=_once(*(one for one in self.pinned if one not in named), *pin),
        )

    def renamed(self, new_id: Callable[[str], str | None]) -> "ContextEdits":
        """Return the edits for copies of the messages; `new_id` is None if there is no copy."""
        return ContextEdits(
            left_out=_known(map(new_id, self.left_out)), pinned=_known(map(new_id, self.pinned))
        )


def _once(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _known(ids: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(one for one in ids if one is not None)


NO_EDITS = ContextEdits()
"""No decisions of the user: the sidecar alone chooses the context."""
