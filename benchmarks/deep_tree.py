"""Starting a turn deep in a large tree of messages, kept in either way."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks import usage
from benchmarks.figures import Figure, Samples, medians
from benchmarks.model import PROMPT
from benchmarks.programs import SIDECAR, Arena, Sidecar
from benchmarks.sessions import NAMES, write_messages
from kode_sidecar.core.domain.agent_event import Event, MessageCompleted
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.infrastructure.records.json_record import encode_json, seal
from kode_sidecar.infrastructure.records.message_record import encode_message
from kode_sidecar.infrastructure.records.messages import StorageName

_BRANCHES = 100
_DEPTH = 1_000
_MESSAGE_BYTES = 500  # of text
_TREE = "tree-1"


def deep_tree(arena: Arena, runs: int) -> list[Figure]:
    """100,000 messages in 100 branches of 1,000; a turn at the end of one that is not the head."""
    figures: list[Figure] = []
    for storage, name in NAMES.items():
        started: Samples = {SIDECAR: []}
        grown: Samples = {SIDECAR: []}
        for _ in range(runs):
            elapsed, memory = _measure(arena, storage)
            started[SIDECAR].append(elapsed)
            grown[SIDECAR].append(memory)
        what = f"a turn in {_BRANCHES * _DEPTH:,} messages, {name}"
        figures.append(Figure(what, "ms", medians(started), most=100))
        figures.append(Figure("memory of that session", "MB", medians(grown)))
    return figures


def _measure(arena: Arena, storage: StorageName) -> tuple[float, float | None]:
    program = arena.spawn(SIDECAR)
    assert isinstance(program, Sidecar)
    try:
        program.open()
        program.wait_loaded()
        _write_tree(program.home / "conversations" / _TREE, storage)
        before = usage.memory_mb(program.process.pid)
        program.ask_ms("kode/session/attach", {"sessionId": _TREE})
        arena.model.plan(n=1)
        params = {
            "sessionId": _TREE,
            "parentId": _id(_BRANCHES // 2, _DEPTH - 1),
            "input": [{"type": "text", "text": PROMPT}],
        }
        elapsed = program.ask_ms("kode/turn/start", params)
        after = usage.memory_mb(program.process.pid)
        program.process.until(b'"turn.completed"')
    finally:
        program.process.close()
    return elapsed, None if before is None or after is None else after - before


def _write_tree(folder: Path, storage: StorageName) -> None:
    folder.mkdir()
    meta = {"id": _TREE, "agent_type": "coder"}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    records = [encode_message(message) for message in _messages()]
    write_messages(folder, records, storage)
    events = (seal(encode_json(event)) + b"\n" for event in _events())
    (folder / "journal.jsonl").write_bytes(b"".join(events))


def _id(branch: int, depth: int) -> str:
    return f"message-{branch}-{depth}"


def _messages() -> Iterator[Message]:
    line = "a line of a text like any other, 第七行 🍵\n"
    words = line * (_MESSAGE_BYTES // len(line.encode()))
    for branch in range(_BRANCHES):
        for depth in range(_DEPTH):
            yield Message(
                id=_id(branch, depth),
                session_id=_TREE,
                role="assistant" if depth % 2 else "user",
                content=(TextBlock(id=f"b{branch}-{depth}", text=words),),
                parent_id=_id(branch, depth - 1) if depth else None,
                depth=depth,
                created_at="2026-01-01T00:00:00.000Z",
                meta={"turnId": f"t{branch}-{depth // 2}"},
            )


def _events() -> Iterator[Event]:
    """The least that says that all of them were told."""
    for number in range(_BRANCHES * _DEPTH):
        branch, depth = divmod(number, _DEPTH)
        yield MessageCompleted(seq=number + 1, message_id=_id(branch, depth))
