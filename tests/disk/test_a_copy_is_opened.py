"""The copy of a session is opened again while the system refuses something, once (A6).

No journal tells of the messages of a copy: what is lost of them is lost for good. Nor does it of
those that an earlier version left beside its database.
"""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.message_record import encode_message
from kode_sidecar.infrastructure.records.message_storage import messages_as
from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.infrastructure.records.saver import Saver
from tests.conftest import FULL, Played
from tests.support.program import ROOT
from tests.support.strace import LINUX_ONLY, most_in_a_thread, spoiled, strace

pytestmark = LINUX_ONLY

COUNT = 8
MORE = ("", "-wal", "-shm")
CALLS = ("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "unlink")
KINDS = ("kill", "ENOSPC", "EIO")
SHARES = 12 if FULL else 1  # of all points: none takes too long for one test
SAMPLE = 8  # of all points and kinds, unless all are played
FILES = (
    "messages.jsonl",
    "messages.new.jsonl",
    *(f"{name}{more}" for name in ("messages.sqlite", ".messages.sqlite.new") for more in MORE),
)
LEFT = 3  # messages that an earlier version had not made rows of

Made = Callable[[Path, StorageName], Path]

OPENING = """
import sys
from pathlib import Path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.saver import Saver
from tests.disk.test_a_copy_is_opened import COUNT, message

store = ConversationStore(Path(sys.argv[1]), Saver())
try:
    writer = store.open("c-1").writer
    writer.append(message(COUNT))
    writer.sync()
    print("saved", flush=True)
    writer.close()
except KodeError as error:
    print(error.code, flush=True)
"""


def message(number: int) -> Message:
    return Message(
        id=f"m{number}",
        session_id="c-1",
        role="assistant" if number % 2 else "user",
        content=(TextBlock(id=f"b{number}", text=f"第 {number}\n" * 90),),
        parent_id=f"m{number - 1}" if number else None,
        depth=number,
        created_at=f"2026-01-02T00:00:{number:02}.000Z",
    )


def copied(home: Path, storage: StorageName) -> Path:
    """A session as a fork leaves it, in a state folder of its own."""
    home.mkdir(parents=True)
    with closing(Saver()) as saver:
        writer = ConversationStore(home, saver, storage).create(ConversationMeta(id="c-1"))
        for number in range(COUNT):
            writer.append(message(number))
        writer.sync()
        writer.close()
    return home


def left(home: Path, _: StorageName) -> Path:
    """The same as an earlier version leaves it."""
    folder = copied(home, "sqlite") / "conversations" / "c-1"
    records = [encode_message(message(number)) for number in range(COUNT)]
    messages_as("sqlite").replace(folder, records[:-LEFT])
    lines = b"".join(record + b"\n" for record in records[-LEFT:])
    (folder / "messages.new.jsonl").write_bytes(lines)
    return home


def open_below(home: Path, log: Path, *more: str) -> tuple[int, str]:
    """Open it, say one more thing and save that; the exit code and what was told."""
    folder = home / "conversations" / "c-1"
    below = strace(log, CALLS, [folder / name for name in FILES], "--seccomp-bpf", *more)
    done = subprocess.run(
        [*below, sys.executable, "-c", OPENING, str(home)],
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout.strip()


def found_in(home: Path) -> list[Message]:
    """What a later process has of it, by reading and by opening."""
    with closing(Saver()) as saver:
        store = ConversationStore(home, saver)
        read = list(store.load("c-1").messages)
        opened = store.open("c-1")
        tree = opened.stored.tree()
        assert [tree.get(one.id) for one in tree.messages] == read
        opened.writer.close()
    return read


def points(log: Path, rng: Random, share: int) -> list[tuple[str, int, str]]:
    counts = most_in_a_thread(log)
    assert sum(counts.values()) >= 5, counts
    every = [(name, at) for name in CALLS for at in range(1, counts[name] + 1)]
    all_kinds = [(name, at, kind) for name, at in every for kind in KINDS]
    if FULL:
        return all_kinds[share::SHARES]
    return rng.sample(all_kinds, min(SAMPLE, len(all_kinds)))


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(
    ("made", "storage"),
    [(copied, "jsonl"), (copied, "sqlite"), (left, "sqlite")],
    ids=["jsonl", "sqlite", "left lines"],
    indirect=["storage"],
)
def test_nothing_that_is_refused_costs_a_message(
    tmp_path: Path, rng: Random, storage: StorageName, made: Made, share: int, played: Played
) -> None:
    log = tmp_path / "strace.log"
    assert open_below(made(tmp_path / "sound", storage), log) == (0, "saved")
    failures: list[str] = []
    todo = points(log, rng, share)
    for number, (name, at, kind) in enumerate(todo):
        home = made(tmp_path / f"home-{number}", storage)
        code, reported = open_below(home, log, *spoiled(name, kind, at))
        assert reported in ("saved", "Storage") or (reported == "" and code != 0)
        there = found_in(home)
        wanted = [message(one) for one in range(COUNT + (reported == "saved"))]
        if there[: len(wanted)] != wanted or len(there) > COUNT + 1:
            failures.append(
                f"{kind} at {name} {at}: {[one.id for one in there]} after {reported!r}"
            )
    assert "\n".join(failures) == ""
    played(len(todo), f"faults in the opening of a session, {made.__name__}, {storage}")


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_disk_that_is_full_once_costs_no_message(tmp_path: Path, storage: StorageName) -> None:
    log = tmp_path / "strace.log"
    open_below(copied(tmp_path / "sound", storage), log)
    for at in range(1, most_in_a_thread(log)["pwrite64"] + 1):
        home = copied(tmp_path / f"home-{at}", storage)
        open_below(home, log, *spoiled("pwrite64", "ENOSPC", at))
        assert [one.id for one in found_in(home)][:COUNT] == [f"m{n}" for n in range(COUNT)], at
