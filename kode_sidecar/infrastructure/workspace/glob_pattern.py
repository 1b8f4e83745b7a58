"""Matches patterns as in `.gitignore`, in time linear in the path, whoever wrote them.

The usual regular expression for `*a*b*c*` tries every way to divide a name among the stars: a
project could hang the process with one long file name. Here each star takes the shortest text that
lets the next letters match, without backtracking, which finds a match if there is one.
Source: gitignore(5).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

_MAX_NAME = 255  # no file system of ours has longer names
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_WILD = re.compile(r"[*?\[\\]")
_CLASS = re.compile(r"\[:(\w+):\]")


@dataclass(frozen=True)
class GlobPattern:
    """One line of a `.gitignore`: `segments` between slashes, `**` standing for any folders."""

    segments: tuple[str, ...]
    negated: bool
    folders_only: bool
    names_brackets: bool = False

    @classmethod
    def parse(cls, line: str, *, names_brackets: bool = False) -> "GlobPattern | None":
        """Return the pattern a line holds; None for an empty line and a comment.

        With `names_brackets`, `[id]` also means a name with these brackets, as routers have it.
        """
        line = _without_trailing_blanks(line)
        if not line or line.startswith("#"):
            return None
        negated = line.startswith("!")
        line = line[1:] if negated else line
        folders_only = line.endswith("/")
        names = [
            "**" if len(name) > 1 and not name.strip("*") else name for name in line.split("/")
        ]
        names = [name for name in names if name]
        anchored = "/" in line.rstrip("/")
        if not names:
            return None
        if not anchored:
            names.insert(0, "**")
        if names[-1] == "**":  # matches everything below the folder, not the folder itself
            names.append("*")
        return cls(tuple(names), negated, folders_only, names_brackets)

    def matches(self, parts: Sequence[str], *, folder: bool) -> bool:
        """Return whether the pattern matches a whole path, given by names below its folder."""
        if self.folders_only and not folder:
            return False
        if self._stem is None:
            return _fits(self._tests, parts)
        *above, start = self._stem
        names, rest = list(parts[: len(above)]), parts[len(above) :]
        if names != above or not rest or not rest[0].startswith(start):
            return False
        tests = (None, *self._tests[len(self._stem) :])
        return _fits(tests, (rest[0].removeprefix(start), *rest[1:]))

    @cached_property
    def _stem(self) -> Sequence[str] | None:
        """The plain names up to the stars in `a/b**/c`, here `a`, `b`; None for other patterns.

        Git compares what stands before the first wildcard by itself. Stars behind it then begin
        what is left, and as at the beginning of a pattern they match any folders.
        """
        count = next((at for at, name in enumerate(self.segments) if _WILD.search(name)), 0)
        name = self.segments[count]
        stem = name.rstrip("*")
        two = len(name) - len(stem) > 1
        if self.names_brackets or not stem or not two or _WILD.search(stem):
            return None
        return None if count + 1 == len(self.segments) else (*self.segments[:count], stem)

    @cached_property
    def _tests(self) -> "tuple[Callable[[str], object] | None, ...]":
        return tuple(None if name == "**" else self._name_test(name) for name in self.segments)

    def _name_test(self, name: str) -> Callable[[str], object]:
        if not self.names_brackets:
            by_bytes = _name_test(_bytes(name))  # for git a letter beyond ASCII is several
            return (
                by_bytes
                if name.isascii() and not _WILD.search(name)
                else (lambda given: by_bytes(_bytes(given)))
            )
        test = _name_test(name)
        if "[" not in name:
            return test
        literal = _name_test(name.replace("[", "\\["))
        return lambda given: test(given) or literal(given)


def for_ripgrep(segment: str, *, names_brackets: bool = False) -> tuple[str, bool]:
    """Return a segment as ripgrep's glob, and whether it matches exactly the same names.

    Else it matches more: ripgrep's sets differ from git's, and so does what it counts for `?`.
    """
    if segment == "**":
        return segment, True
    parts: list[str] = []
    at, exact, ends = 0, True, _set_ends(segment)
    while at < len(segment):
        char = segment[at]
        at += 1
        if char == "*" or (char == "?" and names_brackets):
            parts.append(char)
        elif char == "?":
            parts.append("*")
            exact = False
        elif char == "\\" and at < len(segment):
            parts.append(_literal(segment[at]))
            at += 1
        elif char == "[" and (found := _bracket(segment, at, ends)):
            name = "".join(map(_literal, segment[at - 1 : found[1]]))
            parts.append(f"{{?,{name}}}" if names_brackets else "*")
            at, exact = found[1], False
        else:
            parts.append(_literal(char))
    return "".join(parts), exact


def _without_trailing_blanks(line: str) -> str:
    """Return a line without the blanks at its end; one that a backslash escapes stays."""
    text = line.rstrip(" \t\r")
    return line[: len(text) + 1] if text.endswith("\\") else text


def _bytes(text: str) -> str:
    """Return a text with a character for each byte of its UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _literal(char: str) -> str:
    if char == " ":
        return "[ ]"  # at the end of a line an escaped blank is lost
    return char if char.isalnum() or char in "._-" else f"\\{char}"


def _fits(tests: "Sequence[Callable[[str], object] | None]", parts: Sequence[str]) -> bool:
    """Return whether the tests accept the names one by one; None takes any number of names.

    To go on after a mismatch, only the last None must take one more name.
    """
    at = taken = 0
    resume: tuple[int, int] | None = None
    while taken < len(parts):
        test = tests[at] if at < len(tests) else _never
        if test is None:
            at += 1
            resume = (at, taken)
        elif test(parts[taken]):
            at, taken = at + 1, taken + 1
        elif resume is not None:
            resume = (resume[0], resume[1] + 1)
            at, taken = resume
        else:
            return False
    return all(test is None for test in tests[at:])


def _never(_name: str) -> bool:
    return False


def _name_test(glob: str) -> Callable[[str], object]:
    """Return a test for one name."""
    if not any(char in glob for char in "*?[\\"):
        return glob.__eq__
    chunks = _chunks(glob)
    if sum(map(len, chunks)) > _MAX_NAME:
        return _never
    first, *middle = ("".join(chunk) for chunk in chunks)
    if not middle:
        return re.compile(first, re.DOTALL).fullmatch
    last = middle.pop()
    stars = "".join(f"(?>.*?{chunk})" for chunk in middle)
    return re.compile(f"{first}{stars}.*{last}", re.DOTALL).fullmatch


def _chunks(glob: str) -> list[list[str]]:
    """Return regular expressions for single characters, in lists that the stars separate."""
    chunks: list[list[str]] = [[]]
    at, ends = 0, _set_ends(glob)
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append([])
        elif char == "?":
            chunks[-1].append(".")
        elif char == "\\" and at < len(glob):
            chunks[-1].append(re.escape(glob[at]))
            at += 1
        elif char == "[" and (found := _bracket(glob, at, ends)):
            chunks[-1].append(found[0])
            at = found[1]
        else:
            chunks[-1].append(re.escape(char))
    return chunks


def _bracket(glob: str, at: int, ends: Sequence[int]) -> tuple[str, int] | None:
    """Return the regular expression of a set whose `[` stands before `at`, and where it ends.

    None if it is not closed: then `[` is an ordinary character. `ends` are those of `_set_ends`.
    """
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    if at >= len(glob) or ends[_set_member(glob, at)[1]] >= len(glob):
        return None
    members, at = _set_member(glob, at)  # also a `]`, which is a member at the beginning
    while glob[at] != "]":
        more, at = _set_member(glob, at)
        members += more
    empty = "." if negated else r"(?!.)."
    return (f"[{'^' * negated}{members}]" if members else empty), at + 1


def _set_ends(glob: str) -> list[int]:
    """Return for each place the `]` that closes a set with a member there, or the glob's length.

    From the end, once for all places: to look for each `[` anew takes a time that grows with the
    square.
    """
    size = len(glob)
    ends = [size] * (size + 1)
    if "[" in glob:
        for at in reversed(range(size)):
            ends[at] = at if glob[at] == "]" else ends[_set_member(glob, at)[1]]
    return ends


def _set_member(glob: str, at: int) -> tuple[str, int]:
    """Return the regular expression of a character, class or range in a set, and where it ends."""
    name = _CLASS.match(glob, at)
    if name and name[1] in _CLASSES:
        return _CLASSES[name[1]], name.end()
    low, at = _member(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in ("", "]"):
        return re.escape(low), at
    high, at = _member(glob, at + 1)
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at


def _member(glob: str, at: int) -> tuple[str, int]:
    """Return one character of a set, and the index after it."""
    if glob[at] == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    return glob[at], at + 1
