"""Git as a test calls it: without anybody's configuration."""

import os
import shutil
import subprocess
from pathlib import Path

GIT = shutil.which("git")


def git(folder: Path, *arguments: str) -> str:
    """What it says; it must do well. No repository above the folder is looked for."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    done = subprocess.run(
        [str(GIT), *arguments], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
