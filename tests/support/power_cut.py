"""What is left of a folder when the power fails: what was fsynced, and no more.

A file's bytes are there as they were when it was last synced; a name is there when its folder was
synced since. With `zeros` the sizes and the names came through and the bytes did not, as some file
systems do. What SQLite syncs by itself, from C, is known by its rules: once a database was synced,
it changes only when its log is moved into it, fully synced; its log is synced by us.

All threads lose their power at the same instant: what one of them still wrote, or told, while the
rest was being looked at would be of no instant that ever was.
"""

import io
import os
import signal
import stat
import sys
import threading
import time
import traceback
from pathlib import Path


class PowerCut:
    """Follows a folder from now on; what is there already has survived."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._data: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, tuple[int, bool]]] = {}
        self._settled: set[int] = set()
        self._noting = threading.Lock()  # after the cut it stays held: nothing more survives
        for place in (root, *root.rglob("*")) if root.exists() else ():
            if place.is_dir():
                self._keep_names(place)
            else:
                self._data[place.stat().st_ino] = _content(place)
                self._settled.add(place.stat().st_ino)

    def created(self, fd: int) -> None:
        """A file was opened; one that is empty has nothing to survive."""
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            with self._noting:
                self._data[status.st_ino] = b""
                self._settled.discard(status.st_ino)

    def synced(self, fd: int) -> None:
        """A file or a folder was fsynced."""
        status = os.fstat(fd)
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        with self._noting:
            if stat.S_ISDIR(status.st_mode):
                self._keep_names(path)
            else:
                self._data[status.st_ino] = _content(path) if path.exists() else b""
                self._settled.add(status.st_ino)

    def happen(self, *, zeros: bool) -> None:
        """End this process, all of it at once, and let the folder be what survived."""
        self._noting.acquire()
        dying = os.getpid()
        if os.fork():
            while True:
                signal.pause()
        end = signal.SIGABRT  # no image was made: no test takes this for a power cut
        try:
            _freeze(dying)
            self._replace_by_image(zeros=zeros)
            end = signal.SIGKILL
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os.kill(dying, end)
            os.kill(dying, signal.SIGCONT)  # who is stopped hears of no other signal
            os._exit(0)

    def _replace_by_image(self, *, zeros: bool) -> None:
        image = self._with_zeros() if zeros else self._strict(self._root)
        new = self._root.with_name(f"{self._root.name}.survived")
        new.mkdir(mode=0o700)
        for name, content in image.items():
            path = new / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        self._root.rename(self._root.with_name(f"{self._root.name}.lost"))
        new.rename(self._root)

    def _keep_names(self, folder: Path) -> None:
        self._names[folder] = {
            entry.name: (entry.stat(follow_symlinks=False).st_ino, entry.is_dir())
            for entry in os.scandir(folder)
        }

    def _strict(self, folder: Path) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for name, (number, is_folder) in self._names.get(folder, {}).items():
            path = folder / name
            key = str(path.relative_to(self._root))
            if is_folder:
                found[key] = None
                found |= self._strict(path)
            elif not name.endswith("-shm"):
                found[key] = self._survived(path, number)
        return found

    def _with_zeros(self) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for path in self._root.rglob("*"):
            key = str(path.relative_to(self._root))
            if path.is_dir():
                found[key] = None
            elif not path.name.endswith("-shm"):
                kept, now = self._survived(path, path.stat().st_ino), _content(path)
                found[key] = kept[: len(now)] + bytes(max(0, len(now) - len(kept)))
        return found

    def _survived(self, path: Path, number: int) -> bytes:
        is_database = path.name.endswith(".sqlite")
        if is_database and number in self._settled and path.exists():
            return _content(path)
        return self._data.get(number, b"")


def _freeze(process: int) -> None:
    """Stop every thread of a process; return once none of them runs."""
    os.kill(process, signal.SIGSTOP)
    tasks = Path(f"/proc/{process}/task")
    while any(_state(task / "stat") not in ("T", "ended") for task in tasks.iterdir()):
        time.sleep(0.0005)  # one that waits for the disk stops when that has answered


def _state(status: Path) -> str:
    try:
        return _content(status).rpartition(b") ")[2][:1].decode()
    except (FileNotFoundError, ProcessLookupError):  # its thread was ending when it was stopped
        return "ended"


def _content(path: Path) -> bytes:
    """What is in a file; not by `open`, which counts as an operation of those that are watched."""
    with io.FileIO(path) as file:
        return file.readall()
