"""The commit that a build is made from."""

import subprocess
from pathlib import Path

_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def commit_of(checkout: Path) -> str:
    """The commit's first digits, `-dirty` behind them when files were changed; "" without git."""
    if not (checkout / ".git").exists():
        return ""  # not the commit of a repository around an unpacked sdist
    try:
        done = subprocess.run(
            ["git", *_DESCRIBE], cwd=checkout, capture_output=True, encoding="utf-8", check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
