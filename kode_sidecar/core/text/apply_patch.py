"""The `apply_patch` grammar: some models answer in it unasked. Parsing only; pure.

    *** Begin Patch
    *** Add File: path        lines that begin with +
    *** Delete File: path
    *** Update File: path     then, optionally, *** Move to: path, and chunks: `@@ a line above`,
                              lines that begin with a blank, - or +, maybe *** End of File
    *** End Patch

In a section, a line that begins with a blank, - or + is text, whatever follows: a patch may edit
a page about patches. A patch that does not end is refused: the rest of it may be lost.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kode_sidecar.core.text.file_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchChunk,
    PatchError,
)
from kode_sidecar.core.text.patch_order import in_order

_STARS = r"(?: ?\*{3})?"
_BEGIN = re.compile(rf"\*{{3}} Begin Patch{_STARS}", re.IGNORECASE)
_END = re.compile(rf"\*{{3}} End Patch{_STARS}", re.IGNORECASE)
_END_OF_FILE = re.compile(rf"\*{{3}} End of File{_STARS}", re.IGNORECASE)
_HEADER = re.compile(rf"\*{{3}} (Add|Delete|Update) File: (.+?){_STARS}", re.IGNORECASE)
_MOVE = re.compile(rf"\*{{3}} Move to: (.+?){_STARS}", re.IGNORECASE)
_RANGE = re.compile(r"(?<=^@@) -\d+(,\d+)? \+\d+(,\d+)? @@")
_WRAPPING = re.compile(r"\s*|```\w*|(?:apply_patch\s*)?<<\s*['\"]?\w+['\"]?|[A-Z]+")


def begins_at(text: str) -> int | None:
    """Return the number of the line where a patch begins; None if there is none.

    One without its first line begins with a file, below nothing but wrapping.
    """
    wrapped = True
    for at, line in enumerate(text.split("\n")):
        plain = line.strip()
        if _BEGIN.fullmatch(plain) or (wrapped and _HEADER.fullmatch(plain)):
            return at
        wrapped = wrapped and _WRAPPING.fullmatch(plain) is not None
    return None


def parse_patch(patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch, each once. Raises PatchError."""
    lines = _from_begin(patch.replace("\r\n", "\n").split("\n"))
    files: list[FilePatch] = []
    ended, at = False, 1
    while at < len(lines):
        line, begin = lines[at].strip(), at
        at += 1
        if _END.fullmatch(line):
            ended = True
        elif ended:
            if _BEGIN.fullmatch(line):
                ended = False
            elif not _WRAPPING.fullmatch(line):
                raise PatchError(f"{line!r} stands outside of it.")
        elif line:
            header = _HEADER.fullmatch(line)
            if header is None:
                raise PatchError(
                    f"{lines[begin]!r} is neither part of a file nor the beginning of one."
                )
            kind = header[1].capitalize()
            at = _end_of_section(lines, at, deletes=kind == "Delete")
            files.append(_file(kind, header[2].strip(), _body(lines, begin, at)))
    if not ended:
        raise PatchError(
            "It has no `*** End Patch`, so its end may be missing. Send all of it again."
        )
    if not files:
        raise PatchError("It names no file.")
    return in_order(files, patch)


def _from_begin(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the first marker on, without an indentation that all of them have."""
    begin = begins_at("\n".join(lines))
    if begin is None:
        raise PatchError("It does not begin with `*** Begin Patch`.")
    before = (line.strip() for line in lines[:begin])
    stray = next(
        (one for one in before if not (_WRAPPING.fullmatch(one) or _END.fullmatch(one))), None
    )
    if stray is not None:
        raise PatchError(f"{stray!r} stands outside of it.")
    lines = lines[begin:]
    if _HEADER.fullmatch(lines[0].strip()):
        raise PatchError(
            "It does not begin with `*** Begin Patch`, so its beginning may be missing. Send all "
            "of it again."
        )
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    for at, line in enumerate(lines if indent else ()):
        if line.strip() and not line.startswith(indent):
            break
        if _END.fullmatch(line.removeprefix(indent).rstrip()):
            return [*(one.removeprefix(indent) for one in lines[: at + 1]), *lines[at + 1 :]]
    return lines


def _end_of_section(lines: Sequence[str], at: int, *, deletes: bool) -> int:
    """Return where the next section, or the end, begins; only a deletion has no lines of text."""
    while at < len(lines):
        line = lines[at].strip() if deletes else lines[at].rstrip()
        if _HEADER.fullmatch(line) or _END.fullmatch(line):
            break
        at += 1
    return at


def _body(lines: Sequence[str], begin: int, end: int) -> list[str]:
    """Return the lines below a header, without blank ones at their end."""
    body = list(lines[begin + 1 : end])
    while body and not body[-1].strip():
        body.pop()
    if body and lines[begin].startswith(" ") and _MOVE.fullmatch(body[0].strip()):
        body[0] = body[0].strip()
    return body


def _file(kind: str, path: str, lines: list[str]) -> FilePatch:
    if kind == "Add":
        if lines and _END_OF_FILE.fullmatch(lines[-1].rstrip()):
            lines.pop()
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
        elif _END_OF_FILE.fullmatch(line.rstrip()):
            draft.at_end = True
            drafts.append(_Draft())
        elif not line or line[0] == " ":
            draft.old.append(line[1:])
            draft.new.append(line[1:])
        elif line.startswith("\\ "):
            continue  # "\ No newline at end of file": the end stays as the file has it
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
