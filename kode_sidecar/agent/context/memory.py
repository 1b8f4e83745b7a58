"""Memory beyond a conversation: the contract, and what a prompt is told of it (B10).

Three places keep it, all behind `Memory`: a file of a run (`records.memory_store`), the state
folder (`records.memory_store`) and a service of the user's (`providers.memory_http`).
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
"""How many a prompt is told of at most, unless a configuration says otherwise."""

MAX_NOTE_BYTES = 16_000
"""Room for the largest item there can be."""


@lru_cache(64)
def project_scope(folder: Path) -> str:
    """Return the scope of a project: its folder's name, and a hash of the path behind links."""
    path = os.path.normcase(folder)
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    return f"project:{one_line(folder.name)[:100]}-{digest[:12]}"


class Memory(Protocol):
    """Where things are remembered. Both raise KodeError: `MemoryUnavailable` (try again later),
    `MemoryRefused` (mend the settings or the words), `Storage`, `InvalidArguments`.
    """

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """Return at most `limit` items of exactly this scope, what fits `query` best first.

        Candidates are never among them.
        """
        ...

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Keep one thing; what is kept already is not kept twice. `state` says how it counts."""
        ...


@dataclass(frozen=True)
class MemoryNote:
    """What a prompt is told, and of which items."""

    text: str
    ids: tuple[str, ...]


async def recalled(
    memory: Memory, query: str, scopes: Sequence[str], limit: int, told: Collection[str] = ()
) -> list[MemoryItem]:
    """Return what fits `query` in any scope, earlier ones first, without the ids in `told`.

    Raises KodeError as `Memory.recall` does.
    """
    found: list[MemoryItem] = []
    for scope in scopes:
        room = limit - len(found)
        if room > 0:
            # Those told already must not take the places of others.
            items = await memory.recall(query, scope, min(room + len(told), 100))
            found += [item for item in items if item.id not in told][:room]
    return found


def memory_note(prompts: PromptFiles, items: Sequence[MemoryItem]) -> MemoryNote | None:
    """Return the items as data in a frame that says so; None without any.

    Equal items give equal bytes, at most `MAX_NOTE_BYTES`. Raises KodeError `ConfigInvalid`.
    """
    lines: list[str] = []
    ids: list[str] = []
    room = MAX_NOTE_BYTES
    for item in items:
        # On one line, so that no item can look like another one, or like a heading.
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
