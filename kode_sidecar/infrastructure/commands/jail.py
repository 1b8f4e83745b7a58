"""A command without a network, with nothing to see of the user's but the open folders (Linux).

Bubblewrap makes it, as any user may: new namespaces, the system read-only, an empty home. All in it
dies with the first process.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.errors import KodeError

_PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/gnu")

_NAMES = ("/run/systemd/resolve",)  # what /etc/resolv.conf often leads to


@dataclass(frozen=True)
class Jail:
    """What a command has besides the system, the search path and the open folders."""

    readable: Sequence[Path] = ()
    network: bool = False


def bubblewrap() -> str:
    """Return the program's place. Raises KodeError `ToolFailed` (reason `no_sandbox`)."""
    program = next((name for name in _PROGRAMS if os.access(name, os.X_OK)), None)
    if sys.platform == "linux" and program is not None:
        return program
    raise KodeError(
        "ToolFailed",
        "The user's settings run commands in a sandbox only, and there is none here: it needs "
        "Linux and the program bubblewrap (bwrap). Go on without commands, and tell the user.",
        details={"reason": "no_sandbox"},
    )


def jailed(
    jail: Jail,
    argv: Sequence[str],
    folder: Path,
    roots: Sequence[Path],
    search_path: Sequence[Path],
) -> list[str]:
    """Return the command line that runs `argv` in there; only `roots` may be written.

    Raises KodeError `ToolFailed` where there is no bubblewrap: it then does not run at all.
    """
    words = [bubblewrap(), "--die-with-parent", "--new-session", "--unshare-all"]
    words += ["--share-net", "--ro-bind-try", *_NAMES, *_NAMES] if jail.network else []
    for place in (*_SYSTEM, *map(str, (*search_path, *jail.readable))):
        words += ["--ro-bind-try", place, place]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    home = os.path.expanduser("~")
    words += ["--dir", home] if os.path.isabs(home) else []
    for root in roots:
        words += ["--bind", str(root), str(root)]
    return [*words, "--chdir", str(folder), "--", *argv]
