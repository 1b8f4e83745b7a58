"""A database or its log that was cut, flipped or zeroed: every message is there, once (W6).

What cannot be read any more is rebuilt from the journal.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records import sqlite_file
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.message_storage import messages_in
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.sqlite_file import (
    PAGE_BYTES,
    DamagedDatabase,
    check_database,
    log_of,
    write_database,
)
from tests.conftest import FULL, Played
from tests.support.kept_messages import report
from tests.support.opened_files import opened_files

COUNT = 12
FLIPS = LOG_CUTS = 500 if FULL else 40
CUTS = 500 if FULL else 20
DATABASE, LOG = "messages.sqlite", "messages.sqlite-wal"
LEFT = "messages.new.jsonl"
EVERY = list(range(COUNT))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    saver = Saver()
    yield ConversationStore(tmp_path, saver, storage="sqlite")
    saver.close()


def message(number: int) -> Message:
    # Several share a page, or one has pages of its own.
    words = f'第 {number}\u2028 "quoted" 🍵\n' * (400 if number % 4 == 3 else 3)
    return Message(
        id=f"m{number}",
        session_id="c-1",
        role="user",
        content=(TextBlock(id=f"b{number}", text=words),),
        parent_id=f"m{number - 1}" if number else None,
        depth=number,
        created_at=f"2026-01-02T00:00:{number:02}.000Z",
    )


class Kept:
    """A session of twelve messages, five of them in the log alone; and how to damage it."""

    def __init__(self, store: ConversationStore, root: Path) -> None:
        self.store = store
        self.folder = root / "conversations" / "c-1"
        writer = store.create(ConversationMeta(id="c-1"))
        for number in range(7):
            writer.append(message(number))
            report(writer.journal, message(number))
        writer.close()
        writer = store.open("c-1").writer
        for number in range(7, COUNT):
            writer.append(message(number))
            report(writer.journal, message(number))
        writer.sync()
        self._sound = root / "sound"
        shutil.copytree(self.folder, self._sound)  # as its process was killed
        writer.close()
        self.whole = {name: (self._sound / name).read_bytes() for name in (DATABASE, LOG)}
        self.restore()

    def restore(self) -> None:
        """Let it be as its process was killed."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._sound, self.folder)
        (self.folder / f"{DATABASE}-shm").unlink(missing_ok=True)  # as after a restart

    def damage(self, name: str, data: bytes | None) -> list[int]:
        """Which records are there after the file became `data`, or went."""
        self.restore()
        if data is None:
            (self.folder / name).unlink()
        else:
            (self.folder / name).write_bytes(data)
        self.read()  # somebody looks before there is a writer
        writer = self.store.open("c-1").writer
        there = self.read()
        writer.append(message(COUNT))
        report(writer.journal, message(COUNT))
        writer.sync()
        writer.close()
        again = self.store.open("c-1")
        tree = again.stored.tree()
        assert self.numbers([*tree.messages]) == [*there, COUNT], "what is written next"
        assert not again.stored.problems, "nothing damaged is left"
        again.writer.close()
        return there

    def read(self) -> list[int]:
        return self.numbers(self.store.load("c-1").messages)

    @staticmethod
    def numbers(messages: object) -> list[int]:
        """Each of the messages is as it was written."""
        assert isinstance(messages, list)
        assert all(one == message(int(one.id[1:])) for one in messages)
        return [int(one.id[1:]) for one in messages]


@pytest.fixture
def kept(store: ConversationStore, tmp_path: Path) -> Kept:
    return Kept(store, tmp_path)


@pytest.mark.parametrize("name", [DATABASE, LOG])
def test_a_flipped_bit_costs_no_message(kept: Kept, name: str, rng: Random, played: Played) -> None:
    whole = kept.whole[name]
    places = range(len(whole))
    for place in rng.sample(places, FLIPS):
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        assert kept.damage(name, bytes(data)) == EVERY, place
    played(FLIPS, f"flipped bits, {name}")


def test_a_schema_that_is_no_text_costs_no_message(kept: Kept) -> None:
    """SQLite then names a table that Python cannot decode."""
    whole = kept.whole[DATABASE]
    at = whole.index(b"tablemessagemessage") + len("tablem")
    assert kept.damage(DATABASE, whole[:at] + b"\xf3" + whole[at + 1 :]) == EVERY


def test_truncation_costs_no_message(kept: Kept, rng: Random, played: Played) -> None:
    for name, count in ((LOG, LOG_CUTS), (DATABASE, CUTS)):
        whole = kept.whole[name]
        for cut in rng.sample(range(len(whole) + 1), count):
            assert kept.damage(name, whole[:cut]) == EVERY, (name, cut)
        played(count, f"truncations, {name}")


def zeroed(data: bytes, start: int, length: int) -> bytes:
    return data[:start] + bytes(length) + data[start + length :]


@pytest.mark.parametrize(
    ("what", "damage", "name"),
    [
        ("the head of the database", lambda data: zeroed(data, 0, 100), DATABASE),
        ("the first page", lambda data: zeroed(data, 0, PAGE_BYTES), DATABASE),
        ("text instead", lambda data: b"# a note\n", DATABASE),
        ("nothing", lambda data: b"", DATABASE),
        ("zeros behind", lambda data: data + bytes(3 * PAGE_BYTES), DATABASE),
        ("the head of the log", lambda data: zeroed(data, 0, 32), LOG),
        ("zeros behind the log", lambda data: data + bytes(10_000), LOG),
        ("a log of text", lambda data: b"# a note\n", LOG),
        ("no log", lambda data: None, LOG),
    ],
)
def test_the_damage_that_disks_and_people_do(
    kept: Kept, what: str, damage: Callable[[bytes], bytes | None], name: str
) -> None:
    assert kept.damage(name, damage(kept.whole[name])) == EVERY, what


def test_a_damaged_row_is_quarantined_and_rebuilt(kept: Kept) -> None:
    data = kept.whole[DATABASE]
    at = data.index(b'"id":"m2"')
    assert kept.damage(DATABASE, data[:at] + b'"id":"mX"' + data[at + 9 :]) == EVERY
    (line,) = (kept.folder / f"{DATABASE}.bad").read_bytes().splitlines()
    assert b'"mX"' in line


def test_what_is_in_a_log_is_in_the_database_once_it_was_opened(kept: Kept) -> None:
    assert kept.read() == EVERY
    opened = kept.store.open("c-1")
    assert kept.numbers(opened.stored.messages) == EVERY
    assert (kept.folder / LOG).read_bytes() == b""
    opened.writer.append(message(COUNT))
    assert (kept.folder / LOG).read_bytes() != b"", "on disk at once"
    opened.writer.close()
    assert not (kept.folder / LOG).exists(), "a session at rest is one file"
    assert kept.read() == [*EVERY, COUNT]


def test_a_log_that_holds_rows_is_never_deleted(kept: Kept) -> None:
    with pytest.raises(KodeError, match="not saved"):
        messages_in(kept.folder).replace(kept.folder, [])
    assert kept.read() == EVERY


class LeftLines:
    """The same session as an earlier version leaves it: what was said last stands in lines."""

    def __init__(self, kept: Kept, *, rows: int) -> None:
        self.kept, self.folder = kept, kept.folder
        records = list(messages_in(kept.folder).records(kept.folder))
        (kept.folder / LOG).unlink()
        (kept.folder / DATABASE).unlink()
        if rows:
            write_database(kept.folder / DATABASE, records[:rows])
        self.whole = b"".join(line + b"\n" for line in records[rows:])
        (kept.folder / LEFT).write_bytes(self.whole)

    def adopted(self) -> list[int]:
        """What is read, then opened, and found afterwards: three times the same."""
        read = self.kept.read()
        opened = self.kept.store.open("c-1")
        assert self.kept.numbers(opened.stored.messages) == read
        assert not (self.folder / LEFT).exists()
        opened.writer.close()
        assert self.kept.read() == read
        return read


@pytest.mark.parametrize("rows", [0, 7, COUNT])
def test_lines_that_an_earlier_version_left_become_rows(kept: Kept, rows: int) -> None:
    left = LeftLines(kept, rows=rows)
    assert kept.store.exists("c-1")
    assert left.adopted() == EVERY
    assert len(list(messages_in(kept.folder).records(kept.folder))) == COUNT


def test_a_left_line_that_is_a_row_already_counts_once(kept: Kept) -> None:
    """A crash of the earlier version came after the rows were saved, before the lines went."""
    records = list(messages_in(kept.folder).records(kept.folder))
    left = LeftLines(kept, rows=COUNT)
    (kept.folder / LEFT).write_bytes(b"".join(line + b"\n" for line in records[7:]))
    assert len(list(messages_in(kept.folder).records(kept.folder))) == COUNT
    assert left.adopted() == EVERY
    assert len(list(messages_in(kept.folder).records(kept.folder))) == COUNT


def test_damage_in_left_lines_costs_no_message(kept: Kept, rng: Random) -> None:
    left = LeftLines(kept, rows=7)
    sound = kept.folder.with_name("left")
    shutil.copytree(kept.folder, sound)
    for place in rng.sample(range(len(left.whole)), 20):
        shutil.rmtree(kept.folder)
        shutil.copytree(sound, kept.folder)
        data = bytearray(left.whole)
        data[place] ^= 1 << rng.randrange(8)
        (kept.folder / LEFT).write_bytes(data)
        assert left.adopted() == EVERY, place


def test_a_damaged_structure_is_kept_beside(kept: Kept) -> None:
    damaged = kept.whole[DATABASE][:PAGE_BYTES]
    assert kept.damage(DATABASE, damaged) == EVERY
    assert (kept.folder / f"{DATABASE}.damaged-1").read_bytes() == damaged
    assert not (kept.folder / "messages.jsonl").exists()


def test_what_is_no_database_hides_nobody(kept: Kept, tmp_path: Path) -> None:
    (kept.folder / LOG).unlink()
    (kept.folder / "journal.jsonl").unlink()
    (kept.folder / DATABASE).write_bytes(b"\xff" * 5_000)
    (kept.folder / "meta.json").write_bytes(b"{")
    assert kept.store.list_ids() == ["c-1"]
    opened = kept.store.open("c-1")
    assert list(opened.stored.messages) == []
    opened.writer.close()
    with pytest.raises(KodeError, match="There is no session"):
        kept.store.load("nobody")


def test_the_log_beside_an_emptied_database_is_kept(tmp_path: Path) -> None:
    path = tmp_path / DATABASE
    path.write_bytes(b"")
    log_of(path).write_bytes(b"what a commit wrote")
    with pytest.raises(DamagedDatabase):
        check_database(path)
    assert log_of(path).read_bytes() == b"what a commit wrote"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows saves names with their files")
def test_the_name_of_a_log_is_saved_before_the_first_row(tmp_path: Path) -> None:
    write_database(tmp_path / DATABASE, [])
    with opened_files() as opened:
        file = messages_in(tmp_path).open(tmp_path)[0]
    names = [name for name, _ in opened]
    assert tmp_path.name in names[names.index(LOG) :], "the folder is opened to be saved"
    file.append(message(0))
    file.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the descriptors in /proc")
def test_a_database_is_open_while_a_row_waits_for_its_save(kept: Kept) -> None:
    writer = kept.store.open("c-1").writer
    resting = len(os.listdir("/proc/self/fd"))
    for number in range(COUNT, COUNT + 3):
        writer.append(message(number))
        assert len(os.listdir("/proc/self/fd")) > resting
        writer.sync()
        assert len(os.listdir("/proc/self/fd")) == resting
    writer.close()


def test_a_large_log_is_moved_while_the_session_goes_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_LARGE_LOG", 8_000)
    writer = kept.store.open("c-1").writer
    sizes: list[int] = []
    for number in range(COUNT, COUNT + 40):
        writer.append(message(number))
        writer.sync()
        sizes.append((kept.folder / LOG).stat().st_size)
    assert max(sizes) < 200_000, "it begins anew"
    assert kept.read() == [*range(COUNT + 40)]
    writer.close()
