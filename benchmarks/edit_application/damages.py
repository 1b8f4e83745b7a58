"""What models get wrong when they write an edit, and what then is the right outcome.

A case is the text of now, the quote as the model writes it, and the one text that is right, or None
where the edit has no single meaning and must be refused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from benchmarks.edit_application.mined import Edit

Lines = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """An edit to apply. `read` is the text that the model knows, `now` that of the file.

    `head`, `old` and `tail` are quoted around the change to `new`; `at` is the line (from 1) where
    the model says the quote begins. `content` is the whole new text as the model writes it.
    """

    edit: Edit
    read: Lines
    now: Lines
    head: Lines
    old: Lines
    new: Lines
    tail: Lines
    at: int
    content: Lines
    expected: Lines | None
    crlf: bool = False
    cut: bool = False


def undamaged(edit: Edit) -> Case:
    """Return the edit as a careful model writes it."""
    return Case(
        edit,
        edit.before,
        edit.before,
        edit.head,
        edit.old,
        edit.new,
        edit.tail,
        edit.first + 1,
        edit.after,
        edit.after,
    )


def _map(case: Case, change: Callable[[str], str], *, new: bool) -> Case:
    """Change every quoted line; the lines to put there too, if `new`."""
    head, old, tail = (tuple(map(change, part)) for part in (case.head, case.old, case.tail))
    put = tuple(map(change, case.new)) if new else case.new
    return replace(case, head=head, old=old, tail=tail, new=put)


def indentation(case: Case, _rng: Random) -> Case | None:
    """All lines stand further right or left, the new ones too."""
    lines = [line for line in (*case.head, *case.old, *case.tail, *case.new) if line.strip()]
    depth = min((len(line) - len(line.lstrip(" ")) for line in lines), default=0)
    if any(line[:1] == "\t" for line in lines):
        return None

    def move(line: str) -> str:
        return line[depth:] if depth else f"    {line}" if line else ""

    return _map(case, move, new=True)


def blanks(case: Case, _rng: Random) -> Case:
    """Quoted lines end with blanks that the file has not."""
    return _map(case, lambda line: f"{line}  ", new=False)


_TYPOGRAPHIC = str.maketrans({"'": "\u2019", '"': "\u201d"})


def quotes(case: Case, _rng: Random) -> Case | None:
    """The quote has typographic quotes in place of plain ones."""
    return _changed(case, _map(case, lambda line: line.translate(_TYPOGRAPHIC), new=False))


_ALIKE = str.maketrans({"-": "\u2010", " ": "\u00a0", "(": "\uff08", ",": "\uff0c"})


def look_alikes(case: Case, _rng: Random) -> Case | None:
    """The quote has full-width signs, other dashes and hard blanks inside its lines."""

    def alike(line: str) -> str:
        body = line.lstrip(" ")
        return line[: len(line) - len(body)] + body.translate(_ALIKE)

    return _changed(case, _map(case, alike, new=False))


def _changed(case: Case, damaged: Case) -> Case | None:
    same = (case.head, case.old, case.tail) == (damaged.head, damaged.old, damaged.tail)
    return None if same else damaged


def elisions(case: Case, _rng: Random) -> Case | None:
    """A comment stands for the middle of what is quoted and put there."""
    if len(case.new) < 4:
        return None
    new = (case.new[0], "# ... rest of the code ...", case.new[-1])
    at = case.edit.start
    content = (*case.edit.before[:at], *new, *case.edit.before[case.edit.end :])
    return replace(case, new=new, content=content, expected=None)


def wrong_numbers(case: Case, rng: Random) -> Case:
    """The model says another line than that of its quote."""
    return replace(case, at=max(1, case.at + rng.choice([-9, -4, -1, 2, 7, 20])))


def stale_base(case: Case, rng: Random) -> Case:
    """Others have changed the file since: above the place, or the very lines."""
    if rng.random() < 0.5:
        added = ("// another one was here", "")
        return _with_text(case, (*added, *case.now), shift=(*added, *_after(case)))
    at = case.edit.start if case.old else max(0, case.edit.start - 1)
    line = f"{case.now[at]} // changed by another" if case.now else ""
    return replace(case, now=(*case.now[:at], line, *case.now[at + 1 :]), expected=None)


def moved_lines(case: Case, _rng: Random) -> Case | None:
    """The block stands elsewhere by now."""
    edit = case.edit
    block = edit.before[edit.first : edit.last]
    rest = (*edit.before[: edit.first], *edit.before[edit.last :])
    if len(rest) < 2:
        return None
    at = 0 if edit.first > len(rest) // 2 else len(rest)
    changed = (*edit.head, *edit.new, *edit.tail)
    now = (*rest[:at], *block, *rest[at:])
    if _count(now, block) != 1:
        return None
    return _with_text(case, now, shift=(*rest[:at], *changed, *rest[at:]))


def repeated_blocks(case: Case, _rng: Random) -> Case:
    """The block stands twice, so that the quote says not which one is meant."""
    block = case.edit.before[case.edit.first : case.edit.last]
    now = (*case.now, "", *block)
    return replace(case, read=now, now=now, content=(), expected=None)


def crlf(case: Case, _rng: Random) -> Case:
    """The file has CRLF, the model writes LF."""
    return replace(case, crlf=True)


def cut_ends(case: Case, _rng: Random) -> Case:
    """The call ends in the middle of the text to put there."""
    keep = len(case.content) // 3
    return replace(case, cut=True, content=case.content[:keep], expected=None)


def doubled_lines(case: Case, _rng: Random) -> Case | None:
    """One line of the quote stands there twice."""
    line = next((line for line in case.head if line.strip()), None)
    if line is None or case.head.count(line) > 1:
        return None
    at = case.head.index(line)
    head = (*case.head[: at + 1], line, *case.head[at + 1 :])
    if "\n".join((*head, *case.old, *case.tail)) in "\n".join(case.read):
        return None  # the first line is the end of another one
    return replace(case, head=head, content=(), expected=None)


def _after(case: Case) -> Lines:
    return case.edit.after


def _with_text(case: Case, now: Lines, shift: Lines) -> Case:
    return replace(case, now=now, expected=shift, content=shift)


def _count(text: Sequence[str], quote: Sequence[str]) -> int:
    size = len(quote)
    return sum(tuple(text[at : at + size]) == tuple(quote) for at in range(len(text) - size + 1))


DAMAGES: dict[str, Callable[[Case, Random], Case | None]] = {
    "none": lambda case, _rng: case,
    "indentation": indentation,
    "blanks": blanks,
    "quotes": quotes,
    "elisions": elisions,
    "wrong numbers": wrong_numbers,
    "stale base": stale_base,
    "moved lines": moved_lines,
    "repeated blocks": repeated_blocks,
    "CRLF": crlf,
    "look-alikes": look_alikes,
    "cut ends": cut_ends,
    "doubled lines": doubled_lines,
}
