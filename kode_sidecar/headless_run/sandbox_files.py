"""Writing one file in the sandbox, sure that it lands where the guard looked (W11)."""

import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.records.disk import not_saved, replace_file
from kode_sidecar.workspace.paths import Location

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)


def write_file(location: Location, data: bytes) -> None:
    """Replace a file whole, or make it, with the folders above it. No link is followed.

    Raises KodeError `NotEditable` (a folder, a device), `Denied` (a link, a second name, no
    right) and `Storage`.
    """
    below = location.below
    if not below:
        raise KodeError("NotEditable", f"{location.display} is a folder; name a file in it.")
    try:
        if os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd:
            _write_beneath(location, below, data)
        else:
            _check_target(_status(location.real), location.display)
            location.real.parent.mkdir(parents=True, exist_ok=True)
            replace_file(location.real, data, durable=False)
    except (FileExistsError, NotADirectoryError):
        text = f"{location.display} has a file above it where a folder must be."
        raise KodeError("NotEditable", text) from None
    except PermissionError:
        raise KodeError("Denied", f"{location.display} may not be written.") from None
    except OSError as error:
        raise not_saved(location.display, error) from None


def _write_beneath(location: Location, below: Sequence[str], data: bytes) -> None:
    with _folder_of(location.root.real, below[:-1], location.display) as folder:
        _check_target(_status(below[-1], folder), location.display)
        temporary = f".kode-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, below[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


@contextmanager
def _folder_of(root: Path, names: Sequence[str], display: str) -> Generator[int]:
    """A descriptor of the folder, made where it is missing, walked name by name."""
    folder = os.open(root, _FOLDER)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
            if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
                raise KodeError("Denied", f"{display} was replaced by a link while it was written.")
            deeper = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


def _status(path: str | Path, folder: int | None = None) -> os.stat_result | None:
    try:
        return os.lstat(path, dir_fd=folder) if folder is not None else os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_target(status: os.stat_result | None, name: str) -> None:
    if status is None:
        return
    if stat.S_ISLNK(status.st_mode) or (status.st_nlink > 1 and stat.S_ISREG(status.st_mode)):
        raise KodeError("Denied", f"{name} is a link; only plain files are written.")
    if not stat.S_ISREG(status.st_mode):
        raise KodeError("NotEditable", f"{name} is not a regular file.")
