"""The `apply_patch` grammar: some models answer in it unasked. Parsing only; pure.

    *** Begin Patch
    *** Add File: path        lines that begin with +
    *** Delete File: path
    *** Update File: path     then, optionally, *** Move to: path, and chunks: `@@ a line above`,
                              lines that begin with a blank, - or +, maybe *** End of File
    *** End Patch

A patch that does not end is refused: the rest of it may be lost.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kode_sidecar.core.text.edit_match import EditMatch, MatchError, locate
from kode_sidecar.core.text.text_edit import Edit, with_one_eol

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_RANGE = re.compile(r"(?<=^@@) -\d+(,\d+)? \+\d+(,\d+)? @@")
_WRAPPING = re.compile(r"\s*|```\w*|(?:apply_patch\s*)?<<\s*['\"]?\w+['\"]?|[A-Z]+")


@dataclass(frozen=True)
class PatchChunk:
    """One change of a file. `context` are lines somewhere above it, outermost first.

    `at_end`: the old lines are the last of the file. `line`, from 1, is its stated beginning and
    only decides among several places that fit.
    """

    context: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    at_end: bool = False
    line: int | None = None


@dataclass(frozen=True)
class FileAdd:
    """A new file."""

    path: str
    text: str


@dataclass(frozen=True)
class FileDelete:
    """A file to delete."""

    path: str


@dataclass(frozen=True)
class FileUpdate:
    """Changes of one file, in order, and where it moves."""

    path: str
    chunks: tuple[PatchChunk, ...]
    move_to: str | None = None


FilePatch = FileAdd | FileDelete | FileUpdate


class PatchError(Exception):
    """What is wrong with a patch, for the model."""


def parse_patch(patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch, each once. Raises PatchError."""
    lines = _body(patch.replace("\r\n", "\n").split("\n"))
    files: list[FilePatch] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        header = _header(lines, at)
        if header is None:
            raise PatchError(f"{lines[at]!r} is neither part of a file nor the beginning of one.")
        end = at + 1
        while end < len(lines) and not _header(lines, end):
            end += 1
        body = list(lines[at + 1 : end])
        while body and not body[-1].strip():
            body.pop()
        if body and lines[at].startswith(" ") and _MOVE.fullmatch(body[0].strip()):
            body[0] = body[0].strip()
        files.append(_file(header[1], header[2].strip(), body))
        at = end
    if not files:
        raise PatchError("It names no file.")
    return each_once(files, patch)


def each_once(files: Sequence[FilePatch], patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch, new ones with its line ends. Raises PatchError for one twice."""
    paths = [file.path for file in files]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise PatchError(f"It names {twice} twice. Put all changes of a file under one header.")
    return tuple(
        replace(file, text=with_one_eol(file.text, patch)) if isinstance(file, FileAdd) else file
        for file in files
    )


def _header(lines: Sequence[str], at: int) -> re.Match[str] | None:
    """Return the header of a file; an indented one is no context line only where a file begins."""
    line = lines[at].rstrip()
    begins = at == 0 or not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("*** ")
    return _HEADER.fullmatch(line.lstrip() if begins else line)


def locate_chunk(text: str, chunk: PatchChunk) -> EditMatch | MatchError:
    """Return what the chunk does to `text`.

    Its old lines must occur once; if they occur more often, once below the lines of its context,
    each of which must occur once below the one before. Lines that are only added go below the
    context, or to the end of the file where the chunk says so.
    """
    if not chunk.old:
        return _addition(text, chunk)
    old, new = _joined(chunk.old), _joined(chunk.new)
    ended = text if text.endswith("\n") else text + "\n"
    if chunk.at_end and f"\n{ended}".endswith(f"\n{old}"):
        return EditMatch((Edit(len(ended) - len(old), len(text), new),))
    found = locate(text, old, new, whole_lines=True)
    spare = len(chunk.old) > 1 and not chunk.old[-1] and bool(chunk.new) and not chunk.new[-1]
    if isinstance(found, MatchError) and found.code == "not_found" and spare:
        # The last blank line may only separate chunks.
        bare = locate_chunk(text, replace(chunk, old=chunk.old[:-1], new=chunk.new[:-1]))
        return bare if isinstance(bare, EditMatch) else found
    narrowed = isinstance(found, MatchError) and found.code == "ambiguous"
    if narrowed and chunk.line is not None:
        near = locate(text, old, new, near_line=chunk.line, whole_lines=True)
        return found if isinstance(near, MatchError) else near
    if not narrowed or not chunk.context:
        return found
    start = _below(text, chunk.context)
    if isinstance(start, MatchError):
        return start
    below = locate(text[start:], old, new, whole_lines=True)
    if isinstance(below, MatchError):
        return found
    moved = (Edit(one.start + start, one.end + start, one.text) for one in below.edits)
    return replace(below, edits=tuple(moved))


def _body(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines between the markers."""
    stripped = [line.strip() for line in lines]
    if _BEGIN not in stripped:
        raise PatchError(f"It does not begin with `{_BEGIN}`.")
    if _END not in stripped:
        raise PatchError(f"It has no `{_END}`, so its end may be missing. Send all of it again.")
    begin, end = stripped.index(_BEGIN), stripped.index(_END)
    indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
    if indent and all(not line.strip() or line.startswith(indent) for line in lines[begin:end]):
        lines = [line.removeprefix(indent) for line in lines]
    outside = [*stripped[:begin], *stripped[end + 1 :]]
    stray = next((line for line in outside if not _WRAPPING.fullmatch(line)), None)
    if stray is not None:
        raise PatchError(f"{stray!r} stands outside of it.")
    return lines[begin + 1 : end]


def _file(kind: str, path: str, lines: Sequence[str]) -> FilePatch:
    if kind == "Add":
        wrong = next((line for line in lines if not line.startswith("+")), None)
        if wrong is not None:
            raise PatchError(f"In the new file {path}, {wrong!r} does not begin with +.")
        return FileAdd(path, "".join(f"{line[1:]}\n" for line in lines))
    if kind == "Delete":
        if any(map(str.strip, lines)):
            raise PatchError(f"Lines follow the deletion of {path}.")
        return FileDelete(path)
    move = _MOVE.fullmatch(lines[0].rstrip()) if lines else None
    chunks = _chunks(path, lines[1:] if move else lines)
    if not chunks and move is None:
        raise PatchError(f"The update of {path} changes nothing.")
    return FileUpdate(path, chunks, move[1].strip() if move else None)


@dataclass
class _Draft:
    context: list[str] = field(default_factory=list[str])
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    at_end: bool = False

    @property
    def has_lines(self) -> bool:
        return bool(self.old or self.new)


def _chunks(path: str, lines: Sequence[str]) -> tuple[PatchChunk, ...]:
    drafts = [_Draft()]
    for line in lines:
        draft = drafts[-1]
        if line.startswith("@@"):
            if draft.has_lines:
                draft = _Draft()
                drafts.append(draft)
            context = _RANGE.sub("", line)[2:].removesuffix("@@").strip()
            if context:
                draft.context.append(context)
        elif line.rstrip() == _END_OF_FILE:
            draft.at_end = True
            drafts.append(_Draft())
        elif not line or line[0] == " ":
            draft.old.append(line[1:])
            draft.new.append(line[1:])
        elif line[0] == "-":
            draft.old.append(line[1:])
        elif line[0] == "+":
            draft.new.append(line[1:])
        else:
            raise PatchError(f"In {path}, {line!r} begins with none of blank, - and +.")
    drafts = [draft for draft in drafts if draft.has_lines]
    if drafts and not drafts[-1].old and not drafts[-1].context:
        drafts[-1].at_end = True  # lines that are only added, and nothing says where
    return tuple(PatchChunk(tuple(d.context), tuple(d.old), tuple(d.new), d.at_end) for d in drafts)


def _addition(text: str, chunk: PatchChunk) -> EditMatch | MatchError:
    new = _joined(chunk.new)
    if chunk.context:
        start = _below(text, chunk.context)
        if isinstance(start, MatchError):
            return start
        gap = "" if text[:start].endswith("\n") else "\n"
        return EditMatch((Edit(start, start, gap + new),))
    if chunk.at_end or not text:
        gap = "\n" if text and not text.endswith("\n") else ""
        return EditMatch((Edit(len(text), len(text), gap + new),))
    return MatchError(
        "empty_old",
        "A chunk only adds lines and does not say where. Quote the lines around the place in it.",
    )


def _below(text: str, context: tuple[str, ...]) -> int | MatchError:
    """Return where the line below the last context line begins."""
    at = 0
    for wanted in context:
        starts: list[int] = []
        offset = at
        for line in text[at:].split("\n"):
            offset += len(line) + 1
            if line.strip() == wanted:
                starts.append(offset)
        if len(starts) != 1:
            times = f"{len(starts)} times" if starts else "nowhere"
            code = "ambiguous" if starts else "not_found"
            return MatchError(
                code, f"The line `@@ {wanted}` is to be found {times} in the file, not once."
            )
        at = min(starts[0], len(text))
    return at


def _joined(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)
