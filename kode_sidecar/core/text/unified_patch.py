"""Unified diffs as models write them: `--- a/x`, `+++ b/x`, `@@ -1,2 +1,3 @@`. Parsing only; pure.

Their line numbers are often wrong, so they only decide among several places that fit. Counts of a
hunk that are right say which lines are text: a removed line `-- x` looks like a header.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.core.text.diff_names import (
    SideNames,
    header_names,
    prefix_readings,
    side_name,
    unquoted,
)
from kode_sidecar.core.text.file_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchChunk,
    PatchError,
    PatchReadings,
)
from kode_sidecar.core.text.patch_order import in_order

_OLD, _NEW = re.compile(r"--- (.+)"), re.compile(r"\+\+\+ (.+)")
_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*|@@(?: .*)?")
_BEGIN = re.compile(r"(?m)^(?:--- .+\n\+\+\+ .+\n@@|diff --git .+\n)")
_GIT = re.compile(r"diff --git (.+)")
_MOVED = re.compile(r"(rename|copy) (from|to) (.+)")
_BINARY = re.compile(r"GIT binary patch|Binary files .* differ")
_AROUND = re.compile(
    r"\s*|```\w*|diff .*|index .*|(?:dis)?similarity .*|(old|new|deleted|new file) .*mode .*"
)
_NO_END = "\\"  # "\ No newline at end of file"


def unified_begins_at(text: str) -> int | None:
    """Return the number of the line where a unified diff begins; None if there is none."""
    begin = _BEGIN.search(text.replace("\r\n", "\n"))
    return begin.string.count("\n", 0, begin.start()) if begin else None


def unified_readings(patch: str) -> PatchReadings:
    """Return all that a diff can mean. Raises PatchError."""
    lines = patch.replace("\r\n", "\n").split("\n")
    walk = _Walk(lines)
    sections = list(walk.sections())
    if walk.binary:
        raise PatchError(f"{walk.binary!r}: it changes a binary file, which no edit can.")
    sure = not walk.doubtful
    readings: dict[tuple[FilePatch, ...], None] = {}
    errors: list[PatchError] = []
    cuts = [sections]
    if walk.doubtful or walk.swallowed:
        cuts.append(list(_Walk(lines, pairs_begin=walk.swallowed).sections()))
    for cut in cuts:
        prefixes = prefix_readings(one.names for one in cut)
        if sure and readings and len(prefixes) > 1:
            continue  # the counts are right, and what they make text of is no sure name
        sure = sure and len(prefixes) == 1
        for lone in prefixes:
            try:
                readings[_files(cut, patch, lone=lone)] = None
            except PatchError as error:  # perhaps only another reading is a diff
                errors.append(error)
    if not readings:
        raise errors[0]
    return PatchReadings(tuple(readings), sure or len(readings) == 1)


@dataclass(frozen=True)
class _Section:
    """The lines of one file, and what git's header says of it."""

    names: SideNames
    lines: Sequence[str] = ()
    header: Sequence[str] = ()


class _Walk:
    """Cuts a diff into files.

    Where nothing but its look distinguishes a header from text, `pairs_begin` decides. Then
    `doubtful` is set; `swallowed` is set where the counts of a hunk make text of what looks like a
    header.
    """

    def __init__(self, lines: Sequence[str], *, pairs_begin: bool | None = None) -> None:
        self._lines, self._pairs_begin = lines, pairs_begin
        self.doubtful = self.swallowed = False
        self.binary = ""

    def sections(self) -> Iterator[_Section]:
        """Yield the files. Raises PatchError."""
        lines, at = self._lines, 0
        while at < len(lines):
            git = _GIT.fullmatch(lines[at])
            begin = at
            if git:
                at = self._end_of_header(at + 1)
            header = lines[begin:at]
            if self._is_pair(at):
                end = self._end_of_file(at + 2)
                yield _Section(_names(lines, at, header), lines[at + 2 : end], header)
                at = end
            elif git:
                yield from _without_lines(header)
            elif _BINARY.fullmatch(lines[at]):
                self.binary = lines[at]
                return
            elif _AROUND.fullmatch(lines[at]) or _MOVED.fullmatch(lines[at]):
                at += 1
            else:
                raise PatchError(f"{lines[at]!r} is part of no file of the diff.")

    def _is_pair(self, at: int) -> bool:
        pair = self._lines[at : at + 2]
        return len(pair) == 2 and bool(_OLD.fullmatch(pair[0]) and _NEW.fullmatch(pair[1]))

    def _end_of_header(self, at: int) -> int:
        """Return where git's header lines of a file end."""
        while at < len(self._lines) and not self._lines[at].startswith("diff "):
            if not (_AROUND.fullmatch(self._lines[at]) or _MOVED.fullmatch(self._lines[at])):
                break
            at += 1
        return at

    def _end_of_file(self, at: int) -> int:
        """Return where the next file begins."""
        exact = True
        while at < len(self._lines):
            line = self._lines[at]
            end = None if self._pairs_begin else self._end_of_counted(at)
            if end is not None:
                self.swallowed = self.swallowed or any(map(self._is_pair, range(at + 1, end)))
                at, exact = end, True
                continue
            if line.startswith(("diff --git ", "```")):
                return at
            if self._is_pair(at):
                self.doubtful = self.doubtful or not exact
                if exact or self._pairs_begin is not False:
                    return at
                at += 1
            exact = exact and not line.strip()
            at += 1
        return at

    def _end_of_counted(self, at: int) -> int | None:
        """Return where the hunk at a line ends by its counts; None if they are wrong."""
        header = _RANGE.fullmatch(self._lines[at])
        if header is None or header[1] is None:
            return None
        olds, news = int(header[2] or "1"), int(header[4] or "1")
        at += 1
        while (olds > 0 or news > 0) and at < len(self._lines):
            sign = self._lines[at][:1] or " "
            if sign not in " +-\\":
                return None
            olds -= sign in " -"
            news -= sign in " +"
            at += 1
        if olds or news:
            return None
        while at < len(self._lines) and self._lines[at].startswith(_NO_END):
            at += 1
        rest = next((line for line in self._lines[at:] if line.strip()), "")
        ends = not rest or rest.startswith(("@@", "diff ", "--- ", "```"))
        return at if ends or _BINARY.fullmatch(rest) else None


def _names(lines: Sequence[str], at: int, header: Sequence[str]) -> SideNames:
    """Return the names of a file whose lines `---` and `+++` stand at `at`."""
    moved = _moved(header)
    if moved is not None:
        return SideNames(*moved, plain=True)
    old, new = side_name(lines[at][4:]), side_name(lines[at + 1][4:])
    if old is None and new is None:
        raise PatchError("A file of the diff has no name.")
    git = header_names(header[0].removeprefix("diff --git ")) if header else None
    return SideNames(old, new, git)


def _moved(header: Sequence[str]) -> tuple[str, str] | None:
    """Return both names of a file that git says is moved. Raises PatchError for a copied one."""
    found = [one for line in header if (one := _MOVED.fullmatch(line))]
    if any(one[1] == "copy" for one in found):
        raise PatchError(
            "It copies a file, which no edit can. Add the new file with all its lines."
        )
    names = {one[2]: unquoted(one[3]) for one in found}
    return (names["from"], names["to"]) if names.keys() == {"from", "to"} else None


def _without_lines(header: Sequence[str]) -> Iterator[_Section]:
    """Yield the file of a header with no lines below it: moved, or empty and new or deleted.

    Raises PatchError where only the mode changes.
    """
    moved = _moved(header)
    if moved is not None:
        yield _Section(SideNames(*moved, plain=True))
        return
    kinds = {
        kind for kind in ("new file mode", "deleted file mode", "new mode") if _has(header, kind)
    }
    names = header_names(header[0].removeprefix("diff --git "))
    if kinds and names is None:
        raise PatchError(f"{header[0]!r} can be read in several ways. Quote its names.")
    if names is not None and "new file mode" in kinds:
        yield _Section(SideNames(None, names[1], names))
    elif names is not None and "deleted file mode" in kinds:
        yield _Section(SideNames(names[0], None, names))
    elif names is not None and "new mode" in kinds:
        shown = SideNames(None, names[1], names)
        name = shown.without_prefixes().new if shown.prefixed else names[1]
        raise PatchError(f"It changes the mode of {name}, which no edit can. Leave it out.")


def _has(header: Sequence[str], kind: str) -> bool:
    return any(line.startswith(kind) for line in header)


def _files(sections: Sequence[_Section], patch: str, *, lone: bool) -> tuple[FilePatch, ...]:
    """Return the files of a diff; names on one side only have a prefix if `lone`."""
    files: list[FilePatch] = []
    for one in sections:
        prefixed = lone if one.names.prefixed is None else one.names.prefixed
        names = one.names.without_prefixes() if prefixed else one.names
        files.append(_file(names.old, names.new, one.lines))
    if not files:
        raise PatchError("It names no file.")
    return in_order(files, patch)


def _file(old: str | None, new: str | None, lines: Sequence[str]) -> FilePatch:
    chunks = list(_chunks(new or old or "", lines))
    if old is None:
        text = "".join(f"{line}\n" for chunk in chunks for line in chunk.new)
        unended = any(line.startswith(_NO_END) for line in lines)
        return FileAdd(new or "", text.removesuffix("\n") if unended else text)
    if new is None:
        return FileDelete(old)
    if not chunks and new == old:
        raise PatchError(f"The update of {old} changes nothing.")
    return FileUpdate(old, tuple(chunks), new if new != old else None)


def _chunks(path: str, lines: Sequence[str]) -> Iterator[PatchChunk]:
    lines = _without_blank_end(lines)
    old: list[str] = []
    new: list[str] = []
    unended: set[str] = set()
    line, sign, counts = 0, "", None
    for at, text in enumerate([*lines, "@@"]):
        header = _RANGE.fullmatch(text)
        if header is not None:
            if old or new:
                ends_file = unended == {"-"}
                ends = at == len(lines) and sign in ("+", "-")
                cut = _cut(counts, old, new) if ends else "no"
                yield PatchChunk(
                    (), tuple(old), tuple(new), ends_file, line or None, ends_file, cut
                )
            old, new, unended = [], [], set()
            line, counts = int(header[3] or 0), header
        elif text.startswith(_NO_END):
            unended.add(sign)
        elif not text or text[0] in " -+":
            sign = text[:1] or " "
            if sign != "+":
                old.append(text[1:])
            if sign != "-":
                new.append(text[1:])
        else:
            raise PatchError(f"In {path}, {text!r} begins with none of blank, - and +.")


def _without_blank_end(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without blank ones at the end, except those that the last hunk counts."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    headers = (at for at in range(end - 1, -1, -1) if _RANGE.fullmatch(lines[at]))
    begin = next(headers, None)
    header = None if begin is None else _RANGE.fullmatch(lines[begin])
    if begin is None or header is None or header[1] is None:
        return lines[:end]
    signs = [line[:1] or " " for line in lines[begin + 1 : end]]
    missing = int(header[2] or "1") - sum(sign in " -" for sign in signs)
    if missing == int(header[4] or "1") - sum(sign in " +" for sign in signs) > 0:
        blank = lines[end : end + missing]
        if len(blank) == missing and all(line.startswith(" ") for line in blank):
            end += missing
    return lines[:end]


def _cut(
    header: re.Match[str] | None, old: Sequence[str], new: Sequence[str]
) -> Literal["no", "perhaps", "yes"]:
    """Return whether a hunk has fewer lines than its header says, of neither side more.

    With all old lines and too few new ones it is cut; else the counts may be wrong.
    """
    if header is None or header[1] is None:
        return "no"
    missing = int(header[2] or "1") - len(old), int(header[4] or "1") - len(new)
    if min(missing) < 0 or not any(missing):
        return "no"
    return "perhaps" if missing[0] else "yes"
