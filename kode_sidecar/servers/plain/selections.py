"""Prompt blocks of what the user has selected, or of the definition around the cursor."""

import re
from collections.abc import Sequence

from kode_sidecar.core.domain.change_set import Range
from kode_sidecar.core.domain.message import PromptBlock, ResourceBlock, TextBlock
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.infrastructure.workspace.document import Document

_DEFINITION = re.compile(
    r"\s*(?:[\w<>\[\],]+ )*(?:def|class|func|function|fn|impl|struct|interface|enum|sub|method|"
    r"public|private|protected|static|export|module|trait)\b"
)
_AROUND = 15


def selection(document: Document, span: Range) -> PromptBlock:
    """Return the selected lines as a block; without a selection, the definition around a line."""
    lines = document.lf_lines
    first, last = span.start.line, span.end.line
    if span.end.character == 0 and last > first:
        last -= 1
    if span.start == span.end:
        first, last = _around(lines, first)
    last = max(min(last, len(lines) - 1), 0)
    first = max(min(first, last), 0)
    return ResourceBlock(
        uri=document.uri,
        text="".join(lines[first : last + 1]),
        language_id=document.language_id or None,
        start_line=first + 1,
        end_line=last + 1,
    )


def text_block(text: str) -> PromptBlock:
    """Return a text of the user's as a block."""
    return TextBlock(text=text)


def _around(lines: Sequence[str], line: int) -> tuple[int, int]:
    """Return the first and last line of the definition around a line, else of its surroundings."""
    top = min(line, len(lines) - 1)
    while top >= 0 and not _DEFINITION.match(lines[top]):
        top -= 1
    if top < 0:
        return line - _AROUND, line + _AROUND
    end = top + 1
    while end < len(lines) and (
        not lines[end].strip() or _indent(lines[end]) > _indent(lines[top])
    ):
        end += 1
    if end < len(lines) and lines[end].strip() in ("}", "end", "};", ")"):
        end += 1
    return (top, end - 1) if end > line else (line - _AROUND, line + _AROUND)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def shown_prompt(text: str) -> str:
    """Return a prompt as a chat document shows it: headings in it are no headings there."""
    return "".join(f"\\{line}" if line.startswith("#") else line for line in split_lines(text))
