"""Which build this is: what `--version` and `doctor` say first."""

import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kode_sidecar import __version__
from kode_sidecar.servers.boot.unpacked import MARKER, unpacked_folder

Kind = Literal["one file", "folder", "package", "source"]

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Build:
    """`commit` is that of the sources, shortened, `-dirty` behind it if they were changed; ""
    where nobody knows. `kind` is `one file` or `folder` for a frozen program.
    """

    version: str
    commit: str
    kind: Kind
    python: str
    platform: str

    def __str__(self) -> str:
        commit = f"commit {self.commit}" if self.commit else "commit unknown"
        return f"{self.version} ({commit}, {self.kind}, Python {self.python}, {self.platform})"


def build_info() -> Build:
    """Return the build of the running program."""
    package = Path(__file__).resolve().parents[2]
    return Build(
        version=__version__,
        commit=_built_commit(package) or _checked_out(package.parent),
        kind=_kind(package),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
    )


def _kind(package: Path) -> Kind:
    if hasattr(sys, "frozen"):
        return "folder" if unpacked_folder() is None else "one file"
    return "source" if (package.parent / "pyproject.toml").is_file() else "package"


def _built_commit(package: Path) -> str:
    """What the build wrote beside the package."""
    try:
        built = json.loads((package / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(built.get("commit") or "")


def _checked_out(checkout: Path) -> str:
    """The commit of a git checkout, read without git (gitrepository-layout)."""
    git = checkout / ".git"
    head = _line(git / "HEAD")
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        head = _line(git / name) or _packed(git, name)
    return head[:_SHOWN_DIGITS] if _COMMIT.fullmatch(head) else ""


def _packed(git: Path, name: str) -> str:
    rows = _text(git / "packed-refs").splitlines()
    return next((row.partition(" ")[0] for row in rows if row.endswith(f" {name}")), "")


def _line(path: Path) -> str:
    return _text(path).strip()


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
