"""The built programs, where `dev.py exe` has built them: from the spawn to `initialize`."""

from benchmarks.figures import Figure
from benchmarks.process import BenchError
from benchmarks.programs import ROOT, SIDECAR, Arena
from freeze.build import Kind, program_path
from freeze.start_up import StartUpError, start_up_ms

# The one file unpacks itself first: a download, not what a plugin ships.
_MOST_RATIO: dict[Kind, float | None] = {"folder": 4, "onefile": None}


def built(_arena: Arena, runs: int) -> list[Figure]:
    """Beside a bare Python in the same run; nothing for what is not built."""
    return [_start_up(kind, most, runs) for kind, most in _MOST_RATIO.items()]


def _start_up(kind: Kind, most_ratio: float | None, runs: int) -> Figure:
    program = program_path(kind, ROOT / "dist")
    answered = bare = None
    if program.exists():
        try:
            answered, bare = start_up_ms([str(program)], runs)
        except (StartUpError, OSError) as error:
            raise BenchError(f"the built {kind}: {error}") from None
    return Figure(
        f"{kind} spawn to initialize",
        "ms",
        {SIDECAR: answered},
        most_ratio=most_ratio,
        base=bare,
        base_name="python -c pass" if bare else "not built",
    )
