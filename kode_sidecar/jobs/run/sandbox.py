"""The folder of a run: its zones, the check of every path into it, and guarded writes (B4).

A path is sandbox-relative and begins with its zone: `workspace/src/main.py`,
`deliverables/report.md`. The string is checked before any system call; then the place behind all
links must lie in a zone (W11)."""

import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from kode_sidecar.core.real_path import real_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.infrastructure.workspace.paths import Location, Root, locate, make_roots, screened

WORKSPACE = "workspace"
DELIVERABLES = "deliverables"
ARCHIVE = "archive"
LOGS = "logs"
ZONES = (WORKSPACE, DELIVERABLES, ARCHIVE, LOGS)
WRITABLE = (WORKSPACE, DELIVERABLES)
READONLY = (ARCHIVE,)
FORBIDDEN = (
    LOGS,
    "run.json",
    "config.yaml",
    "prompt.md",
    "effective-prompt.md",
    "events.jsonl",
    "transcript.md",
    "sandbox-manifest.json",
    "artifact-manifest.json",
    "lock",
)
"""The records of the run, which no tool may read or write."""

SANDBOX_MANIFEST = "sandbox-manifest.json"

SandboxPurpose = Literal["read", "write"]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)


class SandboxManifest(Struct, frozen=True, kw_only=True):
    """`sandbox-manifest.json`: the zones, relative to the root."""

    root: str
    created_at: str
    writable: tuple[str, ...] = WRITABLE
    readonly: tuple[str, ...] = READONLY
    forbidden: tuple[str, ...] = FORBIDDEN


def zone_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a sandbox-relative path into a writable zone, without system calls.

    Raises KodeError `PathOutsideRoots` for any other path.
    """
    anchor, parts = screened(path)
    if anchor:
        raise _refused("an absolute path is not allowed", WRITABLE)
    if not parts or parts[0] not in WRITABLE:
        raise _refused(f'"{parts[0] if parts else path}" is no folder to write to', WRITABLE)
    if len(parts) == 1:
        raise _refused(f'"{parts[0]}" is a folder of the sandbox, not a file in it', WRITABLE)
    return parts


def source_path(path: str, base: Path) -> Path:
    """Return the absolute path of a folder or file that the user's configuration names.

    A relative path starts at `base`, the folder of the configuration, and leads downwards.
    Raises KodeError `PathOutsideRoots` for a share, a device, an alternate stream, `..` and so on.
    """
    anchor, parts = screened(path)
    if anchor in ("//", "") or (anchor == "/" and os.name != "nt") or anchor.endswith(":/"):
        if anchor == "//":
            raise _refused("a network share is not allowed", ())
        return Path(anchor, *parts) if anchor else base.joinpath(*parts)
    raise _refused("a path relative to a drive is not allowed", ())


@dataclass(frozen=True)
class Sandbox:
    """A sandbox whose zones exist. `root` is absolute, with all links resolved."""

    root: Path
    writable: tuple[Root, ...]
    readable: tuple[Root, ...]

    def locate(self, path: str, purpose: SandboxPurpose) -> Location:
        """Return the checked place of a path, which need not exist.

        Raises KodeError `PathOutsideRoots`, naming the allowed zones.
        """
        roots = self.writable if purpose == "write" else self.readable
        names = tuple(root.name for root in roots)
        anchor, parts = screened(path)
        if not anchor and (not parts or parts[0] not in names):
            raise _refused(f'"{parts[0] if parts else path}" is not open to you here', names)
        return locate(path, roots, lambda _: False)

    def relative(self, path: Path) -> str:
        """Return a path inside the sandbox as its manifests spell it, with `/`."""
        return path.relative_to(self.root).as_posix()

    def zone(self, name: str) -> Path:
        """Return the folder of one of `ZONES`."""
        return self.root / name

    def write_zones(self, created_at: str) -> None:
        """Write `sandbox-manifest.json`. Raises KodeError `Storage`."""
        manifest = SandboxManifest(root=str(self.root), created_at=created_at)
        write_manifest(self.root / SANDBOX_MANIFEST, manifest)


def make_sandbox(root: Path) -> Sandbox:
    """Make the zones in an existing folder; refuse a zone that is a link or not a folder.

    Raises KodeError `PathOutsideRoots`, `Storage`.
    """
    real = real_path(root)
    for name in ZONES:
        folder = real / name
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise _refused(f'"{name}" in the sandbox is a link, not a folder', ())
        except FileExistsError:
            raise _refused(f'"{name}" in the sandbox is not a folder', ()) from None
        except OSError as error:
            raise not_saved(name, error) from None
    writable = make_roots([real / name for name in WRITABLE])
    return Sandbox(real, writable, (*writable, *make_roots([real / name for name in READONLY])))


def write_manifest(path: Path, manifest: Struct) -> None:
    """Write a manifest in the root of the sandbox. Raises KodeError `Storage`."""
    data = msgspec.json.format(encode_json(manifest), indent=2) + b"\n"
    replace_file(path, data, durable=False)


def _refused(what: str, zones: tuple[str, ...]) -> KodeError:
    places = " or ".join(f"{zone}/" for zone in zones)
    hint = f"; write a path that begins with {places}" if places else ""
    return KodeError("PathOutsideRoots", f"The path is refused because {what}{hint}.")


def write_file(location: Location, data: bytes) -> None:
    """Replace or create a file and its parent folders, without following links.

    Raises KodeError `NotEditable` (a folder, a device), `Denied` (a link, a second name, no
    permission) and `Storage`.
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
    """Open the folder name by name, so that no link is followed; create missing ones."""
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
