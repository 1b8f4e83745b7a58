"""Stores memories on disk (B10): the user's, with their decisions, and the candidates of a job."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kode_sidecar.core.domain.memory import MemoryItem, MemoryState, best_matches, check_memory
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.core.whole_files import sync_folder
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import make_folder, not_read, not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, encode_json
from kode_sidecar.infrastructure.records.jsonl import append_lines, read_records

MAX_CANDIDATES = 200
"""The number of candidates that may wait for a decision."""

_MAX_FILE_BYTES = 100_000
# Our ids: longer than any device name, and without characters that lead out of a folder (W11).
_ID = re.compile(r"[a-z0-9]{6,64}")


class MemoryStore:
    """`context.memory.Memory` over the user's decisions; use it on the event loop."""

    def __init__(
        self, storage_root: Path, new_id: Callable[[], str], now: Callable[[], str]
    ) -> None:
        self._folder = storage_root / "memory"
        self._new_id = new_id
        self._now = now
        # Both `decide` and `write` read before they write.
        self._writing = asyncio.Lock()

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """Return the best accepted memories of this scope. Raises KodeError `Storage`."""
        if limit < 1 or not self._folder.exists():
            return ()
        accepted = await self.items("accepted")
        return best_matches((item for item in accepted if item.scope == scope), query, limit)

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Save a candidate, unless the same content exists in this scope, in any state.

        Raises KodeError `InvalidArguments`, `MemoryRefused` when too many wait, `Storage`.
        """
        check_memory(content, scope, tags)
        content = fix_surrogates(content)
        async with self._writing:
            known = await self.items()
            for item in known:
                if (item.content, item.scope) == (content, scope):
                    return item
            if sum(item.state == "candidate" for item in known) >= MAX_CANDIDATES:
                text = (
                    f"{MAX_CANDIDATES} notes wait for the user's decision; ask the user to decide."
                )
                raise KodeError("MemoryRefused", text)
            item = MemoryItem(
                id=self._new_id(),
                content=content,
                scope=scope,
                tags=tuple(map(fix_surrogates, tags)),
                created_at=self._now(),
                state="candidate",
            )
            await asyncio.to_thread(self._save, item)
        return item

    async def items(self, state: MemoryState | None = None) -> list[MemoryItem]:
        """Return all memories, or those in one state, oldest first, without damaged files.

        Raises KodeError `Storage`.
        """
        items = await asyncio.to_thread(self._load)
        return [item for item in items if state in (None, item.state)]

    async def decide(self, accepted: Sequence[str], rejected: Sequence[str]) -> None:
        """Accept some memories, then delete others, whatever their state; saves both.

        Raises KodeError `MemoryNotFound`, before any change, and `Storage`.
        """
        async with self._writing:
            known = {item.id: item for item in await self.items()}
            for memory_id in (*accepted, *rejected):
                if memory_id not in known:
                    text = f"There is no memory {memory_id!r}; kode/memory/list tells which ones."
                    raise KodeError("MemoryNotFound", text)
            for memory_id in accepted:
                item = msgspec.structs.replace(known[memory_id], state="accepted")
                await asyncio.to_thread(self._save, item)
            if rejected:
                await asyncio.to_thread(self._remove, rejected)

    def _load(self) -> list[MemoryItem]:
        found: list[MemoryItem] = []
        try:
            paths = sorted(self._folder.glob("*.json"))
        except OSError as error:
            raise not_read(self._folder.name, error) from None
        for path in paths:
            try:
                if _ID.fullmatch(path.stem) and path.stat().st_size <= _MAX_FILE_BYTES:
                    item = msgspec.json.decode(path.read_bytes(), type=MemoryItem)
                    if item.id == path.stem:
                        found.append(item)
            except (OSError, *DECODE_ERRORS):
                continue  # deleted meanwhile, or damaged
        return sorted(found, key=lambda item: (item.created_at, item.id))

    def _save(self, item: MemoryItem) -> None:
        path = self._folder / f"{item.id}.json"
        make_folder(self._folder)
        replace_file(path, encode_json(item), durable=True)

    def _remove(self, ids: Sequence[str]) -> None:
        try:
            for memory_id in ids:
                (self._folder / f"{memory_id}.json").unlink(missing_ok=True)
            sync_folder(self._folder)
        except OSError as error:
            raise not_saved(self._folder.name, error) from None


class CandidateMemory:
    """`context.memory.Memory` over one file: it writes candidates and recalls nothing.

    Undecided candidates are never recalled. The first candidate creates the file; each is one line
    of JSON with the fields of `domain.memory.MemoryItem`; `new_id` and `now` return ids and times.
    """

    def __init__(self, path: Path, new_id: Callable[[], str], now: Callable[[], str]) -> None:
        self._path = path
        self._new_id = new_id
        self._now = now

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """Return nothing."""
        del query, scope, limit
        return ()

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Append and save a candidate. Raises KodeError `InvalidArguments`, `Storage`."""
        check_memory(content, scope, tags)
        for item in self.items():
            if (item.content, item.scope) == (content, scope):
                return item
        item = MemoryItem(
            id=self._new_id(),
            content=content,
            scope=scope,
            tags=tuple(tags),
            created_at=self._now(),
            state="candidate",
        )
        make_folder(self._path.parent, self._path.name)
        append_lines(self._path, [encode_json(item)])
        return item

    def items(self) -> Sequence[MemoryItem]:
        """Return the candidates, oldest first, without damaged lines. Raises `Storage`."""
        return read_records(self._path, msgspec.json.Decoder(MemoryItem).decode)[0]
