"""Lists a folder's files: sorted, bounded, without ignored files and without following links."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kode_sidecar.infrastructure.workspace.globs import IGNORED_NAMES, rules_for
from kode_sidecar.infrastructure.workspace.paths import Location, Root

MAX_ENTRIES = 200_000
TIME_LIMIT_SECONDS = 20.0
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)


@dataclass(frozen=True)
class ListedFile:
    """A file by its names below the root; `is_link` for links, which are not followed."""

    parts: tuple[str, ...]
    is_link: bool = False


@dataclass(frozen=True)
class Listing:
    """Files in order of names, folder by folder. `cut` says why the list is incomplete, or ""."""

    files: tuple[ListedFile, ...]
    cut: str = ""


def list_tree(
    start: Location, matches: Callable[[str], bool], limit: int, stopped: Callable[[], bool]
) -> Listing:
    """Return at most `limit` files below a folder whose path relative to it `matches`.

    Blocking: run it in a thread. Ends early if `stopped()`.
    """
    root = start.root
    base = start.below
    files: list[ListedFile] = []
    end = time.monotonic() + TIME_LIMIT_SECONDS
    for count, file in enumerate(_walk(root, base, stopped)):
        if count >= MAX_ENTRIES:
            return Listing(tuple(files), f"after looking at {MAX_ENTRIES:,} files")
        if time.monotonic() > end:
            return Listing(tuple(files), f"after {TIME_LIMIT_SECONDS:.0f} s")
        if matches("/".join(file.parts[len(base) :])):
            if len(files) == limit:
                return Listing(tuple(files), f"after {limit:,} files")
            files.append(file)
    return Listing(tuple(files))


def _walk(root: Root, base: tuple[str, ...], stopped: Callable[[], bool]) -> Iterator[ListedFile]:
    rules = rules_for(root, base)
    stack = [(base, rules, iter(_entries(root, base)))]
    while stack and not stopped():
        folder, rules, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
            continue
        parts = (*folder, entry.name)
        is_link = _is_link(entry)
        is_folder = not is_link and entry.is_dir(follow_symlinks=False)
        if entry.name in IGNORED_NAMES or rules.ignores(parts, folder=is_folder):
            continue
        if is_folder:
            stack.append((parts, rules.entered(root, parts), iter(_entries(root, parts))))
        elif is_link or entry.is_file(follow_symlinks=False):
            yield ListedFile(parts, is_link)


def _entries(root: Root, parts: tuple[str, ...]) -> list[os.DirEntry[str]]:
    """Return a folder's entries by name; none if it cannot be read."""
    try:
        with os.scandir(root.real.joinpath(*parts)) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_link(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a link, or a junction of Windows, which `is_symlink` misses."""
    if entry.is_symlink():
        return True
    if _JUNCTION is None:
        return False
    tag = getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0)
    return tag == _JUNCTION
