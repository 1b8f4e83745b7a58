"""Sessions that are kept: opening a large one, listing many."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import usage
from benchmarks.figures import Figure, Samples, medians
from benchmarks.programs import SIDECAR, Arena, Sidecar
from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockStarted,
    Event,
    MessageAdded,
    MessageCompleted,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.infrastructure.records.json_record import encode_json, seal
from kode_sidecar.infrastructure.records.message_record import encode_message
from kode_sidecar.infrastructure.records.message_storage import messages_as
from kode_sidecar.infrastructure.records.messages import StorageName

_MESSAGES = 10_000
_MESSAGE_BYTES = 2_000  # of text; with the rest of its record it makes 20 MB in all
_SESSIONS = 10_000
_LARGE = "large-1"
NAMES: dict[StorageName, str] = {"jsonl": "lines", "sqlite": "SQLite"}


def sessions(arena: Arena, runs: int) -> list[Figure]:
    """Opening a session of 10,000 messages, and the first page of 10,000 sessions."""
    figures: list[Figure] = []
    for storage, name in NAMES.items():
        write = partial(_write_large, storage=storage)
        (opened, again), grown = _measure(arena, runs, write, *[("attach", _attach())] * 2)
        what = f"opening {_MESSAGES:,} messages, 20 MB, {name}"
        figures += [
            Figure(what, "ms", medians(opened), most=1_000),
            Figure("its snapshot once it is open", "ms", medians(again)),
            Figure("memory it takes", "MB", medians(grown)),
        ]
    (listed,), grown = _measure(arena, runs, _write_many, ("list", {"all": True}))
    figures += [
        Figure(f"listing {_SESSIONS:,} sessions", "ms", medians(listed), most=300),
        Figure("memory it takes", "MB", medians(grown)),
    ]
    return figures


def _measure(
    arena: Arena,
    runs: int,
    write: Callable[[Path], None],
    *questions: tuple[str, dict[str, Any]],
) -> tuple[list[Samples], Samples]:
    """How long each question about what was written takes, and what memory all of them do."""
    times: list[Samples] = [{SIDECAR: []} for _ in questions]
    grown: Samples = {SIDECAR: []}
    for _ in range(runs):
        program = arena.spawn(SIDECAR)
        assert isinstance(program, Sidecar)
        try:
            program.open()
            program.wait_loaded()
            before = usage.memory_mb(program.process.pid)
            write(program.home / "conversations")
            for samples, (method, params) in zip(times, questions, strict=True):
                samples[SIDECAR].append(program.ask_ms(f"kode/session/{method}", params))
            grown[SIDECAR].append(_difference(before, usage.memory_mb(program.process.pid)))
        finally:
            program.process.close()
    return times, grown


def _attach() -> dict[str, str]:
    return {"sessionId": _LARGE}


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _write_many(folder: Path) -> None:
    for number in range(_SESSIONS):
        session = folder / f"many-{number}"
        session.mkdir()
        meta = {
            "id": session.name,
            "title": f"Session {number} 茶",
            "agent_type": "coder",
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "meta": {"roots": ["file:///home/lin/project"]},
        }
        (session / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _write_large(conversations: Path, storage: StorageName) -> None:
    folder = conversations / _LARGE
    folder.mkdir()
    messages = list(_messages())
    (folder / "meta.json").write_text(json.dumps({"id": _LARGE}), encoding="utf-8")
    write_messages(folder, [encode_message(message) for message in messages], storage)
    events = (seal(encode_json(event)) + b"\n" for event in _events(messages))
    (folder / "journal.jsonl").write_bytes(b"".join(events))


def write_messages(folder: Path, records: list[bytes], storage: StorageName) -> None:
    """As a sidecar left them."""
    messages_as(storage).replace(folder, records)


def _messages() -> Iterator[Message]:
    line = "a line of a text like any other, 第七行 🍵\n"
    words = line * (_MESSAGE_BYTES // len(line.encode()))
    for number in range(_MESSAGES):
        yield Message(
            id=f"message-{number}",
            session_id=_LARGE,
            role="assistant" if number % 2 else "user",
            content=(TextBlock(id=f"b{number}", text=words),),
            parent_id=f"message-{number - 1}" if number else None,
            depth=number,
            created_at="2026-01-01T00:00:00.000Z",
            meta={"turnId": f"t{number // 2}"},
        )


def _events(messages: list[Message]) -> Iterator[Event]:
    """What the process would have told of them."""
    seq = 0
    for message in messages:
        turn = str(message.meta["turnId"])
        (block,) = message.content
        reported: list[Event] = []
        if message.role == "user":
            reported.append(TurnStarted(turn_id=turn, message_id=message.id))
        reported += [
            MessageAdded(
                turn_id=turn,
                message_id=message.id,
                role=message.role,
                parent_id=message.parent_id,
                depth=message.depth,
                created_at=message.created_at,
                meta=message.meta,
            ),
            BlockStarted(turn_id=turn, message_id=message.id, block_id=block.id, block=block),
            BlockCompleted(turn_id=turn, message_id=message.id, block_id=block.id, block=block),
            MessageCompleted(turn_id=turn, message_id=message.id),
        ]
        if message.role == "assistant":
            reported[1] = BlockStarted(
                turn_id=turn, message_id=message.id, block_id=block.id, block=TextBlock(text="")
            )
            reported.append(TurnCompleted(turn_id=turn, stop_reason="end_turn"))
        for event in reported:
            seq += 1
            yield msgspec.structs.replace(event, seq=seq, ts="2026-01-01T00:00:00.000Z")
