"""Finds the files of open folders that run code later, before and after a sandboxed command.

They are those of `workspace.sensitive`, at any depth. Before the command, so that the sandbox can
mount them read-only; after it, because a mount cannot protect a file that did not exist yet.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.core.real_path import folder_entries, kind_of, real_path
from kode_sidecar.infrastructure.workspace.globs import IGNORED_NAMES
from kode_sidecar.infrastructure.workspace.sensitive import (
    EDITOR_FOLDERS,
    STEERING,
    fold_name,
    is_sensitive_name,
)

MAX_ENTRIES = 200_000
MAX_READ_ONLY = 500  # the time that the mounts take grows with their square
_MAX_CONFIG_BYTES = 64_000
_PASSED_OVER = (IGNORED_NAMES | {"site-packages"}) - STEERING.keys()
_HELD = ("hooks", "info")
_RUN_BY_REBASE = "rebase-merge/git-rebase-todo"
_REPOSITORIES = ("modules", "worktrees")


@dataclass
class StartupFiles:
    """The files found, nearest to the root first; `cut` if the folders have too many entries.

    `read_only` files exist and must not change. `in_place` are folders whose contents may change,
    but that must not be moved. `missing` are folders that need a placeholder. `sockets` lead out.
    """

    read_only: list[Path] = field(default_factory=list[Path])
    in_place: list[Path] = field(default_factory=list[Path])
    missing: list[Path] = field(default_factory=list[Path])
    sockets: list[Path] = field(default_factory=list[Path])
    states: dict[Path, tuple[int, ...]] = field(default_factory=dict[Path, tuple[int, ...]])
    cut: bool = False


def find_startup_files(roots: Sequence[Path]) -> StartupFiles:
    """Search `roots`, without following links out of them. Blocking."""
    search = _Search(roots)
    for root in roots:
        search.found.missing += [root / name for name in (".git", *EDITOR_FOLDERS)]
    search.run()
    del search.found.read_only[MAX_READ_ONLY:]
    return search.found


def changed_files(
    before: Mapping[Path, tuple[int, ...]], after: Mapping[Path, tuple[int, ...]]
) -> list[Path]:
    """Return the files that are new, gone, or changed."""
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )


class _Search:
    """One walk over the roots, level by level; the queue says if all in a folder counts."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.found = StartupFiles()
        self._roots = roots
        self._queue = deque((root, False) for root in roots)
        self._entries = 0

    def run(self) -> None:
        while self._queue:
            folder, within = self._queue.popleft()
            entries = folder_entries(folder, limit=MAX_ENTRIES + 1)
            self._entries += len(entries)
            if self._entries > MAX_ENTRIES:
                self.found.cut = True
                return
            self.found.sockets += [Path(one.path) for one in entries if _is_socket(one)]
            kind = "" if within else _version_control(folder, {entry.name for entry in entries})
            if kind:
                self._take_repository(folder, kind)
                continue
            for entry in entries:
                self._take(entry, within)

    def _take(self, entry: os.DirEntry[str], within: bool) -> None:
        path, name = Path(entry.path), fold_name(entry.name)
        folder = kind_of(entry) == "folder"
        repository = folder and name in STEERING and not _is_empty_repository(path, name)
        counts = within or (not repository and (name in STEERING or is_sensitive_name(entry.name)))
        if counts:
            self._note(path)
        if counts and not within:
            self._protect(path)
        if folder and (counts or name not in _PASSED_OVER):
            self._queue.append((path, counts))

    def _take_repository(self, folder: Path, kind: str) -> None:
        """Protect only a repository's settings and hooks: the command must be able to commit."""
        self.found.in_place.append(folder)
        for name in STEERING[kind]:
            path = folder / name
            if os.path.lexists(path):
                self._note(path)
                self._protect(path)
                if os.path.isdir(path) and not os.path.islink(path):
                    self._queue.append((path, True))
            if name in _HELD:
                self.found.missing.append(path)
        self._note(folder / _RUN_BY_REBASE)
        for name in _REPOSITORIES:
            path = folder / name
            if os.path.isdir(path) and not os.path.islink(path):
                self.found.in_place.append(path)
                self._queue.append((path, False))
        self._lead_elsewhere(folder)

    def _protect(self, path: Path) -> None:
        """Have a path mounted read-only; of a link, the target, as a link cannot be mounted."""
        real = real_path(path)
        if os.path.exists(real) and self._is_below(real):
            self.found.read_only.append(real)

    def _is_below(self, path: Path) -> bool:
        return any(path != root and path.is_relative_to(root) for root in self._roots)

    def _note(self, path: Path) -> None:
        try:
            status = os.lstat(path)
        except OSError:
            return
        if not stat.S_ISDIR(status.st_mode):
            self.found.states[path] = (
                *(status.st_ino, status.st_mode, status.st_size),
                *(status.st_mtime_ns, status.st_ctime_ns),
            )

    def _lead_elsewhere(self, folder: Path) -> None:
        """Protect the hooks and settings elsewhere that a repository's own settings name."""
        for path in _named_in(folder / "config", folder.parent):
            if os.path.exists(path) and self._is_below(path) and not folder.is_relative_to(path):
                self._note(path)
                self.found.read_only.append(path)
                if os.path.isdir(path):
                    self._queue.append((path, True))


def _named_in(config: Path, worktree: Path) -> Iterable[Path]:
    try:
        descriptor = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            # Reading a pipe that nobody writes to would never end.
            plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            text = file.read(_MAX_CONFIG_BYTES).decode("utf-8", "replace") if plain else ""
    except OSError:
        return
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip().casefold() in ("hookspath", "path", "attributesfile"):
            for base in (worktree, config.parent):
                yield real_path(base / value.strip().strip('"'))


def _version_control(folder: Path, names: set[str]) -> str:
    """Return the kind of a version control folder (also a bare one, or a module's), or ""."""
    name = fold_name(folder.name)
    if name in STEERING and not _is_empty_repository(folder, name):
        return name
    return ".git" if "HEAD" in names and not names.isdisjoint(("objects", "commondir")) else ""


def _is_empty_repository(folder: Path, name: str) -> bool:
    """Return whether a `.git` folder is no repository yet; a command must not make it one."""
    return name == ".git" and not os.path.lexists(folder / "HEAD")


def _is_socket(entry: os.DirEntry[str]) -> bool:
    try:
        return not kind_of(entry) and stat.S_ISSOCK(entry.stat().st_mode)
    except OSError:  # it has just been removed
        return False
