"""`python -m freeze.windows [folder] [onefile] [untested]`: Windows builds made and tested by Wine.

What they need, a Wine prefix and a Windows Python with the pinned packages, is made once for each
lock, in the user's cache folder.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from freeze.build import KINDS, Kind, program_path
from freeze.commit import COMMIT_VARIABLE, commit_of
from freeze.contents import ROOT
from freeze.windows_python import EMBEDDED, LOCK, make_python
from freeze.wine import Wine, WineError, windows_path

if sys.platform != "win32":
    import fcntl

DIST = ROOT / "dist" / "windows"
WORK = ROOT / "build" / "windows"

# The wire, the program itself, every recording: what must hold of a build. All other tests over it
# take Wine more than half an hour; programs of this system drive Node, Neovim and Emacs.
_SUITES = (
    *("tests/stdio", "tests/exe", "tests/transcripts", "tests/process/test_planted_files.py"),
    *("tests/process/test_end_of_process.py", "tests/process/test_command_line.py"),
    "tests/terminal/chat/test_chat_console.py",
)
_ALL = ("--ignore=tests/editors",)
_PYTEST = ("-p", "no:cacheprovider", "-o", "faulthandler_timeout=300", "--dist", "worksteal")

# The first process with a window makes Wine start a desktop, which keeps that process's stderr open
# as long as anybody uses the desktop: a test that reads a one-file program's stderr to its end (its
# first process has a window) would wait for ever. So the module's own process comes first.
_RUN_MODULE = (
    "import ctypes, runpy, sys; ctypes.WinDLL('user32').GetDesktopWindow(); del sys.argv[0]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


class WindowsHere:
    """Wine and the Windows Python in `home`, made when they are not there."""

    def __init__(self, home: Path) -> None:
        self._wine = Wine(home / "prefix")
        self._python = home / "python" / "python.exe"
        finished = home / "finished"
        with _locked(home.with_suffix(".lock")):
            if not finished.exists():
                print(f"making a Windows Python and a Wine prefix in {home}", flush=True)
                shutil.rmtree(home, ignore_errors=True)
                make_python(self._python.parent)
                self._wine.make()
                finished.touch()

    def run(self, *arguments: str, **environment: str) -> int:
        """Run a module of this checkout; its exit code."""
        command = [self._python, "-u", "-X", "utf8", "-c", _RUN_MODULE, *arguments]
        commit = {COMMIT_VARIABLE: commit_of(ROOT)}  # there is no git
        return self._wine.show(command, cwd=ROOT, environment={**commit, **environment})


def main(arguments: list[str]) -> int:
    """The exit code."""
    kinds: list[Kind] = [kind for kind in KINDS if kind in arguments] or list(KINDS)
    try:
        windows = WindowsHere(_home())
    except WineError as error:
        print(f"freeze: {error}", file=sys.stderr)
        return 1
    if "pytest" in arguments:  # over the source: whatever tests are named behind it
        return windows.run(*arguments[arguments.index("pytest") :], *_PYTEST)
    code = windows.run("freeze", *kinds, f"--dist={DIST}", f"--work={WORK}")
    for kind in kinds if code == 0 and "untested" not in arguments else ():
        program = windows_path(program_path(kind, DIST, ".exe"))
        print(f"the tests over {program}", flush=True)
        workers = str(os.cpu_count() or 1)
        suites = _ALL if os.environ.get("KODE_TEST_FULL") == "1" else _SUITES
        tests = ("pytest", "-m", "program", "-n", workers, *suites, *_PYTEST)
        code |= windows.run(*tests, KODE_TEST_EXE=program)
    return code


def _home() -> Path:
    """Another lock makes another one."""
    made_of = LOCK.read_bytes() + EMBEDDED.encode()
    for name in ("forwarder_dll.py", "windows_python.py"):
        made_of += Path(__file__).with_name(name).read_bytes()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "kode-sidecar", f"windows-{hashlib.sha256(made_of).hexdigest()[:12]}")


@contextmanager
def _locked(path: Path) -> Generator[None, None, None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
