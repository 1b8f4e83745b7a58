"""`read_file`: return numbered lines of one file, as this session sees it."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import CONTROL, number_lines, without_controls
from kode_sidecar.core.text.tool_arguments import usual_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.workspace import OnShown, TextView, Workspace

MAX_LINES = 2_000
MAX_CHARS = 50_000
MAX_LINE_CHARS = 2_000


class ReadFileParams(Struct, forbid_unknown_fields=True):
    """Read a text file of the project. Lines come numbered from 1, behind a tab.

    The first line says whether it is the editor's text or the file on disk, and names its
    `base_rev`. At most 2,000 lines come at once: go on with `start`, in a long line with `column`.
    """

    path: Annotated[str, Meta(description="File, relative to the open folder")]
    start: Annotated[int, Meta(ge=1, description="First line, from 1")] | None = None
    end: Annotated[int, Meta(ge=1, description="Last line, inclusive")] | None = None
    column: Annotated[int, Meta(ge=1, description="First character of each line")] = 1


def read_file_tool(
    workspace: Workspace, files: SessionFileView | None = None, on_shown: OnShown | None = None
) -> Tool:
    """Make the tool. `files` includes the session's proposals; `on_shown` gets the shown lines."""
    seen = files or workspace

    async def run(params: ReadFileParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        document, params = await _load(seen, params)
        shown = seen.view(document)
        name = workspace.display_path(document.key)
        lines = split_lines(shown.text_lf)
        start, end = _range(params, len(lines), name)
        body, last = _body(lines, start, end, params.column)
        rev = text_rev(shown.text_lf)
        if on_shown is not None and params.column == 1:
            for first, final in _whole_lines(lines, start, last):
                on_shown(document, shown.text_lf, first, final)
        header = _header(document, name, shown, lines, (start, last), rev)
        others = workspace.namesakes(params.path, document)
        namesakes = f"[the same name has: {', '.join(others)}]" if others else ""
        cut = _next_part(lines[start - 1 : last], params.column)
        parts = (header, namesakes, body, cut, _rest(last, end))
        content = "\n".join(part for part in parts if part)
        summary = f"{name} {start}-{last}" if lines else f"{name} (empty)"
        return ToolOutcome(ok=True, summary=f"Read {summary}", content=content)

    return Tool("read_file", ReadFileParams, run, read_only=True, kind="read", card=_card)


async def _load(
    files: SessionFileView | Workspace, params: ReadFileParams
) -> tuple[Document, ReadFileParams]:
    """Return the document; a path that is none may have blanks around it, or end with a line."""
    try:
        return await files.load(params.path, "read"), params
    except KodeError as error:
        named = usual_path(params.path)
        if named is None or error.code not in ("NotFound", "PathOutsideRoots"):
            raise
        path, first, last = named
        start, end = params.start or first, params.end or last
        read = replace(params, path=path, start=start, end=end)
        return await files.load(path, "read"), read


def _card(params: ReadFileParams) -> CallCard:
    first, last = params.start, params.end
    if first is None and last is None:
        return CallCard(f"Read {params.path}", (CallPlace(params.path),))
    lines = f"from line {first}" if last is None else f"lines {first or 1}-{last}"
    return CallCard(f"Read {params.path}, {lines}", (CallPlace(params.path, first or 1, last),))


def _range(params: ReadFileParams, count: int, name: str) -> tuple[int, int]:
    """Return the requested lines; (1, 0) for an empty file."""
    start = params.start or 1
    end = min(params.end or count, count)
    if params.end is not None and params.end < start:
        raise KodeError("InvalidArguments", f"end ({params.end}) is before start ({start}).")
    if start > max(count, 1):
        raise KodeError(
            "InvalidArguments", f"{name} has {count} lines, so there is no line {start}."
        )
    return start, end


def _body(lines: list[str], start: int, end: int, column: int) -> tuple[str, int]:
    """Return the numbered lines that fit, and the last line number."""
    shown: list[str] = []
    room = MAX_CHARS
    asked = lines[start - 1 : min(end, start - 1 + MAX_LINES)]
    # One search in all lines is faster than one in each.
    harmless = CONTROL.search("".join(asked)) is None
    for line in asked:
        text = line.removesuffix("\n")
        if not harmless:
            text = without_controls(text)
        if column > 1 or len(text) > MAX_LINE_CHARS:
            text = _part(text, column - 1)
        room -= len(text) + 7
        if room < 0:
            break
        shown.append(text)
    return number_lines(shown, start), start + len(shown) - 1


def _part(line: str, at: int) -> str:
    """Return what is shown of a line from the offset `at` on."""
    end = at + MAX_LINE_CHARS
    rest = f" [{len(line) - end} characters cut]" if end < len(line) else ""
    return line[at:end] + rest


def _next_part(lines: Sequence[str], column: int) -> str:
    """Say how to read on in the lines that were cut."""
    next_column = column + MAX_LINE_CHARS
    if all(len(line.removesuffix("\n")) < next_column for line in lines):
        return ""
    return f"[lines were cut; next: column={next_column}]"


def _whole_lines(lines: Sequence[str], start: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of uncut lines from `start` to `last`; (1, 0) for an empty file."""
    for number in range(start, last + 1):
        if len(lines[number - 1]) > MAX_LINE_CHARS + 1:
            yield start, number - 1
            start = number + 1
    yield start, last


def _header(
    document: Document,
    name: str,
    shown: TextView,
    lines: list[str],
    span: tuple[int, int],
    rev: str,
) -> str:
    where = f"lines {span[0]}-{span[1]} of {len(lines)}" if lines else "the file is empty"
    facts = [name, where, f"base_rev {rev[:12]}", shown.note]
    if document.encoding != "utf-8" or document.bom:
        facts.append(document.encoding + (" with BOM" if document.bom else ""))
    if document.eol != "\n":
        facts.append("line ends " + ("CRLF" if document.eol == "\r\n" else "CR"))
    if lines and not lines[-1].endswith("\n"):
        facts.append("no newline at the end")
    asked = "".join(lines[span[0] - 1 : span[1]])
    removed = len(asked) - len(without_controls(asked))
    if removed:
        facts.append(f"{removed} control characters not shown")
    return "[" + " · ".join(facts) + "]"


def _rest(last: int, end: int) -> str:
    return f"[cut after line {last}; next: start={last + 1}]" if last < end else ""
