"""`archive/candidate-memory.jsonl`: what the model of a run wants to be remembered (B10)."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kode_sidecar.domain.memory import MemoryItem, check_memory
from kode_sidecar.records.json_text import encode_json
from kode_sidecar.records.jsonl import JsonlFile, read_records
from kode_sidecar.records.storage_error import not_saved


class CandidateMemory:
    """`context.memory.Memory` over one file: candidates are written and nothing is recalled.

    What nobody has decided on is no memory. The file appears with the first candidate, one line
    of JSON each, the fields of `domain.memory.MemoryItem`; `name` and `now` give ids and times.
    """

    def __init__(self, path: Path, new_id: Callable[[], str], now: Callable[[], str]) -> None:
        self._path = path
        self._new_id = new_id
        self._now = now

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """None."""
        del query, scope, limit
        return ()

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Append a candidate; saved. Raises KodeError `InvalidArguments`, `Storage`."""
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
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_saved(self._path.name, error) from None
        file = JsonlFile(self._path)
        try:
            file.append(encode_json(item))
            file.sync()
        finally:
            file.close()
        return item

    def items(self) -> Sequence[MemoryItem]:
        """The candidates, oldest first; a damaged line is passed over. Raises `Storage`."""
        return read_records(self._path, msgspec.json.Decoder(MemoryItem).decode)[0]
