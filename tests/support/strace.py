"""Runs a program under strace (Linux), which sees and spoils what it asks the system for."""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.node_tools import not_run

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="strace is a program of Linux")

_LINE = re.compile(r"(?P<pid>\d+) +(?P<resumed><\.\.\. )?(?P<name>\w+)(?P<rest>.*)")


@dataclass(frozen=True)
class Call:
    """One call of a thread; `began` and `ended` are lines of the log."""

    pid: int
    name: str
    text: str
    began: int
    ended: int


def strace(log: Path, calls: Sequence[str], paths: Sequence[Path] = (), *more: str) -> list[str]:
    """The beginning of a command line; without strace the test says NOT RUN, on a CI it fails."""
    program = shutil.which("strace") or not_run("strace is missing; `.ci/run` installs it")
    options = ["-f", "-qq", "-e", "signal=none", "-o", str(log)]
    for path in paths:
        options += ["-P", str(path)]
    return [program, *options, "-e", f"trace={','.join(calls)}", *more]


def spoiled(call: str, how: str, at: int) -> tuple[str, str]:
    """Options: the `at`th such call of a thread fails with an errno, or is the process's last."""
    what = "signal=KILL" if how == "kill" else f"error={how}"
    return "-e", f"inject={call}:{what}:when={at}"


def read_log(log: Path) -> list[Call]:
    """The calls that came back, in the order in which they did."""
    found: list[Call] = []
    begun: dict[int, tuple[int, str]] = {}
    for number, line in enumerate(log.read_text("utf-8", "replace").splitlines()):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        pid, rest = int(match["pid"]), match["rest"]
        began, before = begun.pop(pid, (number, "")) if match["resumed"] else (number, "")
        if rest.endswith("<unfinished ...>"):
            begun[pid] = number, rest
        else:
            found.append(Call(pid, match["name"], before + rest, began, number))
    return found


def most_in_a_thread(log: Path) -> Counter[str]:
    """How often each call was made by the thread that made it most."""
    by_thread = Counter((call.name, call.pid) for call in read_log(log))
    most: Counter[str] = Counter()
    for (name, _), count in by_thread.items():
        most[name] = max(most[name], count)
    return most
