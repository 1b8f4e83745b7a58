"""Text that streams: one delta every 10 ms, and as fast as it goes."""

from collections import defaultdict

from benchmarks import usage
from benchmarks.figures import Figure, Samples, medians, quantile
from benchmarks.programs import PROGRAMS, Arena, settle

PACED_DELTAS = 300
FLAT_DELTAS = 20_000
DELTA_SIZE = 40

_GAP_MS = 10
_IDLE_SECONDS = 0.3


def paced(arena: Arena, runs: int) -> list[Figure]:
    """Latency of a delta, CPU and bytes, at the pace of a model."""
    latencies: dict[str, list[float]] = defaultdict(list)
    cpu: Samples = defaultdict(list)
    lone: dict[str, list[int]] = defaultdict(list)
    for name, program in arena.rounds(runs):
        arena.model.plan(n=PACED_DELTAS, size=DELTA_SIZE, gap_ms=_GAP_MS)
        before = usage.cpu_seconds(program.process.pid)
        turn = program.turn()
        settle()
        after = usage.cpu_seconds(program.process.pid)
        latencies[name] += turn.latencies_ms()
        cpu[name].append(_per_delta(before, after, PACED_DELTAS))
        lone[name] += turn.lone_bytes()
    p50 = {name: quantile(values, 0.5) for name, values in latencies.items()}
    p99 = {name: quantile(values, 0.99) for name, values in latencies.items()}
    most = {name: float(max(values)) if values else None for name, values in lone.items()}
    return [
        Figure("delta latency p50, paced", "ms", p50, most_ratio=1.3),
        Figure("delta latency p99, paced", "ms", p99),
        Figure("CPU per delta, paced", "us", medians(cpu)),
        Figure("bytes of a delta alone, most", "B", most, most=175),
    ]


def flat(arena: Arena, runs: int) -> list[Figure]:
    """A burst of 20,000 deltas: CPU, bytes, speed and memory."""
    samples: dict[str, Samples] = defaultdict(lambda: defaultdict(list))
    for _ in range(runs):
        for name in PROGRAMS:
            for what, value in _burst(arena, name).items():
                samples[what][name].append(value)
    values = {what: medians(by_program) for what, by_program in samples.items()}
    return [
        Figure("CPU per delta, flat out", "us", values["cpu"], most_ratio=1),
        Figure("bytes per delta, flat out", "B", values["bytes"], most=60),
        Figure("deltas per second, flat out", "/s", values["speed"]),
        Figure("idle memory", "MB", values["idle"], most=70),
        Figure("memory growth, 20,000 deltas", "MB", values["growth"], most=10),
    ]


def _burst(arena: Arena, name: str) -> dict[str, float | None]:
    program = arena.spawn(name)
    try:
        pid = program.process.pid
        program.open()
        program.wait_loaded()
        settle(_IDLE_SECONDS)
        idle = usage.memory_mb(pid)
        arena.model.plan(n=1)
        program.turn()
        settle()
        arena.model.plan(n=FLAT_DELTAS, size=DELTA_SIZE)
        before = usage.cpu_seconds(pid)
        turn = program.turn()
        settle(_IDLE_SECONDS)
        after = usage.cpu_seconds(pid)
        grown = usage.memory_mb(pid)
    finally:
        program.process.close()
    return {
        "cpu": _per_delta(before, after, FLAT_DELTAS),
        "bytes": sum(delta.wire_bytes for delta in turn.deltas) / FLAT_DELTAS,
        "speed": FLAT_DELTAS / turn.seconds,
        "idle": idle,
        "growth": None if idle is None or grown is None else grown - idle,
    }


def _per_delta(before: float | None, after: float | None, deltas: int) -> float | None:
    """Microseconds."""
    if before is None or after is None:
        return None
    return (after - before) / deltas * 1e6
