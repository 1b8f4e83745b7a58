"""From the spawn to the first answers."""

from collections import defaultdict

from benchmarks.figures import Figure, Samples, medians
from benchmarks.programs import PROGRAMS, Arena


def start_up(arena: Arena, runs: int) -> list[Figure]:
    """From the spawn to `initialize`, to a session, to the first prompt's request."""
    python: list[float] = []
    initialized: Samples = defaultdict(list)
    opened: Samples = defaultdict(list)
    asked: Samples = defaultdict(list)
    for run in range(runs + 1):
        plain_ms = arena.plain_python() * 1e3
        times = {name: _spawn(arena, name) for name in PROGRAMS}
        if run:  # the first fills the caches of the disk
            python.append(plain_ms)
            for name, (initialized_ms, opened_ms, asked_ms) in times.items():
                initialized[name].append(initialized_ms)
                opened[name].append(opened_ms)
                asked[name].append(asked_ms)
    return [
        Figure(
            "spawn to initialize",
            "ms",
            medians(initialized),
            most_ratio=3,
            base=medians({"python": python})["python"],
            base_name="python -c pass",
        ),
        Figure("spawn to first session", "ms", medians(opened), most_ratio=1.5),
        Figure("spawn to first request", "ms", medians(asked)),
    ]


def _spawn(arena: Arena, name: str) -> tuple[float, float, float]:
    arena.model.plan(n=1)
    program = arena.spawn(name)
    try:
        program.open()
        program.turn()
    finally:
        program.process.close()
    moments = (program.initialized_ns, program.opened_ns, arena.model.request_times()[0])
    initialized_ms, opened_ms, asked_ms = (
        (moment - program.process.spawned_ns) / 1e6 for moment in moments
    )
    return initialized_ms, opened_ms, asked_ms
