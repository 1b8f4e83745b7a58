"""How the open folders are held while a sandboxed command runs in them: alone, with placeholders.

Two that ran at once could help each other out: one could put links where the next one is about to
mount something, and have other files of the user's mounted for it. A placeholder is an empty folder
that stands where there is none, so that the command can make none there: a mount needs something to
lie on.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_AGAIN_SECONDS = 0.05
_OURS = 0o710
"""The mode of a placeholder, so that one which a killed process left goes with the next command."""


@asynccontextmanager
async def alone_in(folders: Sequence[Path]) -> AsyncGenerator[None]:
    """Wait until no other command runs in any of them, in a folder below or in one above."""
    while (held := _lock(folders)) is None:  # noqa: ASYNC110  (another process may hold it)
        await asyncio.sleep(_AGAIN_SECONDS)
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def _lock(folders: Sequence[Path]) -> list[int] | None:
    """Return what holds the locks, or None if another one does. Those of parents are shared."""
    held: list[int] = []
    parents = {parent for folder in folders for parent in folder.parents}
    for folder in {*folders, *parents}:
        if not _lock_one(folder, held, shared=folder not in folders):
            for descriptor in held:
                os.close(descriptor)
            return None
    return held


def _lock_one(folder: Path, held: list[int], *, shared: bool) -> bool:
    if sys.platform != "win32":
        try:
            held.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
            fcntl.flock(held[-1], fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
        except BlockingIOError:
            return False
        except OSError:  # it cannot be opened, or has no locks: then there is nothing to wait for
            return True
    return True


@contextmanager
def placeholders(places: Iterable[Path]) -> Generator[Sequence[Path]]:
    """Make those of `places` that are missing, and yield them. One that is filled meanwhile stays.

    `alone_in` sees to it that no other command has the same ones.
    """
    made: list[Path] = []
    try:
        for place in places:
            with suppress(OSError):  # who cannot make it here: neither can a command
                if _make(place):
                    made.append(place)
        yield tuple(made)
    finally:
        for place in made:
            try:
                os.rmdir(place)
            except OSError:
                with suppress(OSError):
                    os.chmod(place, 0o755)


def _make(place: Path) -> bool:
    """Return whether there is a placeholder now; not where the user has something."""
    try:
        os.mkdir(place, _OURS)
    except FileExistsError:
        mode = os.lstat(place).st_mode
        return mode == stat.S_IFDIR | _OURS and not os.listdir(place)
    os.chmod(place, _OURS)
    return True
