"""Finds lines that stand for omitted code ("... rest of the code ..."). Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise

from kode_sidecar.core.text.line_diff import diff_lines

_BARE = re.compile(r"^[ \t]*(?:\.{3}|…)[ \t]*$", re.MULTILINE)
_STUB = re.compile(r"(?::|\"\"\"|''')\s*\Z")
_BRACKETED = re.compile(r"[(\[<（【]+([^)\]>）】]*)[)\]>）】]+")
_COMMENT = re.compile(r"(?://+|#+|/\*+|\*|<!--|\{/\*|--|;+|%+|\"\"\"|')\s*(.*?)\s*(?:\*/\}?|-->)?")
_LEFT = r"(?:the )?(?:rest|remainder|remaining|existing|previous|unchanged|other|omitted|same)\b"
_CODE = (
    r"\b(?:code|file|class|function|module|method|implementation|content|import|test|line|logic|"
    r"definition|field|propert|case|section|unchanged|same|as before|as above|omitted)"
)
_SAID = r"\b(?:unchanged|the same|as (?:before|above|is)|omitted|stays?|remains?|here)\b"
_LEFT_ZH = "(?:其余|其他|剩余|剩下|原有|现有|已有|此处|中间|后面|前面|以下|以上)"
_SAID_ZH = "(?:不变|省略|同上|略|照旧|一样)"
_WITH_DOTS = (
    re.compile(rf"[(\[<{{]?\.{{3}}(?:\s+\(?{_LEFT}|\(?{_LEFT}\s).{{0,60}}", re.IGNORECASE),
    re.compile(rf"[(\[<{{]?{_LEFT}.{{0,20}}{_CODE}.{{0,40}}\.{{3}}\W*", re.IGNORECASE),
    re.compile(rf"\W*{_LEFT_ZH}.{{0,20}}\W*|\W*.{{0,20}}{_SAID_ZH}\W*"),
)
_SAME = r"(?:unchanged|(?:the )?same(?: as (?:before|above))?|as (?:before|above)|omitted)"
_IN_COMMENT = (
    re.compile(r"\.{3}\s*(?:\w+ ){0,5}\w+\s*\.{3}"),
    re.compile(r"\.{3}\W*(?:keep|leave)\b.{1,60}", re.IGNORECASE),
    re.compile(r"\W*\d+ (?:\w+ ){0,2}lines? (?:\w+ ){0,2}(?:omitted|unchanged|left out)\W*", re.I),
    re.compile(rf"\W*(?:the )?(?:rest|remainder|remaining)\b.{{0,30}}\b{_SAME}\W*", re.IGNORECASE),
    re.compile(r"\W*(?:unchanged|same as (?:before|above))\W*", re.IGNORECASE),
    re.compile(rf"\W*{_LEFT}.{{0,20}}{_CODE}.{{0,30}}{_SAID}\W*", re.IGNORECASE),
    re.compile(rf"\W*{_LEFT_ZH}.{{0,12}}{_SAID_ZH}\W*"),
)


# Prose has none of these: `... other = Point()` in a doctest, `...rest };` of JavaScript.
_IS_CODE = re.compile(r"[=;{}]|\w\(")


def omission(text: str, known: str = "") -> str | None:
    """Return the first line of `text` that only says that something was left out.

    Lines that are also in `known` do not count.
    """
    there: set[str] | None = None
    doctest = False
    for raw in text.split("\n"):
        line = raw.strip()
        doctest = line.startswith(">>>") or (doctest and line.startswith("... "))
        if len(line) <= 120 and not doctest and _says_so(line):
            there = there if there is not None else {other.strip() for other in known.split("\n")}
            if line not in there:
                return line
    return None


def elision(old: str, new: str) -> str | None:
    """Return a bare `...` of `new` that stands in place of several lines of `old`.

    One in place of no line is code. So is the body of a stub: alone, or below a signature or a
    docstring, with nothing after it on its level, for no more lines than are written anew.
    """
    if not _BARE.search(new):
        return None
    old_lines, new_lines = old.split("\n"), new.split("\n")
    for a0, a1, b0, b1 in diff_lines(old_lines, new_lines):
        gone = sum(map(bool, map(str.strip, old_lines[a0:a1])))
        put = [line for line in new_lines[b0:b1] if line.strip()]
        bare = [at for at in range(b0, b1) if _BARE.fullmatch(new_lines[at])]
        above = [one for one, line in pairwise(["", *put]) if _BARE.fullmatch(line)]
        most = len(put) if all(map(_STUB.search, above)) else max(1, len(bare))
        if bare and gone and (gone > most or not all(_is_stub(new_lines, at) for at in bare)):
            return new_lines[bare[0]].strip()
    return None


def _is_stub(lines: Sequence[str], at: int) -> bool:
    """Return whether a bare `...` can be a body of its own, or belongs to a doctest."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    if above.lstrip().startswith((">>>", "... ")):
        return True
    ends = not below or _depth(below) < _depth(lines[at])
    return ends and (not above or _STUB.search(above) is not None)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _says_so(line: str) -> bool:
    marked = _COMMENT.fullmatch(line)
    comment = marked or _BRACKETED.fullmatch(line)
    said = (comment[1] if comment else line).replace("…", "...").replace("......", "...")
    if marked is not None and said == "...":
        return True
    prose = comment is not None or not _IS_CODE.search(said)
    if "..." in said and prose and any(pattern.fullmatch(said) for pattern in _WITH_DOTS):
        return True
    return comment is not None and any(pattern.fullmatch(said) for pattern in _IN_COMMENT)
