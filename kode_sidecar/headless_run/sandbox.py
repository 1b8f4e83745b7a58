"""The folder of a run: its zones, and the guard over every path that names something in it (B4).

A path is sandbox-relative and begins with its zone: `workspace/src/main.py`,
`deliverables/report.md`. The string is screened before any system call, then the place behind all
links must lie in a zone (W11).
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kode_sidecar.errors import KodeError
from kode_sidecar.records.disk import not_saved
from kode_sidecar.workspace.paths import Location, Root, locate, make_roots, screened

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
"""What no tool of a run reads or writes: its own records."""

SandboxPurpose = Literal["read", "write"]


def zone_parts(path: str) -> tuple[str, ...]:
    """The names of a sandbox-relative path into a writable zone; nothing is asked of the system.

    Raises KodeError `PathOutsideRoots` for whatever is not plainly such a path.
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
    """A folder or file outside of the sandbox that the user's configuration names, absolute.

    Relative to `base`, the folder of the configuration, from where it leads downwards.
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
    """A sandbox whose zones exist. `root` is absolute and behind all links."""

    root: Path
    writable: tuple[Root, ...]
    readable: tuple[Root, ...]

    def locate(self, path: str, purpose: SandboxPurpose) -> Location:
        """The guarded place of a path; there may be nothing yet.

        Raises KodeError `PathOutsideRoots`, naming the zones there are.
        """
        roots = self.writable if purpose == "write" else self.readable
        names = tuple(root.name for root in roots)
        anchor, parts = screened(path)
        if not anchor and (not parts or parts[0] not in names):
            raise _refused(f'"{parts[0] if parts else path}" is not open to you here', names)
        return locate(path, roots, lambda _: False)

    def relative(self, path: Path) -> str:
        """A path inside the sandbox as its manifests spell it, with `/`."""
        return path.relative_to(self.root).as_posix()

    def zone(self, name: str) -> Path:
        """The folder of one of `ZONES`."""
        return self.root / name


def make_sandbox(root: Path) -> Sandbox:
    """Make the zones in an existing folder. A zone that is a link or no folder is refused.

    Raises KodeError `PathOutsideRoots`, `Storage`.
    """
    real = Path(os.path.realpath(root))
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


def _refused(what: str, zones: tuple[str, ...]) -> KodeError:
    places = " or ".join(f"{zone}/" for zone in zones)
    hint = f"; write a path that begins with {places}" if places else ""
    return KodeError("PathOutsideRoots", f"The path is refused because {what}{hint}.")
