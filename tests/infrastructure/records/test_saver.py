"""The saving thread."""

import asyncio
import threading
from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.jsonl import JsonlFile
from kode_sidecar.infrastructure.records.saver import Saver
from tests.support.disk_calls import DiskCalls


class Recorder:
    """A real `Syncable` that notes its thread and waits at a gate."""

    def __init__(self, gate: threading.Event | None = None, error: Exception | None = None) -> None:
        self.threads: list[str] = []
        self.started = threading.Event()
        self._gate = gate
        self._error = error

    def sync(self) -> None:
        self.started.set()
        if self._gate is not None:
            assert self._gate.wait(10)
        self.threads.append(threading.current_thread().name)
        if self._error is not None:
            raise self._error


async def test_two_fsyncs_at_most_and_never_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = DiskCalls(monkeypatch)
    files = [JsonlFile(tmp_path / name) for name in ("messages.jsonl", "journal.jsonl")]
    saver = Saver()
    for file in files:
        file.append(b"{}")
        file.append(b"{}")
    await saver.save(*files)
    assert calls.fsyncs == 2
    files[1].append(b"{}")
    await saver.save(*files)
    assert calls.fsyncs == 3
    saver.close()


async def test_requests_that_wait_together_share_one_sync() -> None:
    gate = threading.Event()
    first, shared = Recorder(gate), Recorder()
    saver = Saver()
    futures = [saver.save(first)]
    assert await asyncio.to_thread(first.started.wait, 10)
    futures += [saver.save(shared) for _ in range(20)]
    gate.set()
    await asyncio.gather(*futures)
    assert shared.threads == ["saver"]
    saver.close()


async def test_an_error_reaches_those_who_asked_for_that_file_only() -> None:
    broken = Recorder(error=KodeError("Storage", "not saved: disk"))
    fine = Recorder()
    saver = Saver()
    results = await asyncio.gather(
        saver.save(broken, fine), saver.save(fine), return_exceptions=True
    )
    assert isinstance(results[0], KodeError)
    assert results[1] is None
    await saver.save(fine)
    saver.close()


async def test_later_jobs_never_hold_up_a_save_and_the_newest_wins() -> None:
    gate = threading.Event()
    saver = Saver()
    waiting = saver.save(Recorder(gate))
    ran: list[int] = []
    for number in range(5):
        saver.later("meta", lambda number=number: ran.append(number))
    saver.later("other", lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    done = saver.save(Recorder())
    gate.set()
    await asyncio.gather(waiting, done)
    assert ran == []
    saver.close()
    assert ran == [4]


async def test_closing_finishes_what_waits_and_then_refuses() -> None:
    saver = Saver()
    recorder = Recorder()
    future = saver.save(recorder)
    saver.close()
    await future
    assert recorder.threads == ["saver"]
    with pytest.raises(KodeError, match="shutting down"):
        await saver.save(recorder)


async def test_a_cancelled_waiter_harms_nobody() -> None:
    gate = threading.Event()
    saver = Saver()
    future = saver.save(Recorder(gate))
    future.cancel()
    gate.set()
    await saver.save(Recorder())
    saver.close()
