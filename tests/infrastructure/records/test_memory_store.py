"""Memory in files: candidates of a run, and what the user decides on (B10)."""

import itertools
import json
import os
from pathlib import Path

import pytest

from kode_sidecar.core.domain.memory import MemoryItem
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records import memory_store
from kode_sidecar.infrastructure.records.memory_store import CandidateMemory, MemoryStore


def store_in(folder: Path, start: int = 1) -> MemoryStore:
    numbers = itertools.count(start)
    return MemoryStore(
        folder, lambda: f"m{next(numbers):06}", lambda: f"2026-01-02T03:04:05.{start:03}Z"
    )


async def contents(store: MemoryStore, scope: str = "user", limit: int = 9) -> list[str]:
    return [item.content for item in await store.recall("", scope, limit)]


async def test_only_what_was_accepted_is_recalled_in_its_scope(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    assert await contents(store) == []
    assert list(tmp_path.iterdir()) == []
    one = await store.write("one", "user", ["a"])
    two = await store.write("two", "project:x", [])
    three = await store.write("three", "user", [])
    assert one == MemoryItem(
        id="m000001",
        content="one",
        scope="user",
        tags=("a",),
        created_at="2026-01-02T03:04:05.001Z",
        state="candidate",
    )
    assert await contents(store) == []
    await store.decide([one.id, two.id], [three.id])
    again = store_in(tmp_path, 2)
    assert await contents(again) == ["one"]
    assert await contents(again, "project:x") == ["two"]
    assert await contents(again, limit=0) == []
    assert [item.state for item in await again.items()] == ["accepted", "accepted"]
    await again.decide([], [one.id])
    assert await contents(again) == []
    assert sorted(os.listdir(tmp_path / "memory")) == ["m000002.json"]  # what is rejected is gone


async def test_the_same_is_not_kept_twice(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    first = await store.write("one", "user", [])
    assert await store.write("one", "user", ["more"]) == first
    assert (await store.write("one", "project:x", [])).id != first.id
    await store.decide([first.id], [])
    assert (await store.write("one", "user", [])).state == "accepted"


async def test_an_unknown_id_decides_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    item = await store.write("one", "user", [])
    for accepted, rejected in [([item.id, "m999999"], []), ([item.id], ["../x"])]:
        with pytest.raises(KodeError) as caught:
            await store.decide(accepted, rejected)
        assert caught.value.code == "MemoryNotFound"
    assert [found.state for found in await store.items()] == ["candidate"]


async def test_too_many_undecided_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # W16
    monkeypatch.setattr(memory_store, "MAX_CANDIDATES", 2)
    store = store_in(tmp_path)
    first = await store.write("one", "user", [])
    await store.write("two", "user", [])
    with pytest.raises(KodeError, match="wait for the user's decision") as caught:
        await store.write("three", "user", [])
    assert caught.value.code == "MemoryRefused"
    await store.decide([first.id], [])
    await store.write("three", "user", [])


async def test_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    await store.write("one", "user", [])
    good = (tmp_path / "memory" / "m000001.json").read_bytes()
    for name, data in {
        "m000007.json": good,  # another one's
        "m000008.json": b"{",
        "m000009.json": b"\xff" * 20,
        "m000010.json": b" " * 200_000,
        "OTHER.json": good,
        "x.txt": good,
    }.items():
        (tmp_path / "memory" / name).write_bytes(data)
    (tmp_path / "memory" / "m000011.json").mkdir()
    assert [item.id for item in await store.items()] == ["m000001"]


async def test_a_disk_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("in the way")
    with pytest.raises(KodeError) as caught:
        await store_in(tmp_path).write("one", "user", [])
    assert caught.value.code == "Storage"
    assert str(tmp_path) not in caught.value.message


async def test_candidates_of_a_run_are_lines_of_a_file(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    path = tmp_path / "archive" / "candidate-memory.jsonl"
    memory = CandidateMemory(path, lambda: f"m{next(numbers)}", lambda: "2026-01-02T03:04:05.678Z")
    assert not path.exists()
    await memory.write("一条\nzwei", "default", ["a"])
    await memory.write("two", "default", [])
    await memory.write("two", "default", [])
    lines = path.read_bytes().decode().removesuffix("\n").split("\n")
    assert json.loads(lines[0]) == {
        "id": "m1",
        "content": "一条\nzwei",
        "scope": "default",
        "tags": ["a"],
        "created_at": "2026-01-02T03:04:05.678Z",
        "state": "candidate",
    }
    assert [item.id for item in memory.items()] == ["m1", "m2"]
    assert await memory.recall("two", "default", 5) == ()  # nobody has decided on it
    with pytest.raises(KodeError, match="nothing to remember"):
        await memory.write(" ", "default", [])
    path.write_bytes(path.read_bytes()[:-20])
    await memory.write("three", "default", [])
    assert [item.content for item in memory.items()] == ["一条\nzwei", "three"]
