"""Define memory beyond a conversation, and show it in prompts (B10).

There are three stores, all behind `Memory`: a file of a run (`records.memory_store`), the state
folder (`records.memory_store`) and the user's own service (`providers.memory_http`).
"""

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.core.domain.memory import MAX_CONTENT_CHARS, MemoryItem
from kode_sidecar.core.text.shown_text import one_line

"""Where the model's notes go: nowhere, to the user for a decision, or to a service."""

RECALLED = 10
"""The most items that a prompt gets by default."""

MAX_NOTE_BYTES = 16_000
"""The size limit of a note; the largest possible item fits."""


@lru_cache(64)
def project_scope(folder: Path) -> str:
    """Return the scope of a project: its folder's name, and a hash of the path."""
    path = os.path.normcase(folder)
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    return f"project:{one_line(folder.name)[:100]}-{digest[:12]}"


class Memory(Protocol):
    """A store of memories. Both methods raise KodeError: `MemoryUnavailable` (try again later),
    `MemoryRefused` (fix the settings or the text), `Storage`, `InvalidArguments`.
    """

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """Return at most `limit` items of exactly this scope, the best match for `query` first.

        Never returns candidates.
        """
        ...

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Store one item, unless it is stored already; its `state` says if it awaits the user."""
        ...


@dataclass(frozen=True)
class MemoryNote:
    """The text for a prompt, and the ids of the items in it."""

    text: str
    ids: tuple[str, ...]


async def recalled(
    memory: Memory, query: str, scopes: Sequence[str], limit: int, reported: Collection[str] = ()
) -> list[MemoryItem]:
    """Return the matches for `query` in order of `scopes`, without the ids in `reported`.

    Raises KodeError as `Memory.recall` does.
    """
    found: list[MemoryItem] = []
    for scope in scopes:
        room = limit - len(found)
        if room > 0:
            # Ask for more, because known items are dropped.
            items = await memory.recall(query, scope, min(room + len(reported), 100))
            found += [item for item in items if item.id not in reported][:room]
    return found


def memory_note(prompts: PromptFiles, items: Sequence[MemoryItem]) -> MemoryNote | None:
    """Return the items in a frame that marks them as data; None without items.

    Equal items give equal bytes, at most `MAX_NOTE_BYTES`. Raises KodeError `ConfigInvalid`.
    """
    lines: list[str] = []
    ids: list[str] = []
    room = MAX_NOTE_BYTES
    for item in items:
        # On one line, so that no item can pose as another item or a heading.
        tags = f" [{', '.join(map(one_line, item.tags))}]" if item.tags else ""
        line = f"- {one_line(item.content[:MAX_CONTENT_CHARS])}{tags}"
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
        ids.append(item.id)
    if not lines:
        return None
    return MemoryNote(prompts.read("memory", {"memories": "\n".join(lines)}), tuple(ids))
