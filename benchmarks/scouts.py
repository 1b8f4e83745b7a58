"""Five scouts at once against the slowest of them alone, over a project of 5,000 files."""

from pathlib import Path
from statistics import median

from benchmarks.figures import Figure
from benchmarks.model import Model
from benchmarks.process import BenchError
from benchmarks.programs import SIDECAR, Arena, Program
from benchmarks.scout_model import FILES, FOLDERS, NEEDLE, path_of

SCOUTS = 5
_LINES = 40


class ScoutModel(Model):
    """`scout_model.py` as a process of its own; it has one plan."""

    program = Path(__file__).resolve().parent / "scout_model.py"


def scouts(arena: Arena, runs: int) -> list[Figure]:
    """The time of a turn that explores. All alone and all together in turn, `runs` times."""
    alone: list[list[float]] = [[] for _ in range(SCOUTS)]
    together: list[float] = []
    folder = arena.folder / "scouts"
    folder.mkdir()
    with ScoutModel() as model:
        field = Arena(model, folder)
        _write_project(field.workspace)
        program = field.spawn(SIDECAR)
        try:
            program.open()
            program.wait_loaded()
            _explore(program, range(SCOUTS))  # the first goes through code that never ran
            for _ in range(runs):
                for number in range(SCOUTS):
                    alone[number].append(_explore(program, [number]))
                together.append(_explore(program, range(SCOUTS)))
        finally:
            program.process.close()
    return [
        Figure(
            f"{SCOUTS} scouts, {FOLDERS * FILES:,} files",
            "ms",
            {SIDECAR: median(together)},
            most_ratio=1.3,
            base=max(median(times) for times in alone),
            base_name="the slowest alone",
        )
    ]


def _explore(program: Program, numbers: range | list[int]) -> float:
    """Milliseconds of a turn in a session of its own."""
    program.new_session()
    turn = program.turn(f"BENCHGO explore {','.join(map(str, numbers))}")
    done = sum(message.body.count(b'"state":"done"') for message in turn.messages)
    if done != len(numbers):
        raise BenchError(f"{done} of {len(numbers)} scouts reported")
    return turn.seconds * 1e3


def _write_project(workspace: Path) -> None:
    for number in range(FOLDERS * FILES):
        file = workspace / path_of(number)
        file.parent.mkdir(exist_ok=True)
        lines = [
            f"value_{number}_{line} = {line}  # a line like any other" for line in range(_LINES)
        ]
        lines[2] = NEEDLE if number % 500 == 7 else lines[2]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
