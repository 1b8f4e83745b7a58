"""Describes this build, as `--version` and `doctor` show it first.

`--version` takes at most twice as long as a bare interpreter: few imports, some of them late.
"""

import os
import sys

from kode_sidecar import __version__
from kode_sidecar.servers.boot.unpacked import MARKER, unpacked_folder

_SHOWN_DIGITS = 12


class Build:
    """One build. `commit` is the short commit of the sources, ending in `-dirty` if they were
    changed, "" if unknown. `kind` is `one file` or `folder` for a frozen program, else `package`
    or `source`.
    """

    def __init__(self, commit: str, kind: str) -> None:
        self.commit = commit
        self.kind = kind

    def __str__(self) -> str:
        commit = f"commit {self.commit}" if self.commit else "commit unknown"
        python = sys.version.split()[0]
        return f"{__version__} ({commit}, {self.kind}, Python {python}, {_system()})"


def build_info() -> Build:
    """Return the build of the running program."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    checkout = os.path.dirname(package)
    return Build(_built_commit(package) or _checked_out(checkout), _kind(checkout))


def _system() -> str:
    """Return the system and the machine, such as `Linux x86_64`."""
    if sys.platform == "win32":
        import platform  # noqa: PLC0415

        return f"{platform.system()} {platform.machine()}"
    host = os.uname()
    return f"{host.sysname} {host.machine}"


def _kind(checkout: str) -> str:
    if hasattr(sys, "frozen"):
        return "folder" if unpacked_folder() is None else "one file"
    return "source" if os.path.isfile(os.path.join(checkout, "pyproject.toml")) else "package"


def _built_commit(package: str) -> str:
    """Return the commit that the build wrote into the package; "" if it wrote none."""
    built = _text(os.path.join(package, MARKER))
    if not built:
        return ""
    import json  # noqa: PLC0415

    try:
        return str(json.loads(built).get("commit") or "")
    except ValueError:
        return ""


def _checked_out(checkout: str) -> str:
    """Return the commit of a git checkout, read without git (gitrepository-layout)."""
    git = os.path.join(checkout, ".git")
    head = _text(os.path.join(git, "HEAD")).strip()
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        head = _text(os.path.join(git, name)).strip() or _packed(git, name)
    is_commit = len(head) in range(40, 65) and set(head) <= set("0123456789abcdef")
    return head[:_SHOWN_DIGITS] if is_commit else ""


def _packed(git: str, name: str) -> str:
    rows = _text(os.path.join(git, "packed-refs")).splitlines()
    return next((row.partition(" ")[0] for row in rows if row.endswith(f" {name}")), "")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""
