"""A project and a search in it that ripgrep does not finish within its limit of 20 seconds.

A long line, and a pattern that is at each of its letters in a thousand places at once.
"""

from pathlib import Path
from typing import Any

STUCK_SEARCH: dict[str, Any] = {
    "query": "(?:[ab]{1,300}[0-9]?){60}[d-y]",
    "regex": True,
    "path": "stuck",
}
"""Arguments of `search_code`."""


def make_stuck(project: Path) -> None:
    """`STUCK_SEARCH` in this folder takes minutes."""
    folder = project / "stuck"
    folder.mkdir()
    (folder / "code.py").write_bytes(b"ab" * 3_000_000)
