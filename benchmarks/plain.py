"""An editor without a plugin: its code actions, and typing among hundreds of pending hunks."""

import os
import time
from typing import Any

from benchmarks.figures import Figure, medians
from benchmarks.large_edits import HUNKS, LINES, Desk, longest_ms
from benchmarks.model import PROMPT
from benchmarks.programs import SIDECAR, Arena, settle

_KEYS, _KEY_GAP = 100, 0.005
_ASKED = 300


def plain(arena: Arena, runs: int) -> list[Figure]:
    """Code actions right after the start and in 10 MB with 500 hunks; keys there."""
    first: list[float | None] = []
    later: list[float | None] = []
    steps: list[float | None] = []
    for run in range(runs + 1):
        played = _played(arena)
        if run:  # the first fills the caches of the disk
            for values, value in zip((first, later, steps), played, strict=True):
                values.append(value)
    among = f"{HUNKS} hunks in 10 MB"
    return [
        Figure("plain: first code action", "ms", medians({SIDECAR: first}), most=600),
        Figure(
            f"plain: longest step of {_ASKED} code actions, {among}",
            "ms",
            medians({SIDECAR: later}),
            most=5,
        ),
        Figure(
            f"plain: longest step at keys in {among}", "ms", medians({SIDECAR: steps}), most=100
        ),
    ]


class _PlainDesk(Desk):
    """The same editor without a word of kode."""

    def open(self) -> None:
        root = self.path.parent.as_uri()
        self.program.ask_ms(
            "initialize", {"processId": os.getpid(), "rootUri": root, "capabilities": {}}
        )
        self.program.report("initialized", {})

    def propose(self) -> None:
        command = {"command": "kode.ask", "arguments": [PROMPT]}
        self.program.ask_ms("workspace/executeCommand", command)
        self.program.process.until(b'"source":"kode"')

    def code_action_ms(self, line: int) -> float:
        """Milliseconds until the code actions of a line are there."""
        at = {"line": line, "character": 0}
        params: dict[str, Any] = {
            "textDocument": {"uri": self.path.as_uri()},
            "range": {"start": at, "end": at},
            "context": {"diagnostics": []},
        }
        return self.program.ask_ms("textDocument/codeAction", params)


def _played(arena: Arena) -> tuple[float, float, float]:
    """Milliseconds of the first code action, and the longest steps of later ones and at keys."""
    desk = _PlainDesk(arena, HUNKS)
    try:
        desk.open()
        first = desk.code_action_ms(0)
        desk.open_file()
        desk.propose()
        settle(1)
        gap = LINES // _ASKED
        desk.steps.write_bytes(b"")
        for at in range(_ASKED):
            desk.code_action_ms(at * gap)
        later = longest_ms(desk.steps)
        desk.steps.write_bytes(b"")
        for at in range(_KEYS):
            desk.type(at * (LINES // _KEYS) + 1)
            time.sleep(_KEY_GAP)
        settle(1)
        desk.code_action_ms(0)
        return first, later, longest_ms(desk.steps)
    finally:
        desk.program.process.close()
