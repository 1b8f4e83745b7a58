"""Counts the files that a search does not look at, for an answer that would mislead without them.

"No matches" is an answer about files that were searched; a model takes it for one about all.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kode_sidecar.core.real_path import folder_entries, kind_of
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.decoding import is_binary, is_utf8
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES, read_beginning
from kode_sidecar.infrastructure.workspace.globs import (
    IGNORED_NAMES,
    IgnoreRules,
    is_other_project,
    rules_for,
)
from kode_sidecar.infrastructure.workspace.paths import Location, Root

LIMIT_SECONDS = 1.0
MAX_FILES = 50_000
_BEGINNING = 65_536
_RECORDS_OF_VCS = frozenset((".git", ".hg", ".svn", ".jj"))
_WORDS = {
    "ignored": "ignored",
    "large": f"over {MAX_FILE_BYTES // 1_000_000} MB",
    "binary": "binary",
    "encoding": "not UTF-8 and at best read as {encoding}",
    "link": "behind links",
    "unreadable": "unreadable",
}


@dataclass
class Unsearched:
    """How many files were not searched, by reason; `projects` are checkouts of their own."""

    counts: Counter[str] = field(default_factory=Counter[str])
    projects: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    complete: bool = True

    def words(self, encoding: str) -> str:
        """Return the counts in one phrase, or "". Other encodings are read as `encoding`."""
        found = [
            f"{count:,} {words.format(encoding=encoding)}"
            for reason, words in _WORDS.items()
            if (count := self.counts[reason])
        ]
        return ("" if self.complete else "at least ") + ", ".join(found) if found else ""


@dataclass(frozen=True)
class _Entry:
    parts: tuple[str, ...]
    ignored: bool
    status: os.stat_result | None


def count_left_out(target: Location, matches: Callable[[str], bool], *, decode: bool) -> Unsearched:
    """Count files at or below a place, by their paths relative to it.

    With `decode` also those whose text cannot be compared with a query that is not ASCII. It
    ends after a second. Blocking: run it in a thread.
    """
    found = Unsearched()
    end = time.monotonic() + LIMIT_SECONDS
    below = len(target.below)
    for number, entry in enumerate(_entries(target, found)):
        if number >= MAX_FILES or time.monotonic() > end:
            found.complete = False
            break
        named = "/".join(entry.parts[below:])
        if is_secret_path(entry.parts) or (named and not matches(named)):
            continue
        reason = "ignored" if entry.ignored else _reason(target.root, entry, decode=decode)
        if reason:
            found.counts[reason] += 1
    return found


def _entries(target: Location, found: Unsearched) -> Iterator[_Entry]:
    """Yield all files, ignored ones too; note the other projects."""
    root, base = target.root, target.below
    if not os.path.isdir(target.real):
        yield _Entry(base, False, _status(target.real))
        return
    stack: list[tuple[tuple[str, ...], IgnoreRules | None]] = [(base, rules_for(root, base))]
    while stack:
        folder, rules = stack.pop()
        for entry in folder_entries(root.real.joinpath(*folder)):
            parts = (*folder, entry.name)
            is_folder = kind_of(entry) == "folder"
            ignored = rules is None or entry.name in IGNORED_NAMES
            ignored = ignored or (rules is not None and rules.ignores(parts, folder=is_folder))
            if not is_folder:
                yield _Entry(parts, ignored, _status(entry))
            elif entry.name in _RECORDS_OF_VCS:
                continue
            elif ignored:
                stack.append((parts, None))
            elif is_other_project(root, parts):
                found.projects.append(parts)
            elif rules is not None:
                stack.append((parts, rules.entered(root, parts)))


def _status(entry: "os.PathLike[str]") -> os.stat_result | None:
    try:
        return os.stat(entry, follow_symlinks=False)
    except OSError:
        return None


def _reason(root: Root, entry: _Entry, *, decode: bool) -> str:
    """Return why a file that is not ignored was not searched, or "" if it was."""
    status = entry.status
    if status is None:
        return "unreadable"
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if not stat.S_ISREG(status.st_mode):
        return ""
    if status.st_size > MAX_FILE_BYTES:
        return "large"
    place = Location(
        root,
        root.path.joinpath(*entry.parts),
        root.real.joinpath(*entry.parts),
        entry.parts,
        "/".join(entry.parts),
    )
    try:
        data, _ = read_beginning(place, _BEGINNING, second_names=True)
    except KodeError:
        return "unreadable"
    if is_binary(data):
        return "binary"
    return "encoding" if decode and not _is_unicode(data) else ""


def _is_unicode(data: bytes) -> bool:
    """Return whether a beginning is UTF-8, perhaps with a part of a letter, or has a BOM."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))
    cuts = range(4 if len(data) == _BEGINNING else 1)
    return wide or any(is_utf8(data[: len(data) - cut]) for cut in cuts)
