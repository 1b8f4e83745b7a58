"""The only writer of stdout: a queue, a thread, and deltas that merge while they wait."""

import asyncio
import os
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.handshake import LIMITS
from kode_sidecar.servers.lsp.codec import LSP, RpcDialect

_PIECES_PER_CHUNK = 64
_CHUNK_CHARS = 8 * 1024


class DeltaBatch:
    """Adjacent deltas of the queue, merged. Not thread-safe; the outbox holds its lock."""

    __slots__ = ("_growths",)

    def __init__(self) -> None:
        self._growths: dict[str, _Growth] = {}

    @property
    def empty(self) -> bool:
        return not self._growths

    def add(self, delta: BlockDelta) -> bool:
        """Merge `delta`; return False if it does not continue the pending text of its block."""
        growth = self._growths.get(delta.block_id)
        if growth is None:
            self._growths[delta.block_id] = _Growth(delta)
            return True
        if growth.end != delta.at:
            return False
        growth.append(delta.add)
        return True

    def take(self, max_chars: int) -> tuple[list[BlockDelta], int]:
        """Remove about `max_chars` (at least one chunk) from the front; return them and length."""
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
    """The pending text of one block, its pieces joined in chunks, which saves memory."""

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
        """Remove and return the oldest text, in whole chunks, at least one."""
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


BATCH_BYTES = 64 * 1024
# Of messages that come faster, only the first is written at once. Deltas wait longer: they merge.
DELTA_BURST_SECONDS = 0.001
BURST_SECONDS = 0.0002
HIGH_WATER_BYTES = 1024 * 1024
LOW_WATER_BYTES = 256 * 1024
PIPE_BUF = 0 if sys.platform == "win32" else select.PIPE_BUF
HARD_LIMIT_BYTES = LIMITS["maxQueuedBytes"]

_Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]
_Taken = bytes | list[BlockDelta] | threading.Event


class Outbox:
    """Sends all messages of the process through one first-in-first-out queue (O9).

    `put` and `put_delta` may be called from any thread and never block. A delta merges into the
    pending deltas unless something else was put behind them. `on_fatal(reason)` is called once,
    from any thread, if the client is gone or leaves more than the hard limit unread; after that
    nothing is written. `wait_first` runs on the writer's thread before its first write.
    """

    def __init__(
        self,
        fd: int,
        *,
        on_fatal: Callable[[str], None],
        wait_first: Callable[[], None] = lambda: None,
        dialect: RpcDialect = LSP,
    ) -> None:
        self._fd = fd
        self._dialect = dialect
        self._on_fatal = on_fatal
        self._wait_first = wait_first
        self._queue: deque[bytes | DeltaBatch | threading.Event] = deque()
        self._pending_bytes = 0
        self._waiters: list[_Waiter] = []
        self._lock = threading.Lock()
        self._gate = threading.Lock()  # the writer sleeps on it; released once per wake-up
        self._gate.acquire()
        self._asleep = False
        self._dead = False
        self._ready = _readiness(fd)
        self._wrote_at_once = 0.0

    @property
    def pending_bytes(self) -> int:
        """The bytes not written yet; text of deltas counts one byte per character."""
        return self._pending_bytes

    def start(self) -> None:
        threading.Thread(target=self._run, name="kode-outbox", daemon=True).start()

    def put(self, body: bytes) -> None:
        """Queue one message."""
        with self._lock:
            if self._written_at_once(body, len(body), BURST_SECONDS):
                return
            self._queue.append(body)
            self._grow(len(body))
        self._check_limit()

    def put_delta(self, delta: BlockDelta) -> None:
        """Queue growth of a block."""
        with self._lock:
            if self._written_at_once([delta], len(delta.add), DELTA_BURST_SECONDS):
                return
            tail = self._queue[-1] if self._queue else None
            if not (isinstance(tail, DeltaBatch) and tail.add(delta)):
                tail = DeltaBatch()
                tail.add(delta)
                self._queue.append(tail)
            self._grow(len(delta.add))
        self._check_limit()

    async def flow(self) -> None:
        """Wait until a slow client has caught up. Returns at once below the high-water mark."""
        if self._pending_bytes <= HIGH_WATER_BYTES:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._dead or self._pending_bytes <= LOW_WATER_BYTES:
                return
            self._waiters.append((loop, waiter))
        await waiter

    def flush(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds until all messages are written. Do not call on the loop."""
        written = threading.Event()
        with self._lock:
            if self._dead:
                return False
            self._queue.append(written)
            self._grow(0)
        return written.wait(timeout)

    def _written_at_once(self, item: _Taken, size: int, burst: float) -> bool:
        """Write an item directly if it surely fits into the pipe and the writer sleeps.

        Waking the writer costs more than the write. `select.PIPE_BUF` bytes never block a pipe
        that is ready. Within `burst` seconds only the first item is written so. If the client is
        gone, the writer will notice.
        """
        if not self._asleep or self._ready is None or size > PIPE_BUF:
            return False
        now = time.monotonic()
        if now - self._wrote_at_once < burst:
            return False
        self._wrote_at_once = now
        frame = self._frame(item)
        if len(frame) > PIPE_BUF or not self._ready():
            return False
        try:
            return os.write(self._fd, frame) == len(frame)
        except OSError:
            return False

    def _grow(self, size: int) -> None:
        self._pending_bytes += size
        if self._asleep:
            self._asleep = False
            self._gate.release()

    def _check_limit(self) -> None:
        if self._pending_bytes > HARD_LIMIT_BYTES:
            self._die(f"the client left {HARD_LIMIT_BYTES} bytes unread")

    def _die(self, reason: str) -> None:
        with self._lock:
            already, self._dead = self._dead, True
            self._queue.clear()
            self._pending_bytes = 0
            waiters, self._waiters = self._waiters, []
        _release(waiters)
        if not already:
            self._on_fatal(reason)

    def _run(self) -> None:
        self._wait_first()
        while not self._dead:
            taken, size = self._take()
            if not taken:
                self._gate.acquire()
                continue
            try:
                _write_all(self._fd, b"".join(map(self._frame, taken)))
            except OSError:
                self._die("the client closed its end of stdout")
                return
            self._written(taken, size)

    def _frame(self, item: _Taken) -> bytes:
        if isinstance(item, bytes):
            return self._dialect.frame(item)
        return self._dialect.deltas(item) if isinstance(item, list) else b""

    def _take(self) -> tuple[list[_Taken], int]:
        """Return the next batch and its size; an empty batch means that the writer must sleep."""
        taken: list[_Taken] = []
        size = 0
        queue = self._queue
        with self._lock:
            while queue and size < BATCH_BYTES:
                head = queue[0]
                if isinstance(head, DeltaBatch):
                    deltas, length = head.take(BATCH_BYTES - size)
                    taken.append(deltas)
                    size += length
                    if not head.empty:
                        break
                elif isinstance(head, bytes):
                    if taken and size + len(head) > BATCH_BYTES:
                        break
                    taken.append(head)
                    size += len(head)
                else:
                    taken.append(head)
                queue.popleft()
            self._asleep = not taken
        return taken, size

    def _written(self, taken: list[_Taken], size: int) -> None:
        waiters: list[_Waiter] = []
        with self._lock:
            self._pending_bytes = max(0, self._pending_bytes - size)
            if self._waiters and self._pending_bytes <= LOW_WATER_BYTES:
                waiters, self._waiters = self._waiters, []
        _release(waiters)
        for item in taken:
            if isinstance(item, threading.Event):
                item.set()


def _readiness(fd: int) -> Callable[[], bool] | None:
    """Return a check whether the pipe accepts `PIPE_BUF` bytes now; None if that is unknowable."""
    if sys.platform == "win32" or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return None
    pipe = select.poll()
    pipe.register(fd, select.POLLOUT)
    return lambda: pipe.poll(0) == [(fd, select.POLLOUT)]


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _release(waiters: list[_Waiter]) -> None:
    for loop, waiter in waiters:
        try:
            loop.call_soon_threadsafe(_resolve, waiter)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
