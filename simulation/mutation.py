"""`dev.py mutate`: tests the tests. Faults are put into a copy of the tree, one at a time.

Each is played by the stories that are kept, then by fresh ones, then by the tests of its room, the
quick ones first. A line says what noticed it. What nothing notices survives, and the last lines
name it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from simulation.mutant_rules import generated
from simulation.mutants import BY_HAND, KNOWN, PACKAGE, Mutant

_TREES = ("kode_sidecar", "simulation", "tests", "prompts", "protocol", "examples")
_FILES = ("pyproject.toml", "dev.py", "README.md")
WORLDS = ("edits", "whole", "lives")
_HANGING_SECONDS = 600
_STORIES = Path("tests/simulation/stories")
TESTS = {
    "edits": [
        "simulation/test_endings.py",
        *("agent/edits", "process/test_modes.py", "process/test_told_states.py"),
        *("process/test_workspace_edits.py", "process/test_editor_knowledge.py"),
        *("process/test_editing_truth.py", "process/test_edit_variants.py"),
    ],
    "event_log": [
        *("process/test_attach.py", "process/test_order.py", "process/test_ask_user.py"),
        *("process/test_permissions.py", "process/test_read_along.py", "process/test_steer.py"),
        *("disk/test_saved_before_told.py", "disk/test_faults_in_a_session.py"),
    ],
    "records": [
        *(
            "infrastructure/records",
            "disk/test_damage.py",
            "disk/test_database_damage.py",
            "process/test_usage.py",
        ),
        *("process/test_sessions.py", "process/test_migration.py", "disk/test_faults_by_strace.py"),
        "disk/test_faults_in_a_session.py",
    ],
    "kernel": [
        *("core/kernel", "process/test_tool_cards.py", "process/test_provider_faults.py"),
        *(
            "process/test_cancel.py",
            "process/test_turns.py",
            "infrastructure/providers/test_opaque_data.py",
        ),
    ],
    "turns": [
        *("process/test_turns.py", "process/test_steer.py", "process/test_budget.py"),
        *("process/test_context_edits.py", "process/test_cancel.py", "process/test_run_time.py"),
        *("process/test_memory.py", "process/test_usage.py", "process/test_sessions.py"),
        *("process/test_context.py", "agent/context"),
    ],
}
"""The tests of each room's faults in the folder `tests`, the quick ones first."""


def main() -> int:
    """1 when a fault survived."""
    options = _options()
    chosen = list(KNOWN) if options.known else [*KNOWN, *BY_HAND]
    if not options.known:
        chosen += generated(options.generated, options.seed)
    chosen = [mutant for mutant in chosen if options.only in f"{mutant.file} {mutant.name}"]
    chosen = chosen[options.skip :]
    print(f"{len(chosen)} faults, generated ones from seed {options.seed}", flush=True)
    caught: Counter[str] = Counter()
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="kode-mutation-") as folder:
        _copy_tree(Path(folder))
        for world in WORLDS:
            if noticed := _noticed(Path(folder), _stories(world, options)):
                print(f"stories of {world} fail without any fault ({noticed}): mend that first")
                return 2
        for mutant in chosen:
            by = _try(Path(folder), mutant, options)
            caught[by.split(" ")[0] if by else "nothing"] += 1
            survivors += [] if by else [mutant]
            print(f"{by or 'SURVIVED':40} {mutant.file}: {mutant.name}", flush=True)
    share = 100 * (len(chosen) - len(survivors)) / max(len(chosen), 1)
    counts = ", ".join(f"{by} {count}" for by, count in caught.most_common())
    print(f"caught {share:.1f} % of {len(chosen)}: {counts}")
    for mutant in survivors:
        print(f"\n{mutant.file}: {mutant.name}\n- {mutant.old.strip()}\n+ {mutant.new.strip()}")
    return int(bool(survivors))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py mutate", description=__doc__)
    parser.add_argument("--known", action="store_true", help="the defects that had been there once")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="those with this in file or name"
    )
    parser.add_argument("--generated", type=int, default=60, help="how many are made by rule")
    parser.add_argument("--seed", type=int, default=1, help="which of those, and which stories")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="fresh stories in each world, of CPU"
    )
    parser.add_argument("--skip", type=int, default=0, help="go on after so many")
    parser.add_argument("--no-tests", action="store_true", help="stories alone")
    return parser.parse_args()


def _copy_tree(folder: Path) -> None:
    for name in _TREES:
        shutil.copytree(name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(name, folder / name)
    # What is compiled once is not compiled for each fault; the file with the fault is younger.
    subprocess.run([sys.executable, "-m", "compileall", "-q", *_TREES[:3]], cwd=folder, check=True)


def _try(folder: Path, mutant: Mutant, options: argparse.Namespace) -> str:
    """Return what noticed the fault, and after how many seconds; nothing where nothing did."""
    path = folder / PACKAGE / mutant.file
    text, made = path.read_text(encoding="utf-8"), path.stat().st_mtime
    if mutant.old not in text:
        return "nowhere (its place is gone)"
    path.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    os.utime(path, (made + 10, made + 10))
    begin = time.monotonic()
    try:
        for name, command in _commands(mutant, options):
            noticed = _noticed(folder, command)
            if noticed:
                return f"{name} after {time.monotonic() - begin:.0f} s ({noticed})"
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (made, made))
    return ""


def _commands(mutant: Mutant, options: argparse.Namespace) -> Sequence[tuple[str, list[str]]]:
    """Only the world of edits knows nothing of the other rooms."""
    worlds = WORLDS if mutant.room == "edits" else WORLDS[1:]
    found = [(f"stories of {world}", _stories(world, options)) for world in worlds]
    kept = ["simulation", *map(str, sorted(_STORIES.glob("*.story")))]
    tests = [
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        *(f"tests/{name}" for name in _tests(mutant)),
    ]
    return [("kept stories", kept), *found, *([] if options.no_tests else [("tests", tests)])]


def _tests(mutant: Mutant) -> Sequence[str]:
    """A file that stands alone writes what `records` keeps."""
    return TESTS.get(mutant.room, TESTS["records"])


def _stories(world: str, options: argparse.Namespace) -> list[str]:
    much = ["--cpu-seconds", str(options.seconds), "--seed", str(options.seed), "--minutes", "10"]
    return ["simulation", "--world", world, "--first", *much]


def _noticed(folder: Path, module: Sequence[str]) -> str:
    """Run it in the copy; return the promise or the test that failed. Hanging is noticed, too."""
    variables = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "KODE_TEST_SEED": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", *module],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_HANGING_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"hung for {_HANGING_SECONDS} s"
    if not done.returncode:
        return ""
    named = re.search(r"^(?:FAILED:?|ERROR|\s+\d+ ×) (.{1,90})", done.stdout, re.MULTILINE)
    return named[1] if named else done.stdout.strip().splitlines()[-1][:90]


if __name__ == "__main__":
    sys.exit(main())
