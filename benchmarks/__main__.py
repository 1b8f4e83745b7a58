"""`python -m benchmarks`: measure, print the table. MISS is a result, not a failure."""

import argparse
import json
import platform
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from benchmarks import usage
from benchmarks.acp import acp
from benchmarks.built import built
from benchmarks.deep_tree import deep_tree
from benchmarks.edits import edits
from benchmarks.estimate import estimate
from benchmarks.figures import Figure, table
from benchmarks.flame import FlameError, draw
from benchmarks.large_edits import large_edits
from benchmarks.model import Model
from benchmarks.parsing import parsing
from benchmarks.plain import plain
from benchmarks.process import BenchError
from benchmarks.programs import MINIMAL_LOOP, PROGRAMS, ROOT, Arena
from benchmarks.scouts import scouts
from benchmarks.servers import servers
from benchmarks.sessions import sessions
from benchmarks.start_up import start_up
from benchmarks.stream import flat, paced
from benchmarks.turns import cancel, fsyncs, prompt, tools

GRAPH = ROOT / "build" / "bench-profile.svg"


class Group(NamedTuple):
    """Figures that are measured together, and how often by default."""

    measure: Callable[[Arena, int], list[Figure]]
    runs: int


GROUPS = {
    "start": Group(start_up, 15),
    "built": Group(built, 9),
    "prompt": Group(prompt, 30),
    "paced": Group(paced, 4),
    "flat": Group(flat, 5),
    "parsing": Group(parsing, 9),
    "cancel": Group(cancel, 30),
    "tools": Group(tools, 7),
    "scouts": Group(scouts, 3),
    "fsyncs": Group(fsyncs, 3),
    "sessions": Group(sessions, 3),
    "tree": Group(deep_tree, 1),
    "edits": Group(edits, 20),
    "large": Group(large_edits, 3),
    "plain": Group(plain, 3),
    "acp": Group(acp, 15),
    "servers": Group(servers, 15),
    "estimate": Group(estimate, 1),
}


def main() -> int:
    """The exit code: 1 when something could not be measured."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _end)
    folder = tempfile.TemporaryDirectory(prefix="kode-bench-", ignore_cleanup_errors=True)
    with folder as path, Model() as model:
        arena = Arena(model, Path(path))
        if options.profile:
            return _profile(arena)
        figures, broken = _measure(arena, options.only or list(GROUPS), options.runs)
    if options.json:
        print(json.dumps({"machine": _machine(), "broken": broken, **_as_json(figures)}, indent=1))
    else:
        print(table(figures))
        for line in _remarks():
            print(line)
    return 1 if broken else 0


def _end(number: int, _frame: FrameType | None) -> None:
    """Leave by an exception, once, so that what was spawned ends, too."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="the figures for machines")
    parser.add_argument("--profile", action="store_true", help="a flame graph of the sidecar")
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="NAME")
    parser.add_argument("--runs", type=int, metavar="N", help="rounds of each measurement")
    return parser


def _measure(
    arena: Arena, names: list[str], runs: int | None
) -> tuple[list[Figure], dict[str, str]]:
    figures: list[Figure] = []
    broken: dict[str, str] = {}
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        group = GROUPS[name]
        try:
            figures += group.measure(arena, runs or group.runs)
        except BenchError as error:
            broken[name] = str(error)
            print(f"BROKEN {name}: {error}", file=sys.stderr, flush=True)
    return figures, broken


def _profile(arena: Arena) -> int:
    try:
        GRAPH.parent.mkdir(exist_ok=True)
        draw(arena, GRAPH)
    except (BenchError, FlameError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(f"written to {GRAPH}; open it in a browser")
    return 0


def _as_json(figures: list[Figure]) -> dict[str, object]:
    return {"figures": [figure.as_json() for figure in figures]}


def _machine() -> dict[str, str]:
    return {"python": platform.python_version(), "platform": platform.platform()}


def _remarks() -> list[str]:
    remarks = [f"Python {platform.python_version()} on {platform.platform()}"]
    if not usage.AVAILABLE:
        remarks.append("CPU and memory are n/a: they are read from /proc, which only Linux has.")
    if MINIMAL_LOOP not in PROGRAMS:
        remarks.append("Ratios to the loops are n/a: the floors read stdin in a way of POSIX.")
    return remarks


if __name__ == "__main__":
    sys.exit(main())
