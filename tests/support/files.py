"""Real files for tests, and a tool called as a turn calls it."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files below a root; text as UTF-8 with its line ends untouched."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def link(path: Path, target: str | Path) -> None:
    """A symbolic link, or a skipped test where the user may make none (Windows)."""
    try:
        os.symlink(target, path, target_is_directory=Path(path.parent, target).is_dir())
    except OSError:
        pytest.skip("no right to make symbolic links")
    if not os.path.lexists(path):
        pytest.skip("Wine made no link, and did not say so")


async def call(tool: Tool, **arguments: Any) -> ToolOutcome:
    """Run a tool with arguments as a model sends them."""
    read = tool.accept or (lambda given: msgspec.convert(given, tool.params))
    params = read(arguments)
    return await tool.run(params, ToolCall("use", tool.name, "session", "turn", "message"))
