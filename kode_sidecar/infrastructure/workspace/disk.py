"""Reads one file from disk, and ensures that it is the file the guard checked (W11)."""

import os
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.second_names import is_installed
from kode_sidecar.infrastructure.workspace.sensitive import is_refused, why_sensitive

MAX_FILE_BYTES = 10_000_000
MAX_EDIT_LINES = 200_000
MAX_EDIT_LINE_CHARS = 1_000_000
_CLOCK_STEP_NS = 2_000_000_000  # FAT's, the coarsest of the file systems in use

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FILE = (
    os.O_RDONLY
    | _NO_LINK
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


@dataclass(frozen=True)
class FileStatus:
    """Distinguishes two states of a file without reading it. `mtime_ns` since 1970, UTC.

    `young`: written so recently that another write might not change `mtime_ns`.
    """

    mtime_ns: int
    size: int
    inode: int
    young: bool

    @classmethod
    def of(cls, status: os.stat_result) -> "FileStatus":
        """Make a status from the system's."""
        young = time.time_ns() - status.st_mtime_ns < _CLOCK_STEP_NS
        return cls(status.st_mtime_ns, status.st_size, status.st_ino, young)

    def still_holds(self, path: Path) -> bool:
        """Return whether a file has certainly not changed. Raises OSError if it is gone."""
        now = os.stat(path)
        same = (self.mtime_ns, self.size) == (now.st_mtime_ns, now.st_size)
        return same and self.inode == now.st_ino and not self.young


def read_regular(
    location: Location, limit: int = MAX_FILE_BYTES, *, second_names: bool = False
) -> bytes:
    """Return only the bytes of `read_with_status`; raises as that does."""
    return read_with_status(location, limit, second_names=second_names)[0]


def read_with_status(
    location: Location, limit: int = MAX_FILE_BYTES, *, second_names: bool = False
) -> tuple[bytes, FileStatus]:
    """Return all bytes of a regular file; follows no link on the way.

    The file has no other hard links, or `second_names` are allowed where they harm nobody: all of
    them in the root, none for credentials, or the file is an installed dependency.

    Raises KodeError `NotFound`, `NotEditable` (a folder, a device), `Denied` (no right to read,
    a hard link, swapped while opening) and `TooLarge`.
    """
    name = location.display
    with _opened(location, second_names=second_names) as (file, opened):
        data = b"" if opened.st_size > limit else file.read(limit + 1)
        if opened.st_size > limit or len(data) > limit:
            raise KodeError(
                "TooLarge",
                f"{name} has {max(opened.st_size, len(data)):,} bytes; the limit is {limit:,}. "
                "Use search_code to find the part that matters.",
            )
        return data, FileStatus.of(opened)


def read_beginning(
    location: Location, count: int, *, second_names: bool = False
) -> tuple[bytes, FileStatus]:
    """Return the first `count` bytes; raises as `read_with_status`, except `TooLarge`."""
    with _opened(location, second_names=second_names) as (file, opened):
        return file.read(count), FileStatus.of(opened)


def check_second_names(location: Location, *, editing: bool) -> None:
    """Raise KodeError `Denied` for a file with another name that is, or may be, none of ours."""
    try:
        status = os.lstat(location.real)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        _check_names(status, location, editing=editing)


def _check_names(status: os.stat_result, location: Location, *, editing: bool = False) -> None:
    installed = is_installed(location.below)
    if installed and not editing:
        return
    name, names = location.display, location.root.second_names.of(status)
    if any(map(is_secret_path, names)):
        raise KodeError(
            "Denied", f"{name} is a hard link: by another of its names it holds credentials."
        )
    guarded = [one for one in names if is_refused(one) or why_sensitive(one)]
    if editing and guarded and not why_sensitive(location.below):
        raise KodeError(
            "Denied",
            f"{name} is a hard link to {'/'.join(guarded[0])}, which is edited by that name only.",
        )
    if len(names) < status.st_nlink:
        whose = (
            "in a store that other projects use, too. Patch it by the means of the package manager"
            if installed
            else "outside of the open folder. If it belongs to the project, ask the user to put a "
            "copy in its place"
        )
        raise KodeError(
            "Denied",
            f"{name} is a hard link: the same file has another name, perhaps {whose}.",
        )


@contextmanager
def _opened(
    location: Location, *, second_names: bool
) -> Generator[tuple[BinaryIO, os.stat_result], None, None]:
    name = location.display
    try:
        before = os.lstat(location.real)
        _check_kind(before, location, second_names=second_names)
        descriptor = _open_beneath(location.root.real, location.below)
    except (FileNotFoundError, NotADirectoryError):
        raise KodeError("NotFound", f"There is no file {name}.") from None
    except OSError as error:
        raise KodeError("Denied", f"{name} cannot be opened: {error.strerror}.") from None
    try:
        opened = os.fstat(descriptor)
        if not os.path.samestat(before, opened):
            raise KodeError("Denied", f"{name} was replaced while it was opened. Try again.")
        _check_kind(opened, location, second_names=second_names)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file, opened
    except OSError as error:
        raise KodeError("Denied", f"{name} cannot be read: {error.strerror}.") from None
    finally:
        os.close(descriptor)


def _check_kind(status: os.stat_result, location: Location, *, second_names: bool) -> None:
    name = location.display
    if stat.S_ISDIR(status.st_mode):
        raise KodeError("NotEditable", f"{name} is a folder. Use list_files to see what is in it.")
    if not stat.S_ISREG(status.st_mode):
        raise KodeError("NotEditable", f"{name} is not a regular file.")
    if status.st_nlink > 1 and not second_names:
        raise KodeError("Denied", f"{name} is a hard link: the same file has another name.")
    if status.st_nlink > 1:
        _check_names(status, location)


def _open_beneath(root: Path, parts: Sequence[str]) -> int:
    """Open a file name by name from the root, so that no folder on the way can be a link.

    Windows has no such call: there the caller's comparison must suffice.
    """
    if os.open not in os.supports_dir_fd:
        return os.open(root.joinpath(*parts), _FILE)
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def check_edit_size(lines: Sequence[str], name: str) -> None:
    """Raise KodeError `TooLarge` for a text that is only read."""
    sizes = [len(line) for line in lines]
    too_large = (
        len(sizes) > MAX_EDIT_LINES
        or max(sizes, default=0) > MAX_EDIT_LINE_CHARS
        or sum(sizes) > MAX_FILE_BYTES
    )
    if too_large:
        raise KodeError(
            "TooLarge",
            f"{name} is too large to edit: the limits are {MAX_FILE_BYTES:,} bytes, "
            f"{MAX_EDIT_LINES:,} lines and {MAX_EDIT_LINE_CHARS:,} characters in a line.",
        )
