"""Names of files in a unified diff: quoted as git quotes them, with its prefixes or none. Pure.

A prefix is git's where both sides show one of a pair, as `a/x` and `b/x` do. `a/x` on both sides
is a file in a folder `a`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kode_sidecar.core.text.file_patch import PatchError

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_NAMED_ESCAPES = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))
_PREFIXED = re.compile(r"[abciow12]/.")
_NO_FILE = "/dev/null"


@dataclass(frozen=True)
class SideNames:
    """The names that one file of a diff has on its two sides; None for no file.

    `header` are both names in the line `diff --git`, if there is one. `plain`: they stand in lines
    that never have a prefix.
    """

    old: str | None
    new: str | None
    header: tuple[str, str] | None = None
    plain: bool = False

    @property
    def prefixed(self) -> bool | None:
        """Whether both sides show git's prefixes; None if only one side has a name."""
        if self.plain:
            return None
        if self.header is not None:
            return _is_pair(*self.header)
        if self.old is None or self.new is None:
            return None
        return _is_pair(self.old, self.new)

    def without_prefixes(self) -> "SideNames":
        """Return the names as they are below git's prefixes."""
        old, new = (
            name and (name[2:] if _PREFIXED.match(name) else name) for name in (self.old, self.new)
        )
        return self if self.plain else SideNames(old, new, self.header)


def prefix_readings(files: Iterable[SideNames]) -> tuple[bool, ...]:
    """Return whether the names of one-sided files have prefixes; both if nothing decides it."""
    known = list(files)
    reported = {names.prefixed for names in known if names.prefixed is not None}
    lone = [names for names in known if names.prefixed is None and not names.plain]
    if len(reported) == 1:
        return (reported.pop(),)
    if reported or any(_PREFIXED.match(names.old or names.new or "") for names in lone):
        return True, False
    return (False,)


def side_name(text: str) -> str | None:
    """Return the name in a line `---` or `+++`, without its time; None for no file.

    Raises PatchError.
    """
    quoted = _QUOTED.match(text)
    name = unquoted(quoted[0]) if quoted else text.split("\t")[0].strip()
    return None if name == _NO_FILE else name


def header_names(text: str) -> tuple[str, str] | None:
    """Return both names of `diff --git`; None where a blank in them leaves it open.

    Raises PatchError.
    """
    splits = list(_splits(text))
    same = [
        pair
        for pair in splits
        if pair[0] == pair[1] or (_is_pair(*pair) and pair[0][2:] == pair[1][2:])
    ]
    chosen = same if same else splits
    return chosen[0] if len(chosen) == 1 else None


def unquoted(text: str) -> str:
    """Return a name as git writes it, read as a C string of bytes if it is quoted.

    Raises PatchError.
    """
    quoted = _QUOTED.fullmatch(text.strip())
    if quoted is None:
        return text.strip()
    try:
        return _ESCAPE.sub(_unescaped, quoted[1].encode()).decode()
    except (UnicodeDecodeError, ValueError):
        raise PatchError(f"The quoted name {text} is no text in UTF-8.") from None


def _unescaped(found: re.Match[bytes]) -> bytes:
    what = found[1]
    if len(what) == 3:
        return bytes([int(what, 8)])
    return bytes([_NAMED_ESCAPES.get(what[0], what[0])])


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield each way to read two names in the rest of a line `diff --git`."""
    quoted = _QUOTED.match(text)
    if quoted:
        yield unquoted(quoted[0]), unquoted(text[quoted.end() :])
        return
    for blank in re.finditer(" ", text):
        first, second = text[: blank.start()], text[blank.end() :]
        if first and second:
            yield first, unquoted(second)


def _is_pair(old: str, new: str) -> bool:
    """Return whether two names show two different prefixes of git's."""
    if not (_PREFIXED.match(old) and _PREFIXED.match(new)) or old[0] == new[0]:
        return False
    return old[2:] == new[2:] or (old[0], new[0]) == ("a", "b")
