"""Reserves the open folders for one sandboxed command at a time, and makes placeholders in them.

Two commands at once could help each other escape: one could put links where the sandbox of the
other is about to mount something, so that other files of the user's are mounted. A placeholder is
an empty folder in place of a missing one, so that the command cannot create it: a mount needs an
existing folder.
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
"""The mode of a placeholder, by which the next command removes one left by a killed process."""


@asynccontextmanager
async def alone_in(folders: Sequence[Path]) -> AsyncGenerator[None]:
    """Wait until no other command runs in these folders, or in one below or above them."""
    while (held := _lock(folders)) is None:  # noqa: ASYNC110  (another process may hold it)
        await asyncio.sleep(_AGAIN_SECONDS)
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def _lock(folders: Sequence[Path]) -> list[int] | None:
    """Return the descriptors that hold the locks, None if one is taken. Parents' are shared."""
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
        except OSError:  # it cannot be opened or locked: there is nothing to wait for
            return True
    return True


@contextmanager
def placeholders(places: Iterable[Path]) -> Generator[Sequence[Path]]:
    """Make placeholders for missing `places`, yield them, and remove those still empty.

    Call it under `alone_in`, so that no other command uses the same ones.
    """
    made: list[Path] = []
    try:
        for place in places:
            with suppress(OSError):  # where we cannot make it, no command can either
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
    """Make a placeholder; return False if the user has something at that place."""
    try:
        os.mkdir(place, _OURS)
    except FileExistsError:
        mode = os.lstat(place).st_mode
        return mode == stat.S_IFDIR | _OURS and not os.listdir(place)
    os.chmod(place, _OURS)
    return True
