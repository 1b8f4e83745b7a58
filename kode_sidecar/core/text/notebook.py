"""Reads a notebook (nbformat 4) as the text of its cells, and writes that text back into the JSON.

Each cell begins with a line such as `# %% [code] id=a1`; its source follows as it reads. Outputs
and metadata are left out of the text and stay in the JSON, byte for byte where nothing changed. A
cell is recognised by its id, or by its number where not all have one. Pure; LF text.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kode_sidecar.core.text.line_diff import split_lines

_MARK = re.compile(r"# (%{2,}) \[(code|markdown|raw)\](?: (id=[\w-]+|cell \d+))?[ \t]*\n?")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GAP = re.compile(r"[ \t\r\n]*")
_BLANKS = re.compile(r"[ \t]*")
_DECODER = json.JSONDecoder()

HOW_TO_WRITE = (
    "Begin each cell with a line `# %% [code]`, `# %% [markdown]` or `# %% [raw]`, followed by its "
    "source; the line of a cell that is there already also has its id."
)


class NotebookError(ValueError):
    """Text that is no notebook, or from which none can be made."""


@dataclass(frozen=True)
class NotebookCell:
    """A cell: its source, and the names by which it is recognised ("" for a new one).

    `start` to `end` is its place in the JSON, `value` that of its source there.
    """

    kind: str
    source: str
    name: str
    start: int = 0
    end: int = 0
    value: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Notebook:
    """A notebook's JSON with its cells. `array` is the place of the list of cells."""

    json: str
    cells: Sequence[NotebookCell]
    array: tuple[int, int]
    has_ids: bool
    fence: str

    @property
    def text(self) -> str:
        """The text of the cells, with a line that begins each."""
        return "".join(
            f"# {self.fence} [{cell.kind}] {cell.name}\n{cell.source}\n" for cell in self.cells
        )

    @property
    def shape(self) -> list[tuple[str, str]]:
        """The kinds and names of its cells, in their order."""
        return [(cell.kind, cell.name) for cell in self.cells]

    def json_lines(self, start: int, end: int) -> tuple[int, int]:
        """Return the lines of the JSON that hold the cells of lines `start` to `end` of `text`.

        All from 0, ends exclusive. What stands around the cells counts as the first and the last.
        """
        ends = [0]
        for cell in self.cells:
            ends.append(ends[-1] + cell.source.count("\n") + 2)
        here = [k for k in range(len(self.cells)) if ends[k] < end and start < ends[k + 1]]
        count = len(split_lines(self.json))
        if not self.cells or not here:
            return (0, 0 if self.cells else count)
        first = self.json.count("\n", 0, self.cells[here[0]].start) if here[0] else 0
        after = here[-1] + 1
        last = len(self.cells) == after
        return first, count if last else self.json.count("\n", 0, self.cells[after].start)

    def with_cells(self, cells: "Sequence[NotebookCell]") -> str:
        """Return the JSON with these cells; those of a known name stay but for their source."""
        return _Writer(self).with_cells(cells)

    def with_text(self, shown: str) -> tuple[str, bool]:
        """Return the JSON with these cells, and whether only their sources changed.

        Raises NotebookError.
        """
        wanted = _parsed(shown, self.fence)
        written = self.with_cells(wanted)
        read = [(cell.kind, cell.source) for cell in read_notebook(written).cells]
        if read != [(cell.kind, cell.source) for cell in wanted]:
            raise NotebookError("Its JSON is written in a way that cannot be edited by cells.")
        return written, [(cell.kind, cell.name) for cell in wanted] == self.shape


def is_notebook(name: str) -> bool:
    """Return whether a file of this name is a notebook."""
    return name.lower().endswith(".ipynb")


def read_notebook(text: str) -> Notebook:
    """Read a notebook's JSON. Raises NotebookError."""
    try:
        book: Any = json.loads(text)
        text.encode()
        top = {name: (start, end) for name, start, end in _parts(text, _skip(text, 0))}
        array = top["cells"]
        places = [(start, end) for _, start, end in _parts(text, array[0])]
        if book["nbformat"] != 4:
            raise NotebookError("Only notebooks of format 4 can be read.")
        raw = cast(list[dict[str, Any]], book["cells"])
        ids = [cell.get("id") for cell in raw]
        known = all(isinstance(one, str) and _ID.fullmatch(one) for one in ids)
        has_ids = (book["nbformat"], book.get("nbformat_minor", 0)) >= (4, 5)
        named = known and len(set(ids)) == len(ids)
        names = [f"id={ids[k]}" if named else f"cell {k + 1}" for k in range(len(raw))]
        cells = [
            _cell(text, cell, name, place)
            for cell, name, place in zip(raw, names, places, strict=True)
        ]
    except NotebookError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotebookError(f"It is no notebook ({type(error).__name__}: {error}).") from None
    return Notebook(text, cells, array, has_ids, _fence(cells))


def cells_text(text: str) -> str:
    """Return the text of a notebook's cells; what is no notebook is returned as it is."""
    try:
        return read_notebook(text).text
    except NotebookError:
        return text


def new_notebook(text: str) -> str:
    """Return the JSON of a new notebook: of the text of its cells, or as it is given.

    Raises NotebookError.
    """
    if text.lstrip().startswith("{"):
        return read_notebook(text).json
    empty: dict[str, Any] = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    mark = _MARK.match(text)
    if mark is None and text.strip():
        raise NotebookError(HOW_TO_WRITE)
    book = read_notebook(json.dumps(empty, indent=1) + "\n")
    fence = mark[1] if mark else book.fence
    return _Writer(book).with_cells(_parsed(text, fence))


def _cell(text: str, raw: dict[str, Any], name: str, place: tuple[int, int]) -> NotebookCell:
    found, kind = raw["source"], raw["cell_type"]
    source = found if isinstance(found, str) else "".join(cast(list[str], found))
    source.encode()  # a lone surrogate could not be shown
    if kind not in ("code", "markdown", "raw"):
        raise NotebookError(f"It has a cell of the unknown kind {kind!r}.")
    values = {key: (start, end) for key, start, end in _parts(text, place[0])}
    return NotebookCell(kind, _lf(source), name, *place, value=values["source"])


def _lf(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _fence(cells: Sequence[NotebookCell]) -> str:
    """Return the percent signs of the lines that begin cells: no line of a source has as many."""
    marks = [mark for cell in cells for mark in map(_MARK.match, split_lines(cell.source)) if mark]
    return "%" * (max((len(mark[1]) for mark in marks), default=1) + 1)


def _parsed(shown: str, fence: str) -> list[NotebookCell]:
    """Return the cells of a text. Raises NotebookError."""
    if shown.lstrip().startswith("{"):
        return list(read_notebook(shown).cells)
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in split_lines(shown):
        mark = _MARK.fullmatch(line)
        if mark is not None and mark[1] == fence:
            found.append((mark, []))
        elif found:
            found[-1][1].append(line)
        elif line.strip():
            raise NotebookError(f"The line `{line.strip()}` stands before the first cell.")
    cells: list[NotebookCell] = []
    for mark, lines in found:
        source = "".join(lines)
        source = source.removesuffix("\n") if mark[3] else source.strip("\n")
        cells.append(NotebookCell(mark[2], source, mark[3] or ""))
    return cells


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _parts(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the name, "" in a list, and the place of each value of the object or list at `at`."""
    keyed = text[at] == "{"
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        name = ""
        if keyed:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        yield name, at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


class _Writer:
    """Writes cells into the JSON of a notebook, in the layout that it has."""

    def __init__(self, book: Notebook) -> None:
        self._book = book
        self._json = book.json
        self._ascii = book.json.isascii() and "\\u" in book.json
        start, end = book.array
        head = self._json[start : book.cells[0].start if book.cells else end]
        self._pretty = "\n" in (head if book.cells else self._json.rstrip())
        unit = re.search(r"\{\n([ \t]+)", self._json)
        self._unit = unit[1] if unit else " "
        at = book.cells[0].start if book.cells else None
        self._indent = 2 * self._unit if at is None else self._indent_at(at)

    def with_cells(self, wanted: Sequence[NotebookCell]) -> str:
        """See `Notebook.with_cells`."""
        old = {cell.name: cell for cell in self._book.cells}
        taken = {cell.name for cell in wanted if cell.name in old}
        texts: list[str] = []
        stay: list[NotebookCell] = []
        for cell in wanted:
            known = old.pop(cell.name, None)
            stay += [known] if known else []
            texts.append(self._changed(known, cell) if known else self._new(cell, taken))
        start, end = self._book.array
        if len(stay) == len(wanted) and stay == list(self._book.cells):
            return self._in_place(texts)
        return self._json[:start] + self._list(texts) + self._json[end:]

    def _in_place(self, texts: Sequence[str]) -> str:
        written, at = "", 0
        for cell, text in zip(self._book.cells, texts, strict=True):
            written += self._json[at : cell.start] + text
            at = cell.end
        return written + self._json[at:]

    def _list(self, texts: Sequence[str]) -> str:
        if not texts:
            return "[]"
        if not self._pretty:
            return "[" + ", ".join(texts) + "]"
        gap = f"\n{self._indent}"
        return f"[{gap}{f',{gap}'.join(texts)}\n{self._indent_at(self._book.array[0])}]"

    def _changed(self, known: NotebookCell, wanted: NotebookCell) -> str:
        text = self._json[known.start : known.end]
        if wanted.kind != known.kind:
            raw = cast(dict[str, Any], json.loads(text))
            for name in ("outputs", "execution_count"):
                raw.pop(name, None)
            return self._dumped(raw | _fresh(wanted))
        if wanted.source == known.source:
            return text
        start, end = known.value
        value = self._source(wanted.source, self._json[start:end], start)
        return self._json[known.start : start] + value + self._json[end : known.end]

    def _new(self, wanted: NotebookCell, taken: set[str]) -> str:
        raw: dict[str, Any] = {"metadata": {}, **_fresh(wanted)}
        if self._book.has_ids:
            name = wanted.name
            count = 0
            while not name.startswith("id=") or name in taken:
                digest = hashlib.sha256(f"{count}:{wanted.kind}:{wanted.source}".encode())
                name, count = f"id={digest.hexdigest()[:8]}", count + 1
            taken.add(name)
            raw["id"] = name.removeprefix("id=")
        return self._dumped(raw)

    def _source(self, source: str, like: str, at: int) -> str:
        """Return a source as the JSON has that of its cell: a text, or a list of lines."""
        if like.startswith('"'):
            return self._string(source)
        lines = list(map(self._string, split_lines(source)))
        if not self._pretty or not lines:
            return f"[{', '.join(lines)}]"
        first = re.match(r"\[\n([ \t]*)", like)
        outer = self._indent_at(at)
        inner = first[1] if first else outer + self._unit
        gap = f"\n{inner}"
        return f"[{gap}{f',{gap}'.join(lines)}\n{outer}]"

    def _dumped(self, raw: dict[str, Any]) -> str:
        ordered = dict(sorted(raw.items()))
        if not self._pretty:
            return json.dumps(ordered, ensure_ascii=self._ascii)
        text = json.dumps(ordered, ensure_ascii=self._ascii, indent=self._unit)
        return text.replace("\n", f"\n{self._indent}")

    def _string(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._ascii)

    def _indent_at(self, at: int) -> str:
        blanks = _BLANKS.match(self._json, self._json.rfind("\n", 0, at) + 1)
        return blanks[0] if blanks else ""


def _fresh(cell: NotebookCell) -> dict[str, Any]:
    """Return what a new cell has, or one of another kind."""
    raw: dict[str, Any] = {"cell_type": cell.kind, "source": split_lines(cell.source)}
    return raw | ({"execution_count": None, "outputs": []} if cell.kind == "code" else {})
