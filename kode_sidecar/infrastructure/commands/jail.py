"""A command without a network, with nothing to see of the user's but the open folders (Linux).

Bubblewrap makes it, as any user may: new namespaces, no capability, the system read-only, an empty
home. All in it dies with the first process.
"""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.errors import KodeError

_PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/gnu")
# Not `--unshare-all`: that goes on without a user namespace where there is none.
_APART = (
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-user"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
)
_NAMES = ("/run/systemd/resolve",)  # what /etc/resolv.conf often leads to


@dataclass(frozen=True)
class Jail:
    """What a command has besides the system, the search path and the open folders.

    `hidden` are our own folders and files, which it has not even where they lie in one of those.
    """

    readable: Sequence[Path] = ()
    network: bool = False
    hidden: Sequence[Path] = ()


@dataclass(frozen=True)
class OpenFolders:
    """What a command has of the user's: `writable` folders, with what in them is not."""

    writable: Sequence[Path]
    read_only: Sequence[Path] = ()
    hidden: Sequence[Path] = ()


def bubblewrap() -> str:
    """Return the program's place. Raises KodeError `ToolFailed` (reason `no_sandbox`)."""
    program = next((name for name in _PROGRAMS if os.access(name, os.X_OK)), None)
    if sys.platform == "linux" and program is not None:
        return program
    missing = (
        "the program bubblewrap (bwrap) is not installed"
        if sys.platform == "linux"
        else "there is one on Linux only, none on Windows or macOS"
    )
    raise KodeError(
        "ToolFailed",
        f"The user's settings run commands in a sandbox only (`commands.sandbox`), and {missing}. "
        "Go on without commands, and say so to the user.",
        details={"reason": "no_sandbox"},
    )


def jailed(
    program: Path,
    jail: Jail,
    argv: Sequence[str],
    folder: Path,
    folders: OpenFolders,
    search_path: Sequence[Path],
) -> list[str]:
    """Return the command line by which `program`, bubblewrap, runs `argv` in there.

    Only `roots` may be written.
    """
    system = [Path(name) for name in (*_SYSTEM, *(_NAMES if jail.network else ()))]
    mounts = [("--ro-bind-try", place) for place in (*system, *search_path, *jail.readable)]
    mounts += [("--proc", Path("/proc")), ("--dev", Path("/dev")), ("--tmpfs", Path("/tmp"))]
    home = Path(os.path.expanduser("~"))
    mounts += [("--dir", home)] if home.is_absolute() else []
    mounts += [("--bind-try", place) for place in folders.writable]
    mounts += [("--ro-bind-try", place) for place in folders.read_only]
    for place in (*_private_files("/etc"), *folders.hidden, *jail.hidden):
        if place.exists():
            mounts.append(("--tmpfs" if place.is_dir() else "--ro-bind", place))
    words = [str(program), *_APART, *(() if jail.network else ("--unshare-net",))]
    # What lies in another one comes after it; of equal ones the last counts.
    for option, place in sorted(mounts, key=lambda mount: len(mount[1].parts)):
        words += [option, *_source(option, place), str(place)]
    # What root owns in /proc/sys needs no capability to be written.
    return [*words, "--remount-ro", "/proc", "--chdir", str(folder), "--", *argv]


def _source(option: str, place: Path) -> list[str]:
    """Return what is mounted there: itself, nothing, or something that cannot be opened."""
    if option == "--ro-bind":
        return [os.devnull]
    return [str(place)] if "bind" in option else []


def _private_files(folder: str) -> Iterator[Path]:
    """What of the system's settings not everybody may read: root, or a member of a group, could."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:  # it has just been removed
            continue
        wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
        if mode & wanted != wanted:
            yield Path(entry.path)
        elif stat.S_ISDIR(mode):
            yield from _private_files(entry.path)
