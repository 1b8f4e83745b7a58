"""Whether a chunk still belongs to the answer that is being read. Sans-IO.

A gateway that asks again glues a second answer to the first. Hosts differ in what tells the two
apart: most give an answer one id, some a new one to every chunk, some none to the first event.
"""

from typing import Any

from kode_sidecar.providers.openai_wire import Chunk, Delta


class AnswerIdentity:
    """What is known of the ids of one answer.

    `id` is the newest one, and `seen` counts the chunks that had it: whoever reads chunks counts
    up for each with the same id, and asks `begins` only where it differs.
    """

    def __init__(self) -> None:
        self.id: str | int | None = None
        self.seen = 0
        self._changes = False
        self._role_left = False
        self._role_waits = False
        self._opening: Any = None

    @property
    def lasts(self) -> bool:
        """The host gives an answer one id."""
        return self.seen > 1 and not self._changes and self.id is not None

    def begins(self, chunk: Chunk) -> bool:
        """Return whether another answer begins with a chunk whose id is not `id`.

        An answer opens with a role. Where ids mean nothing, since each chunk has another one, it
        must look like the first chunk did, after others that named no role.
        """
        choice = chunk.choices[0] if chunk.choices else None
        delta = choice.delta if choice else None
        has_role = delta is not None and delta.role is not None
        if not chunk.id:
            # The role of an answer may come before its id.
            self._role_waits = self._role_waits or (has_role and self.id is not None)
            return False
        has_role, self._role_waits = has_role or self._role_waits, False
        if self.id is None:
            self._open(chunk, delta)
            return False
        if self.lasts:
            begins = has_role
        else:
            opens = choice is not None and choice.finish_reason is None
            begins = opens and has_role and self._role_left and _shape(delta) == self._opening
        if begins:
            self._open(chunk, delta)
            return True
        self.id, self.seen, self._changes = chunk.id, 1, True
        self._role_left = self._role_left or not has_role
        return False

    def _open(self, chunk: Chunk, delta: Delta | None) -> None:
        self.id, self.seen = chunk.id, 1
        self._changes = self._role_left = False
        self._opening = _shape(delta)


def _shape(delta: Delta | None) -> tuple[bool, ...]:
    """Return what a chunk says something in."""
    if delta is None:
        return ()
    thoughts = delta.reasoning_content or delta.reasoning or delta.reasoning_details
    return bool(delta.content), bool(thoughts), bool(delta.tool_calls)
