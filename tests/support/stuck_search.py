"""A project in which ripgrep hangs for ever: it opens an ignore file that is a pipe.

POSIX only.
"""

import os
from pathlib import Path


def make_stuck(project: Path) -> None:
    """Every search of this folder that gets as far as `stuck/` stays there."""
    folder = project / "stuck"
    folder.mkdir()
    os.mkfifo(folder / ".gitignore")
    (folder / "code.py").write_bytes(b"never = 'found'\n")
