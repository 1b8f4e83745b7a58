"""What the model is told about files that others changed after it had read them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kode_sidecar.text.line_diff import Run, diff_lines, split_lines, unified_diff
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.workspace.credentials import find_secret
from kode_sidecar.workspace.freshness import Loss

MAX_FILES = 20
MAX_DIFF_CHARS = 4_000
MAX_ALL_DIFF_CHARS = 12_000
MAX_RANGES = 20

_HEAD = (
    "Files that you have read were changed since, by the user or by a program, not by you. What "
    "you know of them is out of date there: read again what you rely on.\n"
)


@dataclass(frozen=True)
class FileChange:
    """One file by its name for the model, and each step from one text (LF) to the next."""

    path: str
    steps: Sequence[tuple[str, str]] = ()
    lost: Loss = ""


def file_changes_note(changes: Sequence[FileChange]) -> str:
    """The reminder: a diff where it is short, else the lines. Not for no changes."""
    room = MAX_ALL_DIFF_CHARS
    parts: list[str] = []
    for change in changes[:MAX_FILES]:
        part = _told(change, min(room, MAX_DIFF_CHARS))
        room -= len(part)
        parts.append(part)
    if len(changes) > MAX_FILES:
        parts.append(f"- and {len(changes) - MAX_FILES} more files.")
    return without_controls(_HEAD + "\n".join(parts))


def _told(change: FileChange, room: int) -> str:
    if change.lost == "deleted":
        return f"- {change.path}: it does not exist any more."
    if change.lost:
        return f"- {change.path}: it cannot be read any more."
    if any(find_secret(text) for step in change.steps for text in step):
        return f"- {change.path}: changed; it holds credentials and is not shown."
    diff = "".join(_diffs(change))
    if len(diff) <= room:
        fence = "```" if "```" not in diff else "~~~~"
        return f"- {change.path}:\n{fence}diff\n{diff}{fence}"
    old, new = change.steps[-1]
    return f"- {change.path}: {_ranges(diff_lines(split_lines(old), split_lines(new)))}"


def _diffs(change: FileChange) -> Iterator[str]:
    for old, new in change.steps:
        yield unified_diff(split_lines(old), split_lines(new), change.path)


def _ranges(runs: Sequence[Run]) -> str:
    """Where a text differs, in the line numbers of the new one."""
    names = [_range(b0, b1) for _, _, b0, b1 in runs[:MAX_RANGES]]
    more = f" and {len(runs) - MAX_RANGES} more places" if len(runs) > MAX_RANGES else ""
    return f"changed, as it is now, at {', '.join(names)}{more}."


def _range(start: int, end: int) -> str:
    if start == end:
        return f"line {start + 1} (lines before it are gone)"
    return f"line {start + 1}" if end == start + 1 else f"lines {start + 1}-{end}"
