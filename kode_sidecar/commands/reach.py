"""Which argument of a command leads out of the open folders.

Programs understand arguments in ways of their own, so whatever may be a path in one is looked at:
the whole of it, what stands behind `=` or `:`, and what is glued to a short option.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_MAX_PATH = 4_096
_MOST_GLUED, _MOST_SIGNS = 8, 64
_SIGNS = re.compile(r"[=:;,@]")
_HARMLESS = frozenset({os.devnull, "nul", "NUL"})
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def leads_out(arguments: Sequence[str], folder: Path, roots: Sequence[Path]) -> str:
    """Return the first argument that names a place outside of `roots`; empty: none does.

    `folder` is where the command runs; links are followed.
    """
    real = [Path(os.path.realpath(root)) for root in roots]
    for argument in arguments:
        if argument in _HARMLESS:
            continue
        if any(_is_outside(text, folder, real) for text in _possible_paths(argument)):
            return argument
    return ""


def _possible_paths(argument: str) -> Iterator[str]:
    yield argument
    if _DRIVE.match(argument):
        return
    parts = _SIGNS.split(argument)
    if argument.startswith("-") and not argument.startswith("--"):
        parts += [argument[at:] for at in range(2, min(len(argument), _MOST_GLUED))]
    signs = [sign.end() for sign in _SIGNS.finditer(argument[:_MAX_PATH])]
    parts += [argument[start:] for start in signs[:_MOST_SIGNS]]
    yield from dict.fromkeys(parts)


def _is_outside(text: str, folder: Path, roots: Sequence[Path]) -> bool:
    text = text.strip(" \"'")
    if not text or len(text) > _MAX_PATH:
        return False
    if text.startswith(("~", "\\\\", "//")) or (os.name != "nt" and _DRIVE.match(text)):
        return True
    path = os.path.join(folder, text.replace("\\", "/") if ".." in text else text)
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return True
    return not any(real.is_relative_to(root) for root in roots)
