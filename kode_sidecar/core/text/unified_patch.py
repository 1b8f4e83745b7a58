"""Unified diffs as models write them: `--- a/x`, `+++ b/x`, `@@ -1,2 +1,3 @@`. Parsing only; pure.

Their line numbers are often wrong, so they only decide among several places that fit.
"""

import re
from collections.abc import Iterator, Sequence

from kode_sidecar.core.text.apply_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchChunk,
    PatchError,
    each_once,
)

_OLD, _NEW = re.compile(r"--- (.+)"), re.compile(r"\+\+\+ (.+)")
_RANGE = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*|@@(?: .*)?")
_BEGIN = re.compile(r"^(?:--- .+\n\+\+\+ .+\n@@|diff --git a/.+ b/.+\n)", re.MULTILINE)
_GIT = re.compile(r"diff --git a/.+ b/(.+)")
_MOVED = re.compile(r"rename (from|to) (.+)")
_AROUND = re.compile(
    r"\s*|```\w*|diff .*|index .*|similarity .*|(old|new|deleted|new file) .*mode .*"
)


def is_unified(text: str) -> bool:
    """Return whether a text holds a unified diff."""
    return _BEGIN.search(text.replace("\r\n", "\n")) is not None


def parse_unified(patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a diff, each once. Raises PatchError."""
    lines = patch.replace("\r\n", "\n").split("\n")
    files: list[FilePatch] = []
    at = 0
    while at < len(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        old, new = _OLD.fullmatch(lines[at]), _NEW.fullmatch(following)
        if old and new:
            end = _end_of_file(lines, at + 2)
            files.append(_file(_path(old[1]), _path(new[1]), lines[at + 2 : end]))
            at = end
        elif _GIT.fullmatch(lines[at]):
            end = _end_of_header(lines, at + 1)
            if end == len(lines) or not _OLD.fullmatch(lines[end]):
                files += _without_lines(lines[at:end])
            at = end
        elif _AROUND.fullmatch(lines[at]) or _MOVED.fullmatch(lines[at]):
            at += 1
        else:
            raise PatchError(f"{lines[at]!r} is part of no file of the diff.")
    return each_once(files, patch)


def _end_of_header(lines: Sequence[str], at: int) -> int:
    """Return where git's header lines of a file end."""
    while at < len(lines) and not lines[at].startswith("diff "):
        if not (_AROUND.fullmatch(lines[at]) or _MOVED.fullmatch(lines[at])):
            break
        at += 1
    return at


def _without_lines(header: Sequence[str]) -> Iterator[FilePatch]:
    """Yield the file of a header with no lines below it: moved, or empty and new or deleted.

    Raises PatchError where only the mode changes.
    """
    moved = {found[1]: found[2] for line in header if (found := _MOVED.fullmatch(line))}
    name = _GIT.fullmatch(header[0])
    if moved.keys() == {"from", "to"}:
        yield FileUpdate(moved["from"], (), moved["to"])
    elif name is not None and any(line.startswith("new file mode") for line in header):
        yield FileAdd(name[1], "")
    elif name is not None and any(line.startswith("deleted file mode") for line in header):
        yield FileDelete(name[1])
    elif name is not None and any(line.startswith("new mode") for line in header):
        raise PatchError(f"It changes the mode of {name[1]}, which no edit can. Leave it out.")


def _end_of_file(lines: Sequence[str], at: int) -> int:
    """Return where the next file begins; a removed line may look like a header, a pair does not."""
    while at < len(lines):
        pair = at + 1 < len(lines) and _NEW.fullmatch(lines[at + 1])
        if lines[at].startswith(("diff --git ", "```")) or (_OLD.fullmatch(lines[at]) and pair):
            return at
        at += 1
    return at


def _file(old: str | None, new: str | None, lines: Sequence[str]) -> FilePatch:
    chunks = _chunks(new or old or "", lines)
    if old is None and new is not None:
        return FileAdd(new, "".join(f"{line}\n" for chunk in chunks for line in chunk.new))
    if old is None:
        raise PatchError("A file of the diff has no name.")
    if new is None:
        return FileDelete(old)
    if not chunks:
        raise PatchError(f"The update of {old} changes nothing.")
    return FileUpdate(old, chunks, new if new != old else None)


def _chunks(path: str, lines: Sequence[str]) -> tuple[PatchChunk, ...]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    chunks: list[PatchChunk] = []
    old: list[str] = []
    new: list[str] = []
    line = 0
    for text in [*lines, "@@"]:
        header = _RANGE.fullmatch(text)
        if header is not None:
            if old or new:
                chunks.append(PatchChunk((), tuple(old), tuple(new), line=line or None))
            old, new = [], []
            line = int(header[2] or 0)
        elif text.startswith("\\"):
            continue  # "\ No newline at end of file"
        elif not text or text[0] in " -+":
            if not text.startswith("+"):
                old.append(text[1:])
            if not text.startswith("-"):
                new.append(text[1:])
        else:
            raise PatchError(f"In {path}, {text!r} begins with none of blank, - and +.")
    return tuple(chunks)


def _path(name: str) -> str | None:
    """Return a header's path without its time and without git's prefix; None for no file."""
    path = name.split("\t")[0].strip().strip('"')
    if path == "/dev/null":
        return None
    return path[2:] if path.startswith(("a/", "b/")) else path
