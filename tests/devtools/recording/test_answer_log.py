"""Bytes of an answer that are held, as half a key may be in them, come to the same reads again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.devtools.recording.model_hosts import AnswerLog
from kode_sidecar.devtools.recording.recorded_lines import (
    FORMAT,
    AnswerBytes,
    AnswerLeft,
    AnyLine,
    RecordingHead,
    data_of,
    encode_line,
)
from kode_sidecar.devtools.recording.recording_file import read_recording

T = TypeVar("T")
READS = st.lists(st.text("ab\n茶", min_size=1, max_size=6), max_size=6)


async def enter(coming: Awaitable[T], note: Callable[[asyncio.Future[T]], None]) -> T:
    """As `RecordingLoop.enter`, without its rounds."""
    future = asyncio.ensure_future(coming)
    await asyncio.wait([future])
    note(future)
    return future.result()


async def written(reads: Sequence[bytes], *, whole: bool) -> Sequence[AnyLine]:
    """The lines of one answer that came in these reads."""

    async def read(data: bytes) -> bytes:
        return data

    lines: list[AnyLine] = []
    log = AnswerLog(lines.append, enter)
    for data in [*reads, *([b""] if whole else [])]:
        assert await log.arrived("main", 1, read(data)) == data
    log.left("main", 1)
    return lines


def read_back(lines: Sequence[AnyLine], folder: Path) -> Sequence[AnyLine]:
    """The lines behind the head, as playback gets them."""
    head = RecordingHead(format=FORMAT, version="1", started="", platform="")
    tape = folder / "tape.jsonl"
    tape.write_bytes(b"".join(encode_line(line) + b"\n" for line in (head, *lines)))
    return read_recording(tape).lines[1:]


def bytes_of(lines: Sequence[AnyLine]) -> list[bytes]:
    """What each read of the answer returns."""
    return [data_of(line) for line in lines if isinstance(line, AnswerBytes)]


@given(READS, st.booleans(), st.integers(0, 2))
def test_every_read_comes_again_with_its_bytes(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], whole: bool, cut: int
) -> None:
    data = "".join(texts).encode()
    middle = len(texts[0].encode()) + cut if texts else 0  # perhaps within a character
    reads = [part for part in (data[:middle], data[middle:]) if part]
    reads += [text.encode() for text in texts]
    lines = asyncio.run(written(reads, whole=whole))
    assert bytes_of(read_back(lines, tmp_path_factory.mktemp("tape"))) == reads
    held = [data_of(line) for line in lines if isinstance(line, AnswerBytes | AnswerLeft)]
    assert b"".join(held) == b"".join(reads)
    assert all(not text or text.endswith(b"\n") for text in held[:-1])


def test_a_recording_that_was_cut_off_lacks_what_was_held(tmp_path: Path) -> None:
    lines = asyncio.run(written([b"one\ntw", b"o"], whole=True))
    assert bytes_of(read_back(lines[:-1], tmp_path)) == [b"one\n", b""]


def test_bytes_that_a_person_changed_are_all_read(tmp_path: Path) -> None:
    lines = asyncio.run(written([b'{"error":', b'"a"}'], whole=True))
    reported = [
        AnswerLeft(agent="main", ask=1, text='{"error":"a longer text"}')
        if isinstance(line, AnswerLeft)
        else line
        for line in lines
    ]
    assert bytes_of(read_back(reported, tmp_path)) == [b'{"error":', b'"a longer text"}']
