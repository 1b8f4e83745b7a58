"""Finds what a Git repository's own settings and hooks run, and which files Git knows. Blocking.

Somebody else may have written a `.git` folder: it came with an archive, or a program made it. Git
obeys it, also in `git status`. So what stands in it is read here, without running Git.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 1_000_000
_MOST_INDEX_BYTES = 100_000_000
_RUNS = re.compile(
    r"""(
    alias\..* | pager\..* | include\.path | includeif\..*\.path | core\.(sshcommand|editor|askpass
    |gitproxy|alternaterefscommand|attributesfile|worktree) | sequence\.editor | diff\.external
    | (diff|filter|merge|difftool|mergetool|browser|man|trailer|tar|guitool|credential)\..*\.
      (command|textconv|clean|smudge|process|driver|cmd|path|helper)
    | credential\.helper | gpg\.(.*\.)?program | gpg\.ssh\.defaultkeycommand
    | interactive\.difffilter
    | remote\..*\.(uploadpack|receivepack|vcs|proxy) | url\..*\.insteadof | url\..*\.pushinsteadof
    | submodule\..*\.update | uploadpack\.packobjectshook | protocol\..*\.allow | protocol\.allow
    | sendemail\..* | web\.browser | help\.browser | init\.templatedir | fetch\.recursesubmodules
    | extensions\.partialclone | remote\..*\.promisor | http\.proxy | core\.hookspath
    )""",
    re.VERBOSE,
)
_HARMLESS = re.compile(
    r"git-lfs [a-z-]+( --)?( --skip)?( %f)?|submodule\.[^.]*\.update=(none|checkout)"
)
_SECTION = re.compile(r'\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_NAMED = re.compile(r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")


@dataclass(frozen=True)
class Repository:
    """A repository: the folder of its files, its own folder, and the one that worktrees share."""

    top: Path
    own: Path
    common: Path


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that Git would use in `folder`, or None."""
    for top in (folder, *folder.parents):
        own = top / ".git"
        try:
            status = os.stat(own)
            if stat.S_ISREG(status.st_mode):
                text = _read(own, _MOST_BYTES).decode("utf-8", "replace")
                own = top / text.removeprefix("gitdir:").strip()
            elif not stat.S_ISDIR(status.st_mode):
                continue
        except (OSError, ValueError):
            continue
        shared = _text(own / "commondir").strip()
        return Repository(top, own, own / shared if shared else own)
    return None


def programs_named(repository: Repository) -> Iterator[str]:
    """Yield the settings of a repository by which Git runs a program or reads elsewhere."""
    for file in (repository.common / "config", repository.own / "config.worktree"):
        try:
            text = _read(file, _MOST_BYTES + 1).decode("utf-8", "replace")
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            yield f"{file.name}, which cannot be read"
            continue
        if len(text) > _MOST_BYTES:
            yield f"{file.name}, which is too large to be looked through"
        for name, value in _settings(text):
            known = _HARMLESS.fullmatch(value) or _HARMLESS.fullmatch(f"{name}={value}")
            if _RUNS.fullmatch(name) and not known:
                yield name


def active_hooks(repository: Repository) -> list[str]:
    """Return the names of the hooks that Git would run, sorted."""
    try:
        names = os.listdir(repository.common / "hooks")
    except FileNotFoundError:
        return []
    except OSError:
        return ["which cannot be read"]
    return sorted(name for name in names if not name.endswith(".sample"))


def tracked_names(repository: Repository) -> Iterator[str]:
    """Yield the paths in the index, relative to `top`. A damaged index ends early."""
    try:
        data = _read(repository.own / "index", _MOST_INDEX_BYTES)
    except (OSError, ValueError):
        return
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    at, name = 12, b""
    for _ in range(count):
        start = at + 62
        if len(data) < start:
            return
        if data[at + 60] & 0x40:  # an entry with two more bytes of flags
            start += 2
        if version == 4:  # a name begins like the one before
            dropped, start = _varint(data, start)
            name = name[: len(name) - dropped]
        else:
            name = b""
        end = data.find(b"\0", start)
        if end < 0:
            return
        name += data[start:end]
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        yield os.fsdecode(name)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80 and at + 1 < len(data):
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield all settings as `section.subsection.name`, sections and names in lower case."""
    section = ""
    for line in text.replace("\\\n", "").split("\n"):
        rest = line.strip()
        found = _SECTION.match(rest)
        if found:
            kind, sub = found[1].lower(), found[2]
            section = kind if sub is None else f"{kind}.{sub.lower()}"
            rest = rest[found.end() :].strip()
        named = _NAMED.match(rest)
        if named and section:
            value = (named[2] or "true").strip().strip('"')
            yield f"{section}.{named[1].lower()}", value


def _text(file: Path) -> str:
    try:
        return _read(file, 10_000).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _read(file: Path, most: int) -> bytes:
    """Read a regular file: a pipe that nobody writes to would never end."""
    descriptor = os.open(
        file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(file)
        return stream.read(most)
