"""Neovim as Debian's suites have it, unpacked into the user's cache without being installed.

`python3 -m tests.editors.neovim_builds` gets them all and tells where they are. The newest suite
moves on: delete the folder to get today's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.editors.debian_packages import PackagesMissing, unpack

SUITES = ("trixie", "sid")
"""Neovim 0.10, the oldest that the plugin serves, and the newest one that Debian has."""


@dataclass(frozen=True)
class NeovimBuild:
    """Neovim in a folder that is no root of a system: it runs by the folder's own loader."""

    suite: str
    root: Path

    @property
    def command(self) -> list[str]:
        """To which options are added."""
        (loader,) = (self.root / "usr" / "lib64").glob("ld-linux*")
        libraries = next((self.root / "usr" / "lib").glob("*-linux-gnu"))
        return [str(loader), "--library-path", str(libraries), str(self.root / "usr/bin/nvim")]

    @property
    def environment(self) -> dict[str, str]:
        """What else it needs to find its parts; the folder of its parsers is `KODE_NVIM_LIB`."""
        libraries = next((self.root / "usr" / "lib").glob("*-linux-gnu"))
        return {
            "VIMRUNTIME": str(self.root / "usr/share/nvim/runtime"),
            "LUA_CPATH": f"{libraries}/lua/5.1/?.so",
            "KODE_NVIM_LIB": str(self.root / "usr/lib/nvim"),
        }

    def version(self) -> str:
        """The first line of what `--version` says."""
        done = subprocess.run(
            [*self.command, "--version"],
            env={**os.environ, **self.environment},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout.splitlines()[0]


@cache
def neovim(suite: str) -> NeovimBuild:
    """The build of a suite; the first use downloads it. Raises PackagesMissing."""
    folder = _cache() / suite
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Tests that run side by side may all try: the first one that is done has made it.
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as fresh:
            root = Path(fresh) / "root"
            unpack("neovim", suite, root)
            try:
                root.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    return NeovimBuild(suite, folder)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kode-sidecar" / "neovim"


def available() -> bool:
    """Can this system run a program of Debian, and get it?"""
    return sys.platform == "linux" and shutil.which("apt-get") is not None


if __name__ == "__main__":
    for name in SUITES:
        try:
            build = neovim(name)
        except PackagesMissing as error:
            sys.exit(str(error))
        sys.stdout.write(f"{name}: {build.version()} in {build.root}\n")
