"""Edits that people made, from the history of a git repository: one place of a file each."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from random import Random

_SUFFIXES = (".py", ".ts", ".lua", ".md", ".toml", ".json", ".yml", ".js", ".c", ".h")
_CONTEXT = 3
_MAX_LINES = 1_000
_MAX_CHANGED = 40


@dataclass(frozen=True)
class Edit:
    """A text and the text after one change: lines `start` to `end` (from 0) become `new`.

    `first` and `last` bound the lines with their context, as a model quotes them.
    """

    path: str
    before: tuple[str, ...]
    start: int
    end: int
    new: tuple[str, ...]

    @property
    def first(self) -> int:
        """The first line that is quoted."""
        return max(0, self.start - _CONTEXT)

    @property
    def last(self) -> int:
        """The line behind the last one that is quoted."""
        return min(len(self.before), self.end + _CONTEXT)

    @property
    def head(self) -> tuple[str, ...]:
        """The context above the change."""
        return self.before[self.first : self.start]

    @property
    def tail(self) -> tuple[str, ...]:
        """The context below the change."""
        return self.before[self.end : self.last]

    @property
    def old(self) -> tuple[str, ...]:
        """The lines that go."""
        return self.before[self.start : self.end]

    @property
    def after(self) -> tuple[str, ...]:
        """The whole new text."""
        return (*self.before[: self.start], *self.new, *self.before[self.end :])


def mined(repository: Path, count: int, rng: Random) -> list[Edit]:
    """Return edits whose quote stands once in its file, in an order that `rng` gives."""
    found: dict[tuple[str, ...], Edit] = {}
    pairs = _pairs(repository)
    rng.shuffle(pairs)
    for path, before, after in pairs:
        for edit in _edits(path, _blob(repository, before), _blob(repository, after)):
            quote = edit.before[edit.first : edit.last]
            if len(quote) > 3 and _times(edit.before, quote) == 1:
                found.setdefault((*quote, *edit.new), edit)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def _pairs(repository: Path) -> list[tuple[str, str, str]]:
    """Return path, blob before and blob after of every file that a commit changed."""
    log = _git(
        repository, "log", "--no-merges", "--raw", "--no-abbrev", "--diff-filter=M", "--format="
    )
    found: dict[tuple[str, str], str] = {}
    for line in log.decode("utf-8", "replace").split("\n"):
        head, _, path = line.partition("\t")
        if head.startswith(":") and path.endswith(_SUFFIXES):
            _, _, before, after, _ = head.split()
            found[before, after] = path
    return sorted((path, *blobs) for blobs, path in found.items())


def _edits(path: str, before: tuple[str, ...], after: tuple[str, ...]) -> Iterator[Edit]:
    if not before or not after or max(len(before), len(after)) > _MAX_LINES:
        return
    for tag, start, end, low, high in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal" and max(end - start, high - low) <= _MAX_CHANGED:
            yield Edit(path, before, start, end, after[low:high])


def _times(text: tuple[str, ...], quote: tuple[str, ...]) -> int:
    size = len(quote)
    return sum(text[at : at + size] == quote for at in range(len(text) - size + 1))


def _blob(repository: Path, name: str) -> tuple[str, ...]:
    """Return the lines of a text that ends with a line end; none for any other file."""
    try:
        text = _git(repository, "cat-file", "blob", name).decode("utf-8")
    except UnicodeDecodeError:
        return ()
    usable = text.endswith("\n") and "\r" not in text and "\ufeff" not in text
    return tuple(text.split("\n")[:-1]) if usable else ()


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout
