"""Single turns of warm programs: prompt, cancel, tool reads, fsyncs."""

from collections import defaultdict
from collections.abc import Callable

from benchmarks.figures import Figure, Samples, medians
from benchmarks.process import BenchError
from benchmarks.programs import PROGRAMS, READ_ME, SIDECAR, Arena, Program, settle

_TOOL_CALLS = 10
_CANCEL_AT = 20


def prompt(arena: Arena, runs: int) -> list[Figure]:
    """From the prompt to the arrival of the request at the model, second and later turns."""

    def measure(program: Program) -> float:
        arena.model.plan(n=1)
        sent_ns = program.turn().sent_ns
        requests = arena.model.request_times()
        if len(requests) != 1:
            raise BenchError(f"one prompt led to {len(requests)} requests")
        return (requests[0] - sent_ns) / 1e6

    samples = _alternate(arena, runs, measure)
    return [Figure("warm prompt to request", "ms", medians(samples), most_ratio=2)]


def cancel(arena: Arena, runs: int) -> list[Figure]:
    """From the cancel to the end of a turn that streams."""

    def measure(program: Program) -> float:
        arena.model.plan(n=100_000, gap_ms=10)
        return program.cancelled_after(_CANCEL_AT)

    samples = _alternate(arena, runs, measure)
    return [Figure("cancel to end of turn", "ms", medians(samples), most_ratio=2)]


def tools(arena: Arena, runs: int) -> list[Figure]:
    """A turn in which the model reads a file ten times, one call a step."""

    samples: Samples = defaultdict(list)
    tool = {"name": "read_file", "args": {"path": READ_ME}}
    for name, program in arena.rounds(runs):  # what was read stays in the history: fresh ones
        arena.model.plan(n=1, tool=tool, tool_calls=_TOOL_CALLS)
        samples[name].append(program.turn().seconds * 1e3)
        if len(arena.model.request_times()) != _TOOL_CALLS + 1:
            raise BenchError(f"the turn did not make {_TOOL_CALLS} tool calls")
    return [Figure(f"{_TOOL_CALLS} tool reads", "ms", medians(samples), most_ratio=3)]


def fsyncs(arena: Arena, runs: int) -> list[Figure]:
    """How often a plain turn asks the disk to keep what was written."""
    program = arena.spawn(SIDECAR, hook="count_fsyncs")
    try:
        program.open()
        program.wait_loaded()
        arena.model.plan(n=1)
        program.turn()
        settle()
        counts: list[float | None] = []
        for _ in range(runs):
            before = arena.fsync_log.stat().st_size
            arena.model.plan(n=100)
            program.turn()
            settle()
            counts.append(float(arena.fsync_log.stat().st_size - before))
    finally:
        program.process.close()
    return [Figure("fsyncs in a plain turn", "", medians({SIDECAR: counts}), most=4)]


def _alternate(arena: Arena, runs: int, measure: Callable[[Program], float]) -> Samples:
    """Measure all programs in turn, `runs` times; they stay alive meanwhile."""
    samples: Samples = defaultdict(list)
    programs: dict[str, Program] = {}
    try:
        for name in PROGRAMS:
            programs[name] = arena.warm(name)
        for run in range(runs + 1):
            for name, program in programs.items():
                value = measure(program)
                settle()
                if run:  # the first goes through code that never ran
                    samples[name].append(value)
    finally:
        for program in programs.values():
            program.process.close()
    return samples
