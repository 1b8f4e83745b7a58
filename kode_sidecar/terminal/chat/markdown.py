"""Shows Markdown on a terminal: cuts the stream into blocks, which rich draws.

It uses the sixteen colours of the terminal's own scheme, so that dark and light both look right.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, Operator, String, Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from kode_sidecar.core.text.shown_text import with_code_points, without_controls

WIDEST = 110
"""Longer lines are hard to read."""
_LONG_BLOCK = 40
"""The most lines of a growing block before it is cut."""
# What looks like a tag is text: `Vec<T>`.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

_CODE_COLOURS = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(color="bright_black", italic=True),
        Keyword: Style(color="magenta"),
        Operator.Word: Style(color="magenta"),
        Name.Builtin: Style(color="cyan"),
        Name.Function: Style(color="blue"),
        Name.Class: Style(color="blue", bold=True),
        Name.Decorator: Style(color="cyan"),
        Name.Tag: Style(color="blue"),
        Name.Attribute: Style(color="cyan"),
        String: Style(color="green"),
        Number: Style(color="cyan"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Error: Style(),
    }
)


_STYLES = Theme(
    {
        "markdown.code": "cyan",
        "markdown.link": "blue",
        "markdown.link_url": "blue underline",
        "markdown.block_quote": "bright_black",
        "markdown.table.header": "bold",
        "markdown.table.border": "bright_black",
        "markdown.item.number": "bold",
    }
)


class MarkdownStream:
    """Growing Markdown. `rest` is what is not taken yet."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, added: str) -> None:
        """Append text."""
        self.rest += added

    def take(self) -> str:
        """Remove and return the blocks that no later text can change; "" if there are none.

        A long list or fence is taken in parts.
        """
        blocks = [b for b in _PARSER.parse(self.rest) if b.level == 0 and b.map and b.nesting >= 0]
        if not blocks:
            return ""
        lines = self.rest.split("\n")
        first, _ = blocks[-1].map or (0, 0)
        if len(lines) - first > _LONG_BLOCK:
            if blocks[-1].type == "fence":
                return self._cut_fence(lines, first)
            if blocks[-1].type.endswith("list_open"):
                first = _last_item(self.rest, first)
        if not any(lines[:first]):
            return ""
        self.rest = "\n".join(lines[first:])
        return "\n".join(lines[:first])

    def _cut_fence(self, lines: Sequence[str], first: int) -> str:
        """Take all but the last line of a fence, and reopen the fence for later lines."""
        opening = _FENCE.match(lines[first])
        if opening is None or _ends(lines[first + 1 :], opening[1]):
            return ""
        self.rest = "\n".join([lines[first], lines[-1]])
        return "\n".join([*lines[:-1], opening[1]])


def _ends(lines: Sequence[str], fence: str) -> bool:
    return any(line.strip().startswith(fence) and not line.strip(" " + fence[0]) for line in lines)


def _last_item(text: str, otherwise: int) -> int:
    items = [b for b in _PARSER.parse(text) if b.type == "list_item_open" and b.level == 1]
    return items[-1].map[0] if len(items) > 1 and items[-1].map else otherwise


class _Heading(Heading):
    """A heading at the left, without a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        style = {"h1": "bold underline", "h2": "bold"}.get(self.tag, "bold italic")
        yield Text(self.text.plain, style=style)


class _CodeBlock(CodeBlock):
    """An indented code block, on the terminal's own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        code = Syntax(
            str(self.text).rstrip(),
            self.lexer_name,
            theme=_CODE_COLOURS,
            word_wrap=True,
            background_color="default",
        )
        yield Padding(code, (0, 0, 0, 2))


class _Markdown(Markdown):
    def __init__(self, markup: str) -> None:
        super().__init__(markup, hyperlinks=False)
        self.parsed = _PARSER.parse(markup)

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }


def rendered(markdown: str, width: int, *, color: bool = True) -> str:
    """Return Markdown as lines for a terminal of `width` columns, with styles.

    No part of the text can move the cursor, be hidden, or link to a hidden target (W13).
    """
    console = Console(
        file=io.StringIO(),
        width=max(20, min(width, WIDEST)),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        theme=_STYLES,
    )
    segments = console.render(_Markdown(markdown))
    lines = Segment.split_lines(segments)
    return "\n".join("".join(_styled(line, color=color)).rstrip() for line in lines).strip("\n")


def wrapped(text: str, width: int) -> list[str]:
    """Return plain text as lines of at most `width` columns."""
    console = Console(file=io.StringIO(), width=max(10, width), legacy_windows=False)
    return [line.plain.rstrip() for line in Text(text).wrap(console, max(10, width))]


def _styled(line: Sequence[Segment], *, color: bool) -> Iterator[str]:
    for text, style, _ in line:
        # Only after parsing, because Markdown can also write characters as numbers.
        shown = with_code_points(without_controls(text))
        if style is None or (not shown.strip() and not (style.underline or style.reverse)):
            yield shown
        else:
            kept = style if color else style.without_color
            yield kept.render(shown, color_system=ColorSystem.STANDARD)
