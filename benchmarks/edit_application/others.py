"""Appliers of others, where they are installed: what they make of the same patches.

`pip install --no-deps --target FOLDER openai-agents whatthepatch`, and FOLDER in PYTHONPATH. Of
openai-agents one module is loaded, which needs nothing else. GNU patch is a program.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Apply = Callable[[str, str], str | None]
"""`(text, patch)` → the new text, None if it was refused."""


def appliers(dialect: str, folder: Path) -> dict[str, Apply | None]:
    """Return the appliers of a dialect by name, None for one that is not installed.

    `folder` is for files of programs.
    """
    if dialect == "V4A":
        return {"openai-agents": _openai_agents()}
    if dialect == "unified diff":
        return {"whatthepatch": _whatthepatch(), "GNU patch": _gnu_patch(folder)}
    return {}


def _openai_agents() -> Apply | None:
    package = importlib.util.find_spec("agents")
    if package is None or not package.submodule_search_locations:
        return None
    path = Path(package.submodule_search_locations[0]) / "apply_diff.py"
    spec = importlib.util.spec_from_file_location("openai_agents_apply_diff", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    # Its dataclasses look for their module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)

    def apply(text: str, patch: str) -> str | None:
        body = [line for line in patch.split("\n")[2:] if line != "*** End Patch"]
        try:
            return str(module.apply_diff(text, "\n".join(body)))
        except Exception:
            return None

    return apply


def _whatthepatch() -> Apply | None:
    if importlib.util.find_spec("whatthepatch") is None:
        return None
    module: Any = importlib.import_module("whatthepatch")

    def apply(text: str, patch: str) -> str | None:
        try:
            (diff,) = module.parse_patch(patch)
            lines: list[str] = module.apply_diff(diff, text)
        except Exception:
            return None
        return "".join(f"{line}\n" for line in lines)

    return apply


def _gnu_patch(folder: Path) -> Apply | None:
    program = shutil.which("patch")
    if program is None:
        return None
    file, rejected = folder / "text", folder / "rejected"

    def apply(text: str, patch: str) -> str | None:
        file.write_bytes(text.encode())
        command = [program, "--batch", "--silent", "-r", str(rejected), "-o", "-", str(file)]
        done = subprocess.run(command, input=patch.encode(), capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    return apply
