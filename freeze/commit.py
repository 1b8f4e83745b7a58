"""The commit that a build is made from."""

import os
import subprocess
from pathlib import Path

COMMIT_VARIABLE = "BUILD_COMMIT"
"""Names the commit where git is not at hand."""

_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def commit_of(checkout: Path) -> str:
    """The commit's first digits, `-dirty` behind them when files were changed; "" if unknown."""
    named = os.environ.get(COMMIT_VARIABLE)
    if named or not (checkout / ".git").exists():
        return named or ""  # not the commit of a repository around an unpacked sdist
    try:
        done = subprocess.run(
            ["git", *_DESCRIBE],
            cwd=checkout,
            stdin=subprocess.PIPE,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
