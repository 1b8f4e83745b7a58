"""Runs a command without a network, and with no files of the user's but the open folders (Linux).

Bubblewrap makes the jail, without privileges: new namespaces, no capability, the system read-only,
an empty home. All processes in it die with the first one.
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
# Not `--unshare-all`: that continues without a user namespace if there is none.
_APART = (
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-user"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
)
_NAMES = ("/run/systemd/resolve",)  # where /etc/resolv.conf often links to


@dataclass(frozen=True)
class Jail:
    """What a command can see besides the system, the search path and the open folders.

    `hidden` are our own folders and files, which it cannot see even inside of those.
    """

    readable: Sequence[Path] = ()
    network: bool = False
    hidden: Sequence[Path] = ()


@dataclass(frozen=True)
class OpenFolders:
    """The user's folders that a command can write, and the exceptions in them."""

    writable: Sequence[Path]
    read_only: Sequence[Path] = ()
    hidden: Sequence[Path] = ()


def bubblewrap() -> str:
    """Return the path of bubblewrap. Raises KodeError `ToolFailed` (reason `no_sandbox`)."""
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
    """Return the command line by which `program`, bubblewrap, runs `argv` in the jail.

    Of the user's files only `folders.writable` can be written.
    """
    system = [Path(name) for name in (*_SYSTEM, *(_NAMES if jail.network else ()))]
    mounts = [("--ro-bind-try", place) for place in (*system, *search_path, *jail.readable)]
    mounts += [("--proc", Path("/proc")), ("--dev", Path("/dev")), ("--tmpfs", Path("/tmp"))]
    home = Path(os.path.expanduser("~"))
    mounts += [("--dir", home)] if home.is_absolute() else []
    mounts += [("--bind-try", place) for place in folders.writable]
    mounts += [("--ro-bind-try", place) for place in folders.read_only]
    for place in (*_private_files("/etc"), *folders.hidden, *jail.hidden):
        if os.path.exists(place):
            mounts.append(("--tmpfs" if os.path.isdir(place) else "--ro-bind", place))
    words = [str(program), *_APART, *(() if jail.network else ("--unshare-net",))]
    # A mount inside another one must come after it; of equal places the last mount counts.
    for option, place in sorted(mounts, key=lambda mount: len(mount[1].parts)):
        words += [option, *_source(option, place), str(place)]
    # Read-only, since writing files of root's in /proc/sys needs no capability.
    return [*words, "--remount-ro", "/proc", "--chdir", str(folder), "--", *argv]


def _source(option: str, place: Path) -> list[str]:
    """Return the source of a mount: the place itself, none, or a device that cannot be opened."""
    if option == "--ro-bind":
        return [os.devnull]
    return [str(place)] if "bind" in option else []


def _private_files(folder: str) -> Iterator[Path]:
    """Yield the entries in a folder that not everybody may read, but root or a group might."""
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
