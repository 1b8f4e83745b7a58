"""Lists a folder's files: sorted, bounded, without ignored files and without following links."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kode_sidecar.core.real_path import folder_entries, kind_of
from kode_sidecar.infrastructure.workspace.globs import (
    IGNORED_NAMES,
    is_other_project,
    rules_for,
)
from kode_sidecar.infrastructure.workspace.paths import Location, Root

MAX_ENTRIES = 200_000
TIME_LIMIT_SECONDS = 20.0


@dataclass(frozen=True)
class ListedFile:
    """A file by its names below the root; `is_link` for links, which are not followed."""

    parts: tuple[str, ...]
    is_link: bool = False


@dataclass(frozen=True)
class Listing:
    """Files in order of names, folder by folder. `cut` says why the list is incomplete, or "".

    `projects` are the folders left out as projects of their own.
    """

    files: tuple[ListedFile, ...]
    cut: str = ""
    projects: tuple[tuple[str, ...], ...] = ()


def list_tree(
    start: Location,
    matches: Callable[[str], bool],
    limit: int,
    stopped: Callable[[], bool],
    *,
    one_project: bool = False,
) -> Listing:
    """Return at most `limit` files below a folder whose path relative to it `matches`.

    With `one_project`, checkouts inside the folder are left out. Blocking: run it in a thread.
    Ends early if `stopped()`.
    """
    base = start.below
    files: list[ListedFile] = []
    projects: list[tuple[str, ...]] | None = [] if one_project else None
    cut = ""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    for count, file in enumerate(_walk(start.root, base, stopped, projects)):
        if count >= MAX_ENTRIES:
            cut = f"after looking at {MAX_ENTRIES:,} files"
        elif time.monotonic() > end:
            cut = f"after {TIME_LIMIT_SECONDS:.0f} s"
        elif matches("/".join(file.parts[len(base) :])):
            if len(files) < limit:
                files.append(file)
            else:
                cut = f"after {limit:,} files"
        if cut:
            break
    return Listing(tuple(files), cut, tuple(projects or ()))


def _walk(
    root: Root,
    base: tuple[str, ...],
    stopped: Callable[[], bool],
    projects: list[tuple[str, ...]] | None,
) -> Iterator[ListedFile]:
    """Yield the files; other projects are put into `projects` instead, unless that is None."""
    rules = rules_for(root, base)
    stack = [(base, rules, iter(_entries(root, base)))]
    while stack and not stopped():
        folder, rules, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
            continue
        parts = (*folder, entry.name)
        kind = kind_of(entry)
        is_folder = kind == "folder"
        if entry.name in IGNORED_NAMES or rules.ignores(parts, folder=is_folder):
            continue
        if is_folder and projects is not None and is_other_project(root, parts):
            projects.append(parts)
        elif is_folder:
            stack.append((parts, rules.entered(root, parts), iter(_entries(root, parts))))
        elif kind:
            yield ListedFile(parts, kind == "link")


def _entries(root: Root, parts: tuple[str, ...]) -> list[os.DirEntry[str]]:
    return sorted(folder_entries(root.real.joinpath(*parts)), key=lambda entry: entry.name)
