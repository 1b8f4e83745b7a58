"""A package of any Debian suite with all it needs, unpacked into a folder and not installed.

apt gets a state of its own, in which nothing is installed, so that it brings the C library along;
what the system has is neither read nor touched. Signatures are checked as always.
"""

import subprocess
import tempfile
from pathlib import Path

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS = 600.0


class PackagesMissing(Exception):
    """The packages cannot be had here. The message says why."""


def unpack(package: str, suite: str, root: Path) -> None:
    """Download the package and what it depends on, and unpack all of it into `root`."""
    if not KEYS.exists():
        raise PackagesMissing(f"{KEYS} is missing; the package debian-archive-keyring has it")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = _private_state(Path(folder), suite)
        _run(["apt-get", *options, "-qq", "update"])
        _run(["apt-get", *options, "-qq", "-y", "--download-only", "install", package])
        root.mkdir(parents=True)
        archives = sorted((Path(folder) / "cache" / "archives").glob("*.deb"))
        if not archives:
            raise PackagesMissing(f"apt has downloaded nothing for {package} from {suite}")
        for archive in archives:
            _run(["dpkg-deb", "-x", str(archive), str(root)])


def _private_state(folder: Path, suite: str) -> list[str]:
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"deb [signed-by={KEYS}] http://deb.debian.org/debian {suite} main\n"
    (folder / "sources.list").write_text(source, encoding="ascii")
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::Etc::preferencesparts": folder / "parts",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    return [option for name, value in settings.items() for option in ("-o", f"{name}={value}")]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackagesMissing(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip()[-500:]
        raise PackagesMissing(f"{command[0]} failed: {said}")
