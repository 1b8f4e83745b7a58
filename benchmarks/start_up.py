"""From the spawn to the first answers."""

from collections import defaultdict

from benchmarks.figures import Figure, medians
from benchmarks.programs import PROGRAMS, Arena


def start_up(arena: Arena, runs: int) -> list[Figure]:
    """Spawn → `initialize`, against the same interpreter doing nothing; spawn → first session."""
    python: list[float] = []
    initialized: dict[str, list[float | None]] = defaultdict(list)
    opened: dict[str, list[float | None]] = defaultdict(list)
    for run in range(runs + 1):
        plain_ms = arena.plain_python() * 1e3
        times = {name: _spawn(arena, name) for name in PROGRAMS}
        if run:  # the first fills the caches of the disk
            python.append(plain_ms)
            for name, (initialize_ms, session_ms) in times.items():
                initialized[name].append(initialize_ms)
                opened[name].append(session_ms)
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
    ]


def _spawn(arena: Arena, name: str) -> tuple[float, float]:
    program = arena.spawn(name)
    try:
        program.open()
    finally:
        program.process.close()
    spawned_ns = program.process.spawned_ns
    return (program.initialized_ns - spawned_ns) / 1e6, (program.opened_ns - spawned_ns) / 1e6
