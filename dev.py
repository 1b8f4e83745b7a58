#!/usr/bin/env python3
"""Set-up and chores of this project: `python3 dev.py --help` (on Windows `py dev.py --help`).

Only the standard library; Linux, macOS and Windows. The first run makes `.venv` and installs
the versions pinned in `requirements/` into it; later runs do so again only when these changed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, Generator, Mapping, NamedTuple, Sequence  # noqa: UP035  (old Pythons get a clear message)

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
UNFINISHED = VENV / "unfinished"  # there while the environment is being made
INSTALLED = VENV / "installed.json"  # level -> fingerprint of what was installed
PIP_LOG = VENV / "pip.log"

# What each level needs, weakest first; a level includes those before it.
LEVELS = {
    "runtime": "requirements/runtime.txt",
    "dev": "requirements/dev.txt",
    "exe": "requirements/exe.txt",
}
_EXE = "kode-sidecar.exe" if os.name == "nt" else "kode-sidecar"
# What `exe` can build, by the option that asks for it; where `freeze` puts it.
BUILT = {
    "folder": ROOT / "dist" / "kode-sidecar" / _EXE,
    "onefile": ROOT / "dist" / "one-file" / _EXE,
}
WINDOWS_FOLDER = ROOT / "dist" / "windows" / "kode-sidecar" / "kode-sidecar.exe"


class SetUpError(Exception):
    """Set-up failed; the message says what to do."""


# --- the environment -------------------------------------------------------------------------


def prepare(level: str) -> None:
    """Bring `.venv` up to `level`; a few milliseconds when nothing changed."""
    with one_at_a_time():
        if not environment_works():
            make_environment()
        installed = read_installed()
        for name, lock in LEVELS.items():
            fingerprint = fingerprint_of(lock)
            if installed.get(name) != fingerprint:
                install(name, lock)
                installed[name] = fingerprint
                INSTALLED.write_text(json.dumps(installed), encoding="utf-8")
            if name == level:
                return


@contextmanager
def one_at_a_time() -> Generator[None]:
    """Wait while another `dev.py` of this clone sets up. The system lets go when one is killed."""
    with open(__file__, "rb") as file:
        if not lock(file, wait=False):
            say("waiting for another dev.py, which sets up .venv")
            while not lock(file, wait=True):
                pass
        yield


def lock(file: BinaryIO, *, wait: bool) -> bool:
    """Lock an open file until it is closed; False if another process has it (still)."""
    try:
        if sys.platform == "win32":
            file.seek(1 << 30)  # behind the end: nobody else can read what is locked
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:  # a file system that knows no locks is no reason to stop
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


def environment_works() -> bool:
    """Is `.venv` whole, and is the Python it was made from still there?"""
    if UNFINISHED.exists() or not PYTHON.exists():
        return False
    try:
        config = (VENV / "pyvenv.cfg").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    home = re.search(r"^home\s*=\s*(.+)$", config, re.MULTILINE)
    version = re.search(r"^version\w*\s*=\s*(\d+)\.(\d+)", config, re.MULTILINE)
    return (
        home is not None
        and Path(home[1].strip()).is_dir()
        and version is not None
        and (int(version[1]), int(version[2])) >= OLDEST_PYTHON
    )


def make_environment() -> None:
    say(f"making .venv with Python {sys.version.split()[0]}")
    try:
        if VENV.exists():
            shutil.rmtree(VENV)
        VENV.mkdir()
        UNFINISHED.touch()
    except OSError as error:
        raise SetUpError(f".venv cannot be made: {error}; close what uses it, then again") from None
    # Started with .venv's own Python, `sys.executable` is what was just removed.
    python = getattr(sys, "_base_executable", sys.executable)
    made = subprocess.run([python, "-m", "venv", str(VENV)], check=False)
    if made.returncode != 0:
        raise SetUpError(
            "`python -m venv` failed (see above). On Debian and Ubuntu: apt install python3-venv"
        )
    UNFINISHED.unlink()


def install(level: str, lock: str) -> None:
    say(f"installing {lock} ({level})")
    pip("install", "--require-hashes", "--requirement", str(ROOT / lock))
    if level == "runtime":
        say("linking kode-sidecar into .venv")
        pip("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def pip(*arguments: str) -> None:
    """Run pip silently: warnings of the user's own pip settings go to the log with the rest."""
    command = [str(PYTHON), "-m", "pip", *arguments, "-qq", "--progress-bar=off", "--no-input"]
    command += ["--disable-pip-version-check", "--log", str(PIP_LOG)]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        shown = [line for line in lines if line and not line.startswith("WARNING")][-15:]
        raise SetUpError(
            "\n".join([*shown, f"pip failed; all it did is in {PIP_LOG}"])
            + "\nCheck the network and try again, or delete .venv to start afresh."
        )


def read_installed() -> dict[str, str]:
    try:
        return dict(json.loads(INSTALLED.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def fingerprint_of(lock: str) -> str:
    """Changes with the pinned versions, the project's own metadata and the project's place."""
    digest = hashlib.sha256(os.fsencode(ROOT))
    for path in (ROOT / lock, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# --- running ---------------------------------------------------------------------------------


class Stage(NamedTuple):
    """One step of `test` or `lint`: a Python module of `.venv` and its arguments."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = {}


class Outcome(NamedTuple):
    stage: str
    ok: bool
    last_line: str


def run_stages(stages: Sequence[Stage]) -> list[Outcome]:
    """Run all, also behind one that failed, passing their output on line by line."""
    outcomes: list[Outcome] = []
    for stage in stages:
        say(stage.name)
        outcomes.append(run_stage(stage, show))
    return outcomes


def run_beside(beside: Stage, stages: Sequence[Stage]) -> list[Outcome]:
    """Run `stages` and one more at the same time, whose output is shown when all have ended."""
    lines: list[str] = []
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(run_stage, beside, lines.append)
        outcomes = run_stages(stages)
        outcomes.insert(-1, other.result())
    show("".join(lines))
    return outcomes


def run_stage(stage: Stage, show: Callable[[str], object]) -> Outcome:
    start = time.monotonic()
    code, last_line = run_and_listen(stage.arguments, stage.environment, show)
    ok = code == 0
    show(f"[dev] {stage.name}: {'ok' if ok else 'FAILED'} ({time.monotonic() - start:.1f} s)\n")
    return Outcome(stage.name, ok, last_line)


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def run_and_listen(
    arguments: Sequence[str], environment: Mapping[str, str], show: Callable[[str], object]
) -> tuple[int, str]:
    """Exit code and last line of a module's output, which is shown as it comes."""
    # UTF-8 for this process only: an inherited PYTHONUTF8 would hide mistakes from the tests.
    # Unbuffered: what is shown, and its last line, stand in the order in which they were said.
    command = [str(PYTHON), "-u", "-X", "utf8", "-m", *arguments]
    last_line = ""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            show(line)
            last_line = line.strip() or last_line
    return process.returncode, re.sub(r"\x1b\[[0-9;]*m", "", last_line)


def summary(outcomes: Sequence[Outcome]) -> str:
    failed = [outcome.stage for outcome in outcomes if not outcome.ok]
    if failed:
        return f"FAILED: {', '.join(failed)}"
    return f"ok: {', '.join(outcome.stage for outcome in outcomes)}"


def say(line: str) -> None:
    print(f"[dev] {line}", flush=True)


# --- the commands ----------------------------------------------------------------------------


def demo(arguments: list[str]) -> int:
    command = [str(PYTHON), "-m", "kode_sidecar", "demo", *arguments]
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the demo got it too and ends by itself


def lint(arguments: list[str]) -> int:
    if unknown := [argument for argument in arguments if argument != "--fix"]:
        say(f"lint takes only --fix, not {' '.join(unknown)}")
        return 2
    outcomes = run_stages(lint_stages(fix="--fix" in arguments))
    say(summary(outcomes))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def lint_stages(*, fix: bool = False) -> list[Stage]:
    # pyright and its Node come whole from PyPI; without this it asks PyPI for a newer version.
    os.environ["PYRIGHT_PYTHON_IGNORE_WARNINGS"] = "1"
    return [
        Stage("format", ["ruff", "format", *([] if fix else ["--check"]), "."]),
        Stage("lint", ["ruff", "check", *(["--fix"] if fix else []), "."]),
        Stage("types", ["pyright", "--pythonpath", str(PYTHON)]),
    ]


def test(arguments: list[str]) -> int:
    with_exe = "--exe" in arguments or "--full" in arguments
    if with_exe:
        prepare("exe")
    if "--full" in arguments:
        os.environ["KODE_TEST_FULL"] = "1"
    # The tests start this program a thousand times: it is compiled once, not every time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wanted = [argument for argument in arguments if argument not in ("--exe", "--full")]
    seed = choose_seed()
    *quick, types = lint_stages()
    outcomes = run_beside(types, [*quick, Stage("tests", [*pytest(), *wanted])])
    counted = [outcomes[-1].last_line]
    if with_exe:
        tested = build_and_test(list(BUILT) if "--full" in arguments else ["folder"])
        outcomes += tested
        counted += [outcome.last_line for outcome in tested[1:]]
    say(" | ".join([summary(outcomes), f"seed {seed}", *counted]))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def pytest() -> list[str]:
    full = ["-o", "faulthandler_timeout=900"] if os.environ.get("KODE_TEST_FULL") == "1" else []
    color = ["--color=yes"] if sys.stdout.isatty() else []
    # CI judges a change, not a race in a test: what fails there is run once more, and the report
    # names it and counts it ("1 rerun"). At home it fails.
    again = ["--reruns", "1", "-r", "fR", "--tb=native"] if os.environ.get("CI") == "true" else []
    # A test often waits for the process it started: one worker more than cores fills these waits.
    # The slow tests lie together: a worker that is done takes from the others.
    return ["pytest", "-n", str(cores() + 1), "--dist", "worksteal", *again, *full, *color]


def choose_seed() -> str:
    seed = os.environ.setdefault("KODE_TEST_SEED", str(random.randrange(2**32)))
    say(f"KODE_TEST_SEED={seed} (set it to repeat this run)")
    return seed


def exe(arguments: list[str]) -> int:
    options = {f"--{kind}" for kind in BUILT} | {"--test", "--windows"}
    if unknown := [argument for argument in arguments if argument not in options]:
        say(f"exe takes only {', '.join(sorted(options))}, not {' '.join(unknown)}")
        return 2
    kinds = [kind for kind in BUILT if f"--{kind}" in arguments]
    if "--windows" in arguments:  # not on Windows itself: built and tested by Wine
        seed = choose_seed()
        outcomes = run_stages([Stage("windows", ["freeze.windows", *kinds])])
        say(" | ".join([summary(outcomes), f"seed {seed}", outcomes[0].last_line]))
        return 0 if outcomes[0].ok else 1
    kinds = kinds or ["folder"]
    if "--test" in arguments:
        seed = choose_seed()
        outcomes = build_and_test(kinds)
        counted = [outcome.last_line for outcome in outcomes[1:]]
        say(" | ".join([summary(outcomes), f"seed {seed}", *counted]))
    else:
        outcomes = [build(kinds)]
        say(summary(outcomes))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def build_and_test(kinds: Sequence[str]) -> list[Outcome]:
    """The programs built, and the tests over each; none where there is nothing to test."""
    built = build(kinds)
    if not built.ok:
        return [built]
    over_it = [*pytest(), "-m", "program"]
    tests = [Stage(f"{kind} tests", over_it, {"KODE_TEST_EXE": str(BUILT[kind])}) for kind in kinds]
    return [built, *run_stages(tests)]


def build(kinds: Sequence[str]) -> Outcome:
    (outcome,) = run_stages([Stage("build", ["freeze", *kinds])])
    return outcome


def protocol(arguments: list[str]) -> int:
    command = [str(PYTHON), "-m", "protocol.export", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def bench(arguments: list[str]) -> int:
    command = [str(PYTHON), "-X", "utf8", "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def simulate(arguments: list[str]) -> int:
    command = [str(PYTHON), "-X", "utf8", "-m", "simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def mutate(arguments: list[str]) -> int:
    command = [str(PYTHON), "-X", "utf8", "-m", "simulation.mutation", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def soak(arguments: list[str]) -> int:
    command = [str(PYTHON), "-X", "utf8", "-m", "simulation.soak", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def vsix(arguments: list[str]) -> int:
    """The extension for VS Code carries the folder build; where there is none it is built first."""
    if arguments not in ([], ["--no-server"], ["--windows"]):
        say(f"vsix takes --no-server or --windows, not {' '.join(arguments)}")
        return 2
    if "--windows" in arguments and not WINDOWS_FOLDER.exists():
        if not run_stages([Stage("windows", ["freeze.windows", "folder", "untested"])])[0].ok:
            return 1
    elif not arguments and not BUILT["folder"].exists():
        prepare("exe")
        if not build(["folder"]).ok:
            return 1
    command = [str(PYTHON), str(ROOT / "editors" / "vscode" / "scripts" / "vsix.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def editors(arguments: list[str]) -> int:
    """Not part of `test`: it needs Chromium and minutes. Installs code-server once."""
    stories = sorted(map(str, ROOT.joinpath("tests", "editors").glob("vscode*story.py")))
    command = ["pytest", "-s", "-o", "faulthandler_timeout=0", *stories]
    outcomes = run_stages([Stage("VS Code", [*command, *arguments])])
    say(" | ".join([summary(outcomes), outcomes[0].last_line]))
    return 0 if outcomes[0].ok else 1


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Command(NamedTuple):
    """A chore, the level of `.venv` it needs, and what `--help` says about it."""

    run: Callable[[list[str]], int]
    level: str
    usage: str
    summary: str


COMMANDS = {
    "demo": Command(demo, "runtime", "[arguments]", "watch an agent turn over the real process"),
    "test": Command(
        test,
        "dev",
        "[--exe] [--full] [pytest arguments]",
        "format, lint, types, then pytest; --exe builds the folder and tests it as well, "
        "--full means both builds, more examples and slow tests",
    ),
    "lint": Command(lint, "dev", "[--fix]", "format, lint, types; --fix repairs what it can"),
    "protocol": Command(
        protocol, "runtime", "", "write schema, TypeScript and method reference to protocol/"
    ),
    "exe": Command(
        exe,
        "exe",
        "[--folder] [--onefile] [--test] [--windows]",
        "build the program: a folder, dist/kode-sidecar (the default), or one file, dist/one-file; "
        "--test runs the tests over it on the result; --windows does all that for Windows by Wine",
    ),
    "vsix": Command(
        vsix,
        "dev",
        "[--no-server|--windows]",
        "pack the VS Code extension with the folder build, dist/kode-sidecar-PLATFORM.vsix; "
        "--windows: with the one that Wine builds, win32-x64",
    ),
    "editors": Command(
        editors, "dev", "[pytest arguments]", "the story of a user in real VS Code, by Chromium"
    ),
    "simulate": Command(
        simulate,
        "dev",
        "[STORY] [--world NAME] [--runs N] [--seed S] [--minutes M]",
        "worlds drawn from seeds, played until a promise is broken; that story is made small, "
        "written to tests/simulation/stories, and played again by its name",
    ),
    "mutate": Command(
        mutate,
        "dev",
        "[--known] [--only TEXT] [--generated N] [--seconds S]",
        "faults put into a copy, one at a time: which do stories and tests notice?",
    ),
    "soak": Command(
        soak,
        "dev",
        "[--minutes M] [--sessions N] [--plot FILE]",
        "many sessions, a slow reader and a flaky host: does anything grow? a table and an SVG",
    ),
    "bench": Command(
        bench,
        "dev",
        "[--json] [--profile] [--only NAME] [--runs N]",
        "figures next to plain programs' in the same run; --profile draws a flame graph",
    ),
}


def usage(names: Sequence[str]) -> str:
    return "\n".join(
        f"dev.py {name} {COMMANDS[name].usage}\n    {COMMANDS[name].summary}" for name in names
    )


def main(argv: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    name, arguments = (argv[0] if argv else "--help"), argv[1:]
    if name in ("-h", "--help"):
        print(f"{__doc__}\n{usage(list(COMMANDS))}")
        return 0
    if name not in COMMANDS:
        print(f"dev.py has no command `{name}`; it has {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    if arguments[:1] in (["-h"], ["--help"]):
        print(usage([name]))
        return 0
    if sys.version_info < OLDEST_PYTHON:
        print(f"dev.py needs Python 3.11 or newer, not {sys.version.split()[0]}", file=sys.stderr)
        return 2
    try:
        prepare(COMMANDS[name].level)
        return COMMANDS[name].run(arguments)
    except SetUpError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
