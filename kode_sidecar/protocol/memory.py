"""Params and results of `kode/memory/*`."""

from typing import Literal

from msgspec import Struct

MemoryMode = Literal["disabled", "candidate", "external"]
MemoryState = Literal["candidate", "accepted"]
MemoryAction = Literal["accept", "reject"]


class MemoryListParams(Struct, frozen=True, kw_only=True):
    """All memories, or those in one state."""

    state: MemoryState | None = None


class MemoryView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something the model wants to be remembered, or the user has accepted.

    `scope`: `user` holds everywhere, `project:NAME-HASH` in one project.
    """

    memory_id: str
    content: str
    scope: str
    state: MemoryState
    created_at: str
    tags: tuple[str, ...] = ()


class MemoryListResult(Struct, frozen=True, kw_only=True):
    """What the state folder keeps, oldest first.

    `mode` is the setting `memory_mode`: with `external` a service remembers, and what stands here
    is from before; with `disabled` nothing here is told to a model.
    """

    memories: tuple[MemoryView, ...]
    mode: MemoryMode


class MemoryDecision(Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of one memory. `reject` forgets it for good, also if it was accepted before."""

    memory_id: str
    action: MemoryAction


class MemoryDecideParams(Struct, frozen=True, kw_only=True):
    """Decisions; one unknown id, and nothing is done. Of two for one memory the last one counts."""

    decisions: tuple[MemoryDecision, ...]
