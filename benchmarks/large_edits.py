"""Hundreds of hunks in 10 MB, through the real process: how long it takes, and holds others up."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import usage
from benchmarks.figures import Figure, medians
from benchmarks.process import BenchError
from benchmarks.programs import SIDECAR, Arena, Sidecar

LINES, HUNKS, _WAITING = 195_000, 500, 50
_KEYS, _KEY_GAP = 200, 0.002
_PHASES = ("proposed", "accepted", "undone")


def large_edits(arena: Arena, runs: int) -> list[Figure]:
    """The model quotes 500 lines one by one; an editor applies them at once and tells it."""
    seconds: dict[str, list[float | None]] = {name: [] for name in _PHASES}
    steps: dict[str, list[float | None]] = {name: [] for name in _PHASES}
    keys: list[float | None] = []
    for _ in range(runs):
        for name, taken, longest in _played(arena):
            seconds[name].append(taken)
            steps[name].append(longest)
        keys.append(_key(arena))
    what = f"{HUNKS} hunks in 10 MB"
    figures: list[Figure] = []
    for name in _PHASES:
        total, longest = medians({SIDECAR: seconds[name]}), medians({SIDECAR: steps[name]})
        figures.append(Figure(f"{what} {name}", "s", total, most=5))
        figures.append(Figure(f"longest step while {name}", "ms", longest, most=100))
    waiting = f"key while {_WAITING} hunks wait in 10 MB"
    return [*figures, Figure(waiting, "ms", medians({SIDECAR: keys}), most=0.5)]


class Desk:
    """A sidecar, and an editor with one large file open."""

    def __init__(self, arena: Arena, hunks: int) -> None:
        self.steps = arena.step_log
        spawned = arena.spawn(SIDECAR, hook="longest_step")
        assert isinstance(spawned, Sidecar)
        self.program = spawned
        self.path = arena.workspace / "large.txt"
        lines = [f"line {at:06} with some more words in it, as many\n" for at in range(LINES)]
        self.path.write_text("".join(lines), encoding="utf-8")
        places = [at * (LINES // hunks) + 3 for at in range(hunks)]
        edits = [{"old": lines[at][:-1], "new": f"row {at}"} for at in places]
        arena.model.plan(
            n=1,
            tool={"name": "propose_edit", "args": {"path": self.path.name, "edits": edits}},
            tool_calls=1,
        )
        self.version = 1
        self.change_set = ""

    def open(self) -> None:
        """Begin a session, and open the file."""
        self.program.open()
        self.program.wait_loaded()
        self.open_file()

    def open_file(self) -> None:
        """Open the file; returns when the sidecar has its text."""
        item = {"uri": self.path.as_uri(), "languageId": "plaintext", "version": 1}
        text = self.path.read_text(encoding="utf-8")
        self.program.report("textDocument/didOpen", {"textDocument": {**item, "text": text}})
        self.program.ask_ms("kode/ping", {})

    def propose(self) -> None:
        """Let the model propose all edits."""
        turn = self.program.turn()
        reported = (message.body for message in turn.messages if b'"changeSetId"' in message.body)
        self.change_set = (
            next(reported).partition(b'"changeSetId":"')[2].partition(b'"')[0].decode()
        )

    def settle(self, method: str, **params: Any) -> None:
        """Ask for it, and do the edit that comes: told from the last place to the first."""
        answered = self.program.begin(method, {"changeSetId": self.change_set, **params})
        request = json.loads(self.program.process.until(b'"workspace/applyEdit"')[-1].body)
        self.version += 1
        self.program.report("textDocument/didChange", self._changed(request["params"]["edit"]))
        self.program.answer(request["id"], {"applied": True})
        result = json.loads(self.program.process.until(answered)[-1].body)["result"]
        if not result["verified"]:
            raise BenchError(f"{method} was not verified")

    def _changed(self, edit: dict[str, Any]) -> dict[str, Any]:
        entries = edit.get("documentChanges")
        edits = entries[0]["edits"] if entries else next(iter(edit["changes"].values()))
        changes = [{"range": one["range"], "text": one["newText"]} for one in reversed(edits)]
        return self._change(changes)

    def _change(self, changes: list[dict[str, Any]]) -> dict[str, Any]:
        document = {"uri": self.path.as_uri(), "version": self.version}
        return {"textDocument": document, "contentChanges": changes}

    def type(self, line: int) -> None:
        """A key at the beginning of a line."""
        self.version += 1
        at = {"line": line, "character": 0}
        change = self._change([{"range": {"start": at, "end": at}, "text": "x"}])
        self.program.report("textDocument/didChange", change)


def _played(arena: Arena) -> list[tuple[str, float, float | None]]:
    """Seconds and the longest step, in ms, of proposing, accepting and undoing all."""
    desk = Desk(arena, HUNKS)
    try:
        desk.open()
        everything = {"rest": "accept", "seenSeq": 1_000_000}
        phases: list[Callable[[], None]] = [
            desk.propose,
            lambda: desk.settle("kode/changeSet/decide", **everything),
            lambda: desk.settle("kode/changeSet/undo"),
        ]
        found: list[tuple[str, float, float | None]] = []
        for name, phase in zip(_PHASES, phases, strict=True):
            desk.steps.write_bytes(b"")
            begun = time.perf_counter()
            phase()
            found.append((name, time.perf_counter() - begun, longest_ms(desk.steps)))
        return found
    finally:
        desk.program.process.close()


def _key(arena: Arena) -> float | None:
    """Milliseconds of all processor time of the sidecar for one key."""
    desk = Desk(arena, _WAITING)
    try:
        desk.open()
        desk.propose()
        desk.type(1)  # the first goes through code that never ran
        desk.program.ask_ms("kode/ping", {})
        before = usage.cpu_seconds(desk.program.process.pid)
        for at in range(_KEYS):
            desk.type(at * (LINES // _KEYS) + 1)
            time.sleep(_KEY_GAP)
        desk.program.ask_ms("kode/ping", {})
        after = usage.cpu_seconds(desk.program.process.pid)
    finally:
        desk.program.process.close()
    return None if before is None or after is None else (after - before) * 1e3 / _KEYS


def longest_ms(log: Path) -> float:
    """Milliseconds of the longest step of the event loop."""
    return max((int(line) / 1e6 for line in log.read_bytes().split()), default=0.0)
