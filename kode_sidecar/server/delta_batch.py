"""Deltas that wait to be written, merged per block."""

from collections import deque

from kode_sidecar.domain.agent_event import BlockDelta

_PIECES_PER_CHUNK = 64
_CHUNK_CHARS = 8 * 1024


class DeltaBatch:
    """Neighbouring deltas of the queue. Not thread-safe; the outbox holds its lock."""

    __slots__ = ("_growths",)

    def __init__(self) -> None:
        self._growths: dict[str, _Growth] = {}

    @property
    def empty(self) -> bool:
        return not self._growths

    def add(self, delta: BlockDelta) -> bool:
        """Join `delta`; False when it does not continue what is pending of its block."""
        growth = self._growths.get(delta.block_id)
        if growth is None:
            self._growths[delta.block_id] = _Growth(delta)
            return True
        if growth.end != delta.at:
            return False
        growth.append(delta.add)
        return True

    def take(self, max_chars: int) -> tuple[list[BlockDelta], int]:
        """Remove about `max_chars` (at least one piece) from the front; with their length."""
        deltas: list[BlockDelta] = []
        taken = 0
        while self._growths and (taken < max_chars or not deltas):
            block_id, growth = next(iter(self._growths.items()))
            at = growth.at
            text = growth.take(max_chars - taken)
            deltas.append(BlockDelta(block_id, at, text))
            taken += len(text)
            if growth.at == growth.end:
                del self._growths[block_id]
        return deltas, taken


class _Growth:
    """The pending text of one block: chunks of many pieces, so that memory is the text's own."""

    __slots__ = ("_chunks", "_piece_chars", "_pieces", "at", "end")

    def __init__(self, delta: BlockDelta) -> None:
        self.at = delta.at
        self.end = delta.at + len(delta.add)
        self._chunks: deque[str] = deque()
        self._pieces = [delta.add]
        self._piece_chars = len(delta.add)

    def append(self, add: str) -> None:
        self.end += len(add)
        self._pieces.append(add)
        self._piece_chars += len(add)
        if len(self._pieces) >= _PIECES_PER_CHUNK or self._piece_chars >= _CHUNK_CHARS:
            self._close_chunk()

    def take(self, max_chars: int) -> str:
        """The oldest text, whole chunks, at least one."""
        self._close_chunk()
        taken: list[str] = []
        length = 0
        while self._chunks and (not taken or length + len(self._chunks[0]) <= max_chars):
            chunk = self._chunks.popleft()
            taken.append(chunk)
            length += len(chunk)
        self.at += length
        return "".join(taken)

    def _close_chunk(self) -> None:
        if self._pieces:
            self._chunks.append("".join(self._pieces))
            self._pieces.clear()
            self._piece_chars = 0
