"""A job of forty rounds for any client: what lies in the project, and the model that does it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.support.kimi_rules import refusals
from tests.support.model_script import TokenUsage, answer, hold, text, tool_call

ROUNDS = 40
WINDOW = 20_000
SUMMING_UP_AT = 30
FILES = {
    "shop.py": "# 茶铺 😀\ndef price():\n    return 1\n",
    "notes.py": "DONE = False\n",
    "shared.py": "x = 1\n",
    "big.py": "".join(f"line_{at} = {at}\n" for at in range(400)),
    # What it prints names no folder, so that it prints the same wherever it is.
    "check.py": "import notes, shop\nif shop.price() != 2 or not notes.DONE:\n"
    "    raise SystemExit('AssertionError in check.py')\nprint('all tests pass')\n",
}
CHECK = tool_call("run_command", {"argv": ["python", "check.py"]})


def edit(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


def plan(*states: str) -> Any:
    items = [{"text": f"step {at}", "state": state} for at, state in enumerate(states)]
    return tool_call("update_plan", {"items": items})


STEPS = {
    1: plan("in_progress", "pending", "pending"),
    2: tool_call("read_file", {"path": "shop.py"}),
    3: CHECK,
    4: edit("shop.py", "return 1", "return BUGGY"),
    5: tool_call("diagnostics", {"path": "shop.py"}),
    6: edit("shop.py", "return BUGGY", "return 2"),
    7: CHECK,
    8: tool_call("symbols", {"query": "price"}),
    9: tool_call("read_file", {"path": "notes.py"}),
    10: edit("notes.py", "False", "True"),
    39: CHECK,
    40: plan("done", "done", "done"),
}


class Worker:
    """The model of both sessions, which looks at what it is asked.

    In the rounds of the first one that `holds` names it waits for a `release` of that name.
    """

    def __init__(self, holds: Mapping[int, str] | None = None) -> None:
        self.holds = holds or {}
        self.round = 0
        self.summed_up = 0
        self.other = 0
        self.reported: list[str] = []

    def __call__(self, body: dict[str, Any]) -> RecordedResponse:
        assert refusals(body) == []
        said = [str(m["content"]) for m in body["messages"] if m["role"] == "user"]
        if "A second job" in said:
            self.other += 1
            return answer(edit("shared.py", "x = 1", "x = 2") if self.other == 1 else text("ok"))
        if self.round == SUMMING_UP_AT and not self.summed_up:
            self.summed_up += 1
            return answer(text("The gist: shop.py and notes.py are mended; check.py is next."))
        self.round += 1
        self.reported += [one for one in said if one not in self.reported]
        if self.round > ROUNDS:
            return answer(text("All done. 完成"))
        lines = {"path": "big.py", "start": self.round * 5, "end": self.round * 5 + 4}
        step = STEPS.get(self.round) or tool_call("read_file", lines)
        full = TokenUsage(prompt=18_900, completion=50) if self.round == SUMMING_UP_AT else None
        if self.round in self.holds:
            return answer(text("Let me see."), hold(self.holds[self.round]), step)
        return answer(step, usage=full) if full else answer(step)


CONFIG = "commands: {run: list, allow: [python]}\n"
SETTINGS = {"KODE_CONTEXT_WINDOW": str(WINDOW), "KODE_LOCALE": "en"}


def lay_out(project: Path, config: Path) -> dict[str, str]:
    """Write the files, and settings that let the model run Python; what the process is to know."""
    for name, content in FILES.items():
        (project / name).write_text(content, encoding="utf-8")
    config.write_text(CONFIG)
    return {**SETTINGS, "KODE_CONFIG": str(config), "PATH": with_python()}


def with_python() -> str:
    """The search path, with this Python first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
