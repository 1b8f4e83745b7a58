"""Files that were cut, flipped, zeroed or glued: every whole record survives, exactly once (W6)."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.core.domain.agent_event import Event, Notice
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.journal import read_events
from kode_sidecar.infrastructure.records.rebuilding import LOST
from kode_sidecar.infrastructure.records.saver import Saver
from tests.conftest import FULL, Played
from tests.support.kept_messages import report

COUNT = 5
SAMPLE = 60  # of all bytes, unless each is damaged
BAD = {"messages.jsonl": "messages.jsonl.bad", "journal.jsonl": "journal.jsonl.bad"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    saver = Saver()
    yield ConversationStore(tmp_path, saver)
    saver.close()


def message(number: int) -> Message:
    text = TextBlock(id=f"b{number}", text=f'第 {number}\u2028 "quoted" 🍵')
    return Message(
        id=f"m{number}",
        session_id="c-1",
        role="user",
        content=(text,),
        parent_id=f"m{number - 1}" if number else None,
        depth=number,
        created_at=f"2026-01-02T00:00:0{number}.000Z",
        meta={"turnId": f"t{number}"},
    )


def event(number: int) -> Event:
    return Notice(seq=number + 1, ts="2026", code=f"c{number}", message=f"嗨 {number} 🍵")


def said(messages: Sequence[Message]) -> list[Message]:
    """Those that were said; the others stand for what was lost, so that each has its parent."""
    ids = {one.id for one in messages}
    assert all(one.parent_id is None or one.parent_id in ids for one in messages)
    return [one for one in messages if one.meta.get("origin") != LOST]


class Kept:
    """A session of five messages and five events; what its two files held, and how to damage it."""

    def __init__(self, store: ConversationStore, root: Path) -> None:
        self.store = store
        self.folder = root / "conversations" / "c-1"
        writer = store.create(ConversationMeta(id="c-1"))
        journal = writer.journal
        for number in range(COUNT):
            writer.append(message(number))
            journal.append(event(number))
        writer.close()
        (self.folder / "meta.json").write_text('{"id": "c-1"}')
        self.whole = {name: (self.folder / name).read_bytes() for name in BAD}

    def damage(self, name: str, data: bytes) -> tuple[list[int], list[int]]:
        """Which records are there after the file became `data`: read only, and by a writer."""
        (self.folder / name).write_bytes(data)
        (self.folder / BAD[name]).unlink(missing_ok=True)
        read = self.read(name)
        writer = self.store.open("c-1").writer
        writer.append(message(COUNT))
        writer.close()
        again = self.read(name)
        if name == "messages.jsonl":
            assert again.pop() == COUNT, "what is written next is there"
        for line in (self.folder / name).read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            if line.strip(b" \t\r\0"):
                json.loads(line.strip(b"\0"))  # nothing damaged is left
        self.store.open("c-1").writer.close()
        return read, again

    def read(self, name: str) -> list[int]:
        """The numbers of the records, each of which is as it was written."""
        if name == "messages.jsonl":
            messages = said(self.store.load("c-1").messages)
            assert all(one == message(int(one.id[1:])) for one in messages)
            return [int(one.id[1:]) for one in messages]
        events, _ = read_events(self.folder / name)
        assert all(one == event(one.seq - 1) for one in events)
        return [one.seq - 1 for one in events]

    def bad(self, name: str) -> bytes:
        path = self.folder / BAD[name]
        return path.read_bytes() if path.exists() else b""

    def lines(self, name: str) -> list[bytes]:
        return self.whole[name].splitlines()


@pytest.fixture
def kept(store: ConversationStore, tmp_path: Path) -> Kept:
    return Kept(store, tmp_path)


@pytest.mark.parametrize("name", BAD)
def test_truncation_at_every_byte(  # A6 W6
    kept: Kept, name: str, rng: Random, played: Played
) -> None:
    whole = kept.whole[name]
    ends = [index for index, byte in enumerate(whole) if byte == 0x0A]
    every = range(len(whole) + 1)
    cuts = every if FULL else sorted(rng.sample(every, SAMPLE))
    for cut in cuts:
        survive = list(range(sum(cut >= end for end in ends)))
        assert kept.damage(name, whole[:cut]) == (survive, survive), cut
        torn = whole[:cut].rpartition(b"\n")[2]
        if cut not in ends and torn:
            assert kept.bad(name) == torn.strip() + b"\n"
    played(len(cuts), f"truncations, {name}")


@pytest.mark.parametrize("name", BAD)
def test_a_flipped_bit_costs_at_most_its_own_record(
    kept: Kept, name: str, rng: Random, played: Played
) -> None:
    whole = kept.whole[name]
    line_of = [whole[:index].count(b"\n") for index in range(len(whole))]
    every = range(len(whole))
    places = every if FULL else rng.sample(every, SAMPLE)
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        read, again = kept.damage(name, bytes(data))
        others = [number for number in range(COUNT) if number != line_of[place]]
        assert read == again
        # A newline belongs to nobody: both its neighbours are whole.
        is_newline = whole[place] == 0x0A
        assert read == list(range(COUNT)) if is_newline else set(read) >= set(others)
    played(len(places), f"flipped bits, {name}")


@pytest.mark.parametrize("name", BAD)
def test_the_damage_that_disks_and_people_do(kept: Kept, name: str) -> None:
    lines = kept.lines(name)
    every, but_2 = list(range(COUNT)), [0, 1, 3, 4]
    half = lines[2][: len(lines[2]) // 2]
    zeros = b"\0" * 64
    damages: dict[str, tuple[bytes, list[int]]] = {
        "glued": (b"".join(lines), every),
        "two glued": (b"\n".join([lines[0], lines[1] + lines[2], *lines[3:]]), every),
        "torn and glued": (b"\n".join([*lines[:2], half + lines[3], lines[4]]), but_2),
        "zeros at the end": (kept.whole[name] + b"\0" * 4096, every),
        "zeros between": (b"\n".join([*lines[:2], b"\0" * 512, *lines[2:]]), every),
        "zeros for a record": (b"\n".join([*lines[:2], b"\0" * len(lines[2]), *lines[3:]]), but_2),
        "zeros over a border": (
            b"\n".join([*lines[:2], half + zeros + lines[3], lines[4]]),
            but_2,
        ),
        "a BOM": (b"\xef\xbb\xbf" + kept.whole[name], every),
        "CRLF": (kept.whole[name].replace(b"\n", b"\r\n"), every),
        "no UTF-8": (b"\n".join([*lines[:2], b'{"id":"\xff"}', *lines[3:]]), but_2),
        "foreign": (b"\n".join([*lines[:2], b"# a note", *lines[3:]]), but_2),
        "deep": (b"\n".join([*lines[:2], b"[" * 100_000, *lines[3:]]), but_2),
        "empty": (b"", []),
        "blank lines": (b"\n\n" + kept.whole[name] + b"\n\n", every),
        "twice": (kept.whole[name] + lines[4] + b"\n", every),
    }
    for what, (data, survive) in damages.items():
        read, again = kept.damage(name, data)
        # Of two messages with one id the first counts when the tree is made.
        assert (sorted(set(read)), sorted(set(again))) == (survive, survive), what


def test_no_line_hides_the_session_or_the_list(kept: Kept) -> None:
    for data in (b"\0" * 100, b"{", b"[]\n" * 10, b"\xff\xfe"):
        for name in (*BAD, "meta.json"):
            (kept.folder / name).write_bytes(data)
        assert kept.store.list_ids() == ["c-1"]
        assert kept.store.head("c-1").id == "c-1"
        opened = kept.store.open("c-1")
        assert opened.stored.messages == []
        opened.writer.close()


def reported(store: ConversationStore, count: int) -> None:
    """A session whose messages are in the journal, too."""
    writer = store.create(ConversationMeta(id="c-1"))
    for number in range(count):
        writer.append(message(number))
        report(writer.journal, message(number))
    writer.close()


def test_a_damaged_message_is_rebuilt_from_the_journal(  # W6
    store: ConversationStore, tmp_path: Path
) -> None:
    reported(store, COUNT)
    file = tmp_path / "conversations" / "c-1" / "messages.jsonl"
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    every = [message(number) for number in range(COUNT)]
    damages = {
        "the first": b"\xff" + whole,
        "one between": b"".join([*lines[:2], lines[2][:20] + b"\n", *lines[3:]]),
        "the last": whole[:-40],
        "all": b"\0" * len(whole),
        "cut off": b"".join(lines[:2]),
        "gone": b"",
    }
    for what, data in damages.items():
        file.write_bytes(data)
        opened = store.open("c-1")
        assert list(opened.stored.messages) == every, what
        tree = opened.stored.tree()
        assert [one.id for one in tree.path(tree.head)] == [one.id for one in every], what
        opened.writer.close()
        assert file.read_bytes() == whole, what
        file.write_bytes(data)
        if store.load("c-1").problems:  # who only reads sees it, too, and changes nothing
            assert list(store.load("c-1").messages) == every, what
        assert file.read_bytes() == data


def test_what_the_journal_does_not_have_whole_is_not_rebuilt(
    store: ConversationStore, tmp_path: Path
) -> None:
    reported(store, 3)
    folder = tmp_path / "conversations" / "c-1"
    messages, journal = folder / "messages.jsonl", folder / "journal.jsonl"
    lines = messages.read_bytes().splitlines(keepends=True)
    messages.write_bytes(lines[0] + lines[2])
    events = journal.read_bytes().splitlines(keepends=True)
    at = next(n for n, event in enumerate(events) if b'"b1"' in event)
    journal.write_bytes(b"".join([*events[:at], *events[at + 2 :]]))  # no word of its block
    opened = store.open("c-1")
    assert said(opened.stored.messages) == [message(0), message(2)]
    stand_in = opened.stored.messages[1]
    assert (stand_in.id, stand_in.parent_id, stand_in.depth) == ("m1", "m0", 1)
    assert "could not be read" in str(stand_in.content[-1])
    path = opened.stored.tree().path("m2")
    assert [one.id for one in path] == ["m0", "m1", "m2"]
    opened.writer.close()
    again = store.open("c-1")
    assert list(again.stored.messages) == list(opened.stored.messages), "it is kept, once"
    again.writer.close()


def test_a_whole_branch_that_is_lost_keeps_its_shape(
    store: ConversationStore, tmp_path: Path
) -> None:
    """Neither file tells more of two messages than that one has a child."""
    reported(store, COUNT)
    folder = tmp_path / "conversations" / "c-1"
    lines = (folder / "messages.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "messages.jsonl").write_bytes(b"".join([*lines[:1], *lines[3:]]))
    (folder / "journal.jsonl").write_bytes(b"\0" * 3_000)
    opened = store.open("c-1")
    messages = opened.stored.messages
    assert said(messages) == [message(0), message(3), message(4)]
    assert [one.id for one in opened.stored.tree().path("m4")][-3:] == ["m2", "m3", "m4"]
    opened.writer.close()
