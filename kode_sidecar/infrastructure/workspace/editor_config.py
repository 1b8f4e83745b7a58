"""How new files are written where we are the editor: what `.editorconfig` says of their names.

Source: the specification of EditorConfig, 0.17: files from the folder upwards until one says
`root = true`; the nearest one counts, in it the last section that fits. An editor with a buffer
does this itself; jobs, the chat and programs have none.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.text.text_edit import to_lf, with_eol, with_one_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import encode
from kode_sidecar.infrastructure.workspace.globs import compile_glob

MAX_BYTES = 100_000
_EOLS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_CHARSETS = {"utf-8-bom": "utf-8", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
_NUMBERS = re.compile(r"\{(-?\d{1,4})\.\.(-?\d{1,4})\}")
_ACROSS = re.compile(r"\*\*(?=[^/*])")
_BLANKS_AT_END = re.compile(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True)
class NewFileStyle:
    """The properties that hold for one path, in lower case."""

    properties: Mapping[str, str]

    def text(self, text: str, like: str = "") -> str:
        """Return the text of a new file, in one line end: that of `like`, or its, by default."""
        plain = to_lf(text)
        if self.properties.get("trim_trailing_whitespace") == "true":
            plain = _BLANKS_AT_END.sub("", plain)
        final = self.properties.get("insert_final_newline")
        if final == "true" and plain and not plain.endswith("\n"):
            plain += "\n"
        elif final == "false":
            plain = plain.rstrip("\n")
        eol = _EOLS.get(self.properties.get("end_of_line", ""))
        return with_eol(plain, eol) if eol else with_one_eol(plain, like or text)

    def data(self, text: str) -> bytes:
        """Return the bytes of a new file. A charset that needs a setting to be read is left out."""
        charset = _CHARSETS.get(self.properties.get("charset", ""))
        return encode(text, charset or "utf-8", bom=charset is not None)


def new_file_style(path: Path) -> NewFileStyle:
    """Return what the `.editorconfig` files above a path say of it."""
    found: dict[str, str] = {}
    for folder in path.parents:
        is_root, sections = _read(folder / ".editorconfig")
        below = path.relative_to(folder).as_posix()
        found = {name: value for matches, name, value in sections if matches(below)} | found
        if is_root:
            break
    return NewFileStyle(found)


_Line = tuple[Callable[[str], bool], str, str]


def _read(path: Path) -> tuple[bool, list[_Line]]:
    """Return whether a file is the topmost, and its properties with the names they are for."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False, []
    is_root, sections = False, list[_Line]()
    matches: Callable[[str], bool] | None = None
    for name, value in _lines(text):
        if not name:
            matches = _section(value)
        elif matches is not None:
            sections.append((matches, name, value))
        elif name == "root":
            is_root = value == "true"
    return is_root, sections


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield names with their values, and "" with the pattern of each section."""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            yield "", line[1:-1]
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip().lower(), value.strip().lower()


def _section(pattern: str) -> Callable[[str], bool]:
    numbers = _NUMBERS.search(pattern)
    if numbers:  # a range of numbers
        low, high = sorted(map(int, numbers.groups()))
        some = ",".join(map(str, range(low, min(high, low + 999) + 1)))
        pattern = _NUMBERS.sub(f"{{{some}}}", pattern, count=1)
    pattern = _ACROSS.sub("**/*", pattern)
    try:
        return compile_glob(pattern)
    except KodeError:
        return lambda _: False
