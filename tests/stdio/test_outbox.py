"""The outbox on a real pipe: order, merging, bounds, and a client that is gone."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.base_protocol import FrameDecoder
from kode_sidecar.servers.lsp.outbox import HARD_LIMIT_BYTES, HIGH_WATER_BYTES, DeltaBatch, Outbox

HANG_SECONDS = 60


class Pipe:
    """An outbox whose other end is read only when asked."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        self.fatal: list[str] = []
        self.died = threading.Event()
        self.outbox = Outbox(self.write_end, on_fatal=self._on_fatal)
        self.decoder = FrameDecoder()
        self.messages: list[Any] = []

    def _on_fatal(self, reason: str) -> None:
        self.fatal.append(reason)
        self.died.set()

    def read_until(self, method: str) -> list[Any]:
        while not any(message["method"] == method for message in self.messages):
            for body in self.decoder.feed(os.read(self.read_end, 1 << 20)):
                self.messages.append(json.loads(body))
        return self.messages


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    opened = Pipe()
    yield opened
    os.close(opened.read_end)
    opened.outbox.put(b"the writer wakes and finds the pipe closed")
    opened.died.wait(HANG_SECONDS)
    os.close(opened.write_end)


def body(method: str) -> bytes:
    return json.dumps({"method": method}).encode()


def fold(messages: list[Any]) -> dict[str, str]:
    """The text of each block, checking that every delta continues it."""
    texts: dict[str, str] = {}
    for message in messages:
        if message["method"] != "kode/delta":
            continue
        for delta in message["params"]["deltas"]:
            text = texts.setdefault(delta["blockId"], "")
            assert delta["at"] == len(text)
            texts[delta["blockId"]] = text + delta["add"]
    return texts


def test_one_fifo_and_merging_only_between_barriers(pipe: Pipe) -> None:
    # O9
    outbox = pipe.outbox
    outbox.put_delta(BlockDelta("a", 0, "one "))
    outbox.put_delta(BlockDelta("b", 0, "字"))
    outbox.put_delta(BlockDelta("a", 4, "two"))
    outbox.put(body("barrier"))
    outbox.put_delta(BlockDelta("a", 7, "!"))
    outbox.put_delta(BlockDelta("a", 3, "not where it ends"))
    outbox.put(body("end"))
    outbox.start()
    messages = pipe.read_until("end")
    assert [message["method"] for message in messages] == [
        *("kode/delta", "barrier", "kode/delta", "kode/delta", "end")
    ]
    assert messages[0]["params"]["deltas"] == [
        {"blockId": "a", "at": 0, "add": "one two"},
        {"blockId": "b", "at": 0, "add": "字"},
    ]
    assert messages[2]["params"]["deltas"] == [{"blockId": "a", "at": 7, "add": "!"}]


def test_one_delta_is_small_on_the_wire(pipe: Pipe) -> None:
    pipe.outbox.put_delta(BlockDelta("b4k2jd91x3", 12345, "x" * 40))
    pipe.outbox.start()
    assert len(os.read(pipe.read_end, 65536)) <= 175


def test_waiting_deltas_cost_no_more_than_their_text(pipe: Pipe) -> None:
    # O-backpressure: an unread client costs the text and little else
    count, text = 200_000, "x" * 40
    pipe.outbox.put(body("barrier"))
    for n in range(count):
        pipe.outbox.put_delta(BlockDelta("a", n * len(text), text))
    assert pipe.outbox.pending_bytes <= count * len(text) + 100
    pipe.outbox.put(body("end"))
    pipe.outbox.start()
    messages = pipe.read_until("end")
    assert fold(messages) == {"a": text * count}
    assert len(messages) < 300
    assert pipe.outbox.flush(HANG_SECONDS)
    assert pipe.outbox.pending_bytes == 0


DELTAS = st.lists(
    st.tuples(st.sampled_from("abc"), st.text("x字😀\n", min_size=1, max_size=20)), max_size=200
)


@settings(max_examples=100)
@given(DELTAS, st.lists(st.integers(1, 200), max_size=20))
def test_a_batch_taken_in_any_portions_keeps_every_character(
    additions: list[tuple[str, str]], portions: list[int]
) -> None:
    batch = DeltaBatch()
    expected: dict[str, str] = {}
    got: dict[str, str] = {}
    taken_chars = 0

    def take(size: int) -> int:
        deltas, length = batch.take(size)
        for delta in deltas:
            assert delta.at == len(got.get(delta.block_id, ""))
            got[delta.block_id] = got.get(delta.block_id, "") + delta.add
        return length

    for n, (block, add) in enumerate(additions):
        at = len(expected.get(block, ""))
        assert batch.add(BlockDelta(block, at, add))
        expected[block] = expected.get(block, "") + add
        if n % 10 == 9 and portions:
            taken_chars += take(portions.pop())
    while not batch.empty:
        taken_chars += take(1000)
    assert got == expected
    assert taken_chars == sum(map(len, expected.values()))


async def test_flow_waits_for_a_slow_client(pipe: Pipe) -> None:
    pipe.outbox.start()
    await pipe.outbox.flow()
    chunk = b"x" * 65536
    for _ in range(2 * HIGH_WATER_BYTES // len(chunk)):
        pipe.outbox.put(chunk)
    waits = [asyncio.create_task(pipe.outbox.flow()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)
    waits[0].cancel()
    received = 0
    loop = asyncio.get_running_loop()
    while not all(wait.done() for wait in waits):
        assert received < 3 * HIGH_WATER_BYTES
        received += len(await loop.run_in_executor(None, os.read, pipe.read_end, 65536))
    assert received >= HIGH_WATER_BYTES
    await asyncio.gather(*waits, return_exceptions=True)
    while received < 2 * HIGH_WATER_BYTES:
        received += len(await loop.run_in_executor(None, os.read, pipe.read_end, 65536))
    assert await loop.run_in_executor(None, pipe.outbox.flush, HANG_SECONDS)
    assert not pipe.fatal


def test_a_closed_pipe_is_fatal_once(pipe: Pipe) -> None:
    # W4
    pipe.outbox.start()
    os.close(pipe.read_end)
    pipe.outbox.put(body("lost"))
    assert pipe.died.wait(HANG_SECONDS)
    pipe.outbox.put(body("lost too"))
    assert not pipe.outbox.flush(HANG_SECONDS)
    assert len(pipe.fatal) == 1
    pipe.read_end = os.open(os.devnull, os.O_RDONLY)


def test_the_hard_limit_is_fatal_once(pipe: Pipe) -> None:
    pipe.outbox.start()
    megabyte = b"x" * (1 << 20)
    for _ in range(HARD_LIMIT_BYTES // len(megabyte)):
        pipe.outbox.put(megabyte)
    assert not pipe.fatal
    pipe.outbox.put(megabyte)
    pipe.outbox.put(megabyte)
    assert len(pipe.fatal) == 1
    assert "unread" in pipe.fatal[0]


async def test_waiting_producers_are_released_when_the_client_is_gone(pipe: Pipe) -> None:
    pipe.outbox.start()
    pipe.outbox.put(b"x" * (2 * HIGH_WATER_BYTES))
    wait = asyncio.create_task(pipe.outbox.flow())
    await asyncio.sleep(0)
    os.close(pipe.read_end)
    await asyncio.wait_for(wait, HANG_SECONDS)
    loop = asyncio.get_running_loop()
    assert await loop.run_in_executor(None, pipe.died.wait, HANG_SECONDS)
    pipe.read_end = os.open(os.devnull, os.O_RDONLY)
