"""Conversations as files, their messages as lines or in a database: one contract."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import UNSET, structs

from kode_sidecar.agent.sessions import StoredMessages
from kode_sidecar.core.domain.message import Message, TextBlock, Usage
from kode_sidecar.core.protocol.session import MessageListParams
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta, HeadMark
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.infrastructure.records.rebuilding import LOST
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.session_lock import SessionLock, is_held
from tests.support.disk_calls import DiskCalls
from tests.support.opened_files import opened_files

META = ConversationMeta(
    id="c-1",
    title="Title",
    agent_type="coder",
    created_at="2026-01-01T00:00:00.000Z",
    updated_at="2026-01-01T00:00:00.000Z",
    meta={"projectRoot": "/p", "roots": ["/p"]},
)


def message(number: int, text: str = "text") -> Message:
    return Message(
        id=f"m{number}",
        session_id="c-1",
        role="user",
        content=(TextBlock(text=text),),
        parent_id=f"m{number - 1}" if number else None,
        created_at=f"2026-01-02T00:00:0{number}.000Z",
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> DiskCalls:
    return DiskCalls(monkeypatch)


@pytest.fixture
def saver() -> Iterator[Saver]:
    saver = Saver()
    yield saver
    saver.close()


@pytest.fixture(params=get_args(StorageName))
def storage(request: pytest.FixtureRequest) -> StorageName:
    return request.param


@pytest.fixture
def store(tmp_path: Path, saver: Saver, storage: StorageName) -> ConversationStore:
    return ConversationStore(tmp_path, saver, storage)


@pytest.fixture
def lines_store(tmp_path: Path, saver: Saver) -> ConversationStore:
    return ConversationStore(tmp_path, saver)


async def test_a_conversation_comes_back_as_it_was_said(  # A6 A7
    tmp_path: Path, store: ConversationStore, saver: Saver, storage: StorageName
) -> None:
    writer = store.create(META)
    messages = [message(0), message(1, "a\u2028中文😀"), message(2)]
    for said in messages:
        writer.append(said)
    await saver.save(writer)
    writer.close()

    again = ConversationStore(tmp_path, saver).load("c-1")
    assert again.messages == messages
    assert again.problems == []
    assert again.meta.updated_at == "2026-01-02T00:00:02.000Z"
    folder = tmp_path / "conversations" / "c-1"
    assert json.loads((folder / "meta.json").read_bytes()) == {
        "id": "c-1",
        "title": "Title",
        "agent_type": "coder",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-02T00:00:02.000Z",
        "meta": {"projectRoot": "/p", "roots": ["/p"]},
    }
    names = {entry.name for entry in folder.iterdir()}
    files = {
        "jsonl": {"messages.jsonl"},
        "sqlite": {"messages.sqlite", "messages.sqlite-wal", "messages.sqlite-shm"},
    }
    assert names == {"meta.json", "journal.jsonl", "lock"} | files[storage]


async def test_a_new_session_is_saved_and_a_prompt_costs_two_fsyncs(
    tmp_path: Path,
    store: ConversationStore,
    saver: Saver,
    calls: DiskCalls,
    storage: StorageName,
) -> None:
    writer = store.create(META)
    journal = writer.journal
    await saver.save(writer, journal)
    assert (tmp_path / "conversations" / "c-1" / "meta.json").is_file()
    # meta.json, its folder, the one above and, as it was new, the one above that (folders not on
    # Windows); a database, too.
    assert calls.fsyncs - (storage == "sqlite") in (1, 4)
    before = calls.fsyncs
    head = (tmp_path / "conversations" / "c-1" / "meta.json").read_bytes()
    writer.append(message(0))
    await saver.save(writer, journal)
    assert calls.fsyncs == before + 1  # no event was journalled
    meta = tmp_path / "conversations" / "c-1" / "meta.json"
    assert meta.read_bytes() == head, "nobody waits for its new time"
    saver.close()
    assert json.loads(meta.read_bytes())["updated_at"] == message(0).created_at
    writer.close()


async def test_a_head_is_due_until_its_save_was_heard_of(store: ConversationStore) -> None:  # E6
    writer = store.create(META)
    first = writer.head_due
    assert first
    writer.sync()  # as on the saver's thread: at any moment, seen from the loop
    assert writer.head_due == first
    writer.rename("Neu 名")
    writer.head_saved(first)
    second = writer.head_due
    assert second not in (0, first), "it was written after that save"
    writer.sync()
    assert store.load("c-1").meta.title == "Neu 名"
    writer.head_saved(second)
    assert writer.head_due == 0
    writer.rename("Name")
    await writer.save()
    assert writer.head_due == 0
    writer.close()


async def test_a_title_is_kept(store: ConversationStore, saver: Saver) -> None:
    writer = store.create(META)
    writer.rename("Neu 名")
    await saver.save(writer)
    assert store.load("c-1").meta.title == "Neu 名"
    writer.close()


async def test_truncation_at_every_byte_loads_the_rest(  # A6 W6
    tmp_path: Path, lines_store: ConversationStore, saver: Saver
) -> None:
    store = lines_store
    writer = store.create(META)
    messages = [message(0, "one\u2028"), message(1, "二"), message(2)]
    for said in messages:
        writer.append(said)
    await saver.save(writer)
    writer.close()
    path = tmp_path / "conversations" / "c-1" / "messages.jsonl"
    whole = path.read_bytes()
    # A record is whole without its newline, too.
    ends = [index for index, byte in enumerate(whole) if byte == 0x0A]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        expected = messages[: sum(cut >= end for end in ends)]
        assert store.load("c-1").messages == expected
    path.write_bytes(whole[: whole.index(b"\n") + 20])
    writer = store.open("c-1").writer
    writer.append(message(5))
    writer.close()
    loaded = store.load("c-1")
    said = [one for one in loaded.messages if one.meta.get("origin") != LOST]
    assert said == [message(0, "one\u2028"), message(5)]
    assert loaded.problems == []
    torn = whole[whole.index(b"\n") + 1 :][:19] + b"\n"
    assert path.with_name("messages.jsonl.bad").read_bytes() == torn


async def test_a_lost_or_broken_meta_is_rebuilt(
    tmp_path: Path, store: ConversationStore, saver: Saver
) -> None:  # W7
    writer = store.create(META)
    writer.append(message(0))
    writer.append(message(1))
    await saver.save(writer)
    writer.close()
    path = tmp_path / "conversations" / "c-1" / "meta.json"
    for damage in (b"", b"{", b'{"id": 5}', b"\xff"):
        path.write_bytes(damage)
        meta = store.load("c-1").meta
        assert (meta.id, meta.created_at, meta.updated_at) == (
            "c-1",
            "2026-01-02T00:00:00.000Z",
            "2026-01-02T00:00:01.000Z",
        )
    path.unlink()
    assert store.exists("c-1")
    store.open("c-1").writer.close()
    assert json.loads(path.read_bytes())["id"] == "c-1", "it is written when it is worked in"
    path.write_bytes(json.dumps({"id": "c-1", "updated_at": "2026-01-01"}).encode())
    assert store.load("c-1").meta.updated_at == "2026-01-02T00:00:01.000Z"


def test_ids_from_outside_never_reach_the_disk(tmp_path: Path, store: ConversationStore) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "meta.json").write_text("{}")
    hostile = ["../outside", "..", ".", "", "A", "a/b", "a\\b", "a\n", "con", "lpt1", "x" * 65, "ä"]
    for bad in hostile:
        assert not store.exists(bad)
        attempts = (store.load, store.open, store.create)
        arguments = (bad, bad, ConversationMeta(id=bad))
        for attempt, argument in zip(attempts, arguments, strict=True):
            with pytest.raises(KodeError, match="There is no session") as caught:
                attempt(argument)  # type: ignore[arg-type]
            assert caught.value.code == "SessionNotFound"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["outside"]


async def test_the_list_holds_conversations_only(
    tmp_path: Path, store: ConversationStore, saver: Saver
) -> None:
    assert store.list_ids() == []
    for name in ("b", "a"):
        writer = store.create(ConversationMeta(id=name))
        await saver.save(writer)
        writer.close()
    store.create(ConversationMeta(id="never-saved")).close()
    store.create(ConversationMeta(id="said-and-not-saved")).append(message(0))
    (tmp_path / "conversations" / "empty").mkdir()
    (tmp_path / "conversations" / "Other Folder").mkdir()
    (tmp_path / "conversations" / "file").touch()
    assert store.list_ids() == ["a", "b", "said-and-not-saved"]


def test_an_id_is_created_once_and_a_blocked_folder_is_an_error(
    tmp_path: Path, store: ConversationStore, saver: Saver
) -> None:
    store.create(META).close()
    with pytest.raises(KodeError, match="not saved"):
        store.create(META)
    (tmp_path / "file").touch()
    with pytest.raises(KodeError, match="not saved") as caught:
        ConversationStore(tmp_path / "file", saver).create(META)
    assert caught.value.code == "Storage"
    assert str(tmp_path) not in caught.value.message


async def test_the_head_holds_until_something_is_written_after_it(
    tmp_path: Path, store: ConversationStore, saver: Saver
) -> None:  # A4
    writer = store.create(META)
    for number in range(3):
        writer.append(message(number))
    assert store.load("c-1").tree().head == "m2"
    moved = structs.replace(writer.meta, head=HeadMark("m0", "m2"))
    writer.write_meta(moved)
    await saver.save(writer)
    assert store.load("c-1").tree().head == "m0"
    # A crash can leave the old mark beside a newer message, and a damaged line none to name.
    written = (tmp_path / "conversations" / "c-1" / "meta.json").read_bytes()
    writer.append(message(3))
    await saver.save(writer)
    (tmp_path / "conversations" / "c-1" / "meta.json").write_bytes(written)
    assert store.load("c-1").tree().head == "m3"
    writer.write_meta(structs.replace(moved, head=HeadMark("gone", "m3")))
    await saver.save(writer)
    assert store.load("c-1").tree().head == "m3"
    writer.write_meta(structs.replace(moved, head=HeadMark(None, "m3")))
    await saver.save(writer)
    assert store.load("c-1").tree().head is None
    writer.append(message(4))
    assert writer.meta.head is UNSET


async def test_what_answers_used_is_read_back_whole(store: ConversationStore) -> None:
    usage = Usage(
        input_tokens=9,
        output_tokens=8,
        total_tokens=17,
        cached_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=5,
    )
    assert 0 not in msgspec.structs.astuple(usage), "every count there is"
    writer = store.create(META)
    writer.append(msgspec.structs.replace(message(0), role="assistant", usage=usage))
    writer.close()
    assert [one.usage for one in store.spending("c-1")] == [usage]


async def test_a_closed_session_is_not_written_to_any_more(tmp_path: Path) -> None:  # W8
    one, other = Saver(), Saver()
    writer = ConversationStore(tmp_path, one).create(META)
    await one.save(writer)
    writer.append(message(0))  # its new time waits until there is nothing better to do
    writer.close()
    store = ConversationStore(tmp_path, other)
    opened = store.open("c-1").writer
    assert opened.meta.updated_at == message(0).created_at
    opened.write_meta(msgspec.structs.replace(opened.meta, title="the next one's"))
    await other.save(opened)
    one.close()
    assert store.load("c-1").meta.title == "the next one's"
    opened.close()
    other.close()


async def test_testing_a_lock_keeps_nobody_from_it(tmp_path: Path) -> None:  # W8
    fcntl: Any = pytest.importorskip("fcntl")
    SessionLock(tmp_path).release()
    tested = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(tested, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as `is_held` does for a moment
    tries = 0

    def over_after_one_try(event: str, _args: object) -> None:
        nonlocal tries
        if event == "fcntl.flock":
            tries += 1
            if tries == 2:
                os.close(tested)

    sys.addaudithook(over_after_one_try)
    lock = SessionLock(tmp_path)
    assert tries >= 2
    assert is_held(tmp_path)
    held = len(os.listdir("/dev/fd"))
    with pytest.raises(KodeError) as caught:
        SessionLock(tmp_path)
    assert caught.value.code == "ReadOnly"
    assert len(os.listdir("/dev/fd")) == held, "who is refused keeps no descriptor"
    lock.release()


async def test_pages_are_read_once(
    tmp_path: Path, store: ConversationStore, storage: StorageName
) -> None:
    writer = store.create(META)
    for number in range(6):
        writer.append(message(number))
    writer.close()
    messages = StoredMessages(store, 65_536)
    pages, cursor = 0, None
    with opened_files() as opened:
        while pages == 0 or cursor is not None:
            page = await messages.list(MessageListParams(session_id="c-1", limit=2, cursor=cursor))
            pages, cursor = pages + 1, page.next_cursor
            assert [name for _, name in store.newest()] == ["c-1"]
    assert pages == 3
    files = {"jsonl": "messages.jsonl", "sqlite": "messages.sqlite?mode=ro"}
    assert [name for name, _ in opened].count(files[storage]) == 1
    assert [name for name, _ in opened].count("meta.json") == 2  # a head, and with them
    page = await messages.list(MessageListParams(session_id="c-1", limit=2))
    writer = store.open("c-1").writer
    writer.append(message(6))
    writer.close()
    rest = MessageListParams(session_id="c-1", cursor=page.next_cursor)
    assert len((await messages.list(rest)).messages) == 5, "what is written meanwhile is seen"
