"""What three configured MCP servers cost of which none is called, next to none."""

import json
import sys
from collections import defaultdict

from benchmarks.figures import Figure, Samples, medians
from benchmarks.programs import SIDECAR, Arena, settle
from benchmarks.usage import memory_mb

_SERVERS = {name: {"command": [sys.executable, "-c", "exit(1)"]} for name in ("a", "b", "c")}
CONFIGS = {
    SIDECAR: json.dumps({"locale": "en", "mcp": _SERVERS}),
    "without": json.dumps({"locale": "en"}),
}
"""Both have a `config.yaml` (JSON is YAML, too): reading YAML costs what it costs."""
_MOST_RATIO = 1.1


def servers(arena: Arena, runs: int) -> list[Figure]:
    """Start, first request and memory after the first turn, in turn with and without."""
    initialized: Samples = defaultdict(list)
    asked: Samples = defaultdict(list)
    held: Samples = defaultdict(list)
    for run in range(runs + 1):
        for name, config in CONFIGS.items():
            initialized_ms, asked_ms, megabytes = _spawn(arena, config)
            if run:  # the first fills the caches of the disk
                initialized[name].append(initialized_ms)
                asked[name].append(asked_ms)
                held[name].append(megabytes)
    return [
        _figure("3 idle MCP servers: spawn to initialize", "ms", initialized),
        _figure("3 idle MCP servers: spawn to first request", "ms", asked),
        _figure("3 idle MCP servers: memory after a turn", "MB", held),
    ]


def _figure(name: str, unit: str, samples: Samples) -> Figure:
    both = medians(samples)
    with_servers = {SIDECAR: both[SIDECAR]}
    base = both["without"]
    return Figure(name, unit, with_servers, _MOST_RATIO, base=base, base_name="without")


def _spawn(arena: Arena, config: str) -> tuple[float, float, float | None]:
    arena.model.plan(n=1)
    program = arena.spawn(SIDECAR, config=config)
    try:
        program.open()
        program.turn()
        program.wait_loaded()
        settle()
        held = memory_mb(program.process.pid)
    finally:
        program.process.close()
    spawned = program.process.spawned_ns
    asked = arena.model.request_times()[0]
    return (program.initialized_ns - spawned) / 1e6, (asked - spawned) / 1e6, held
