"""The layout at the foot of the terminal: live text, queue, input line, menus, status."""

from collections.abc import Callable
from typing import Any

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

MOST_LINE_ROWS = 12
"""The most rows of the input line; a longer text scrolls."""

STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "hint": "fg:ansibrightblack",
        "status": "fg:ansibrightblack noreverse",
        "queue": "fg:ansicyan",
        "completion-menu": "bg:default fg:default noreverse",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "bg:default fg:default reverse",
        "completion-menu.meta.completion": "bg:default fg:ansibrightblack",
        "completion-menu.meta.completion.current": "bg:default fg:ansibrightblack",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:ansibrightblack",
    }
)
"""Uses the colours of the terminal's own scheme, so that dark and light both look right."""


class Foot:
    """Builds `layout` for an application; the callables return what is shown at the moment."""

    def __init__(
        self,
        buffer: Buffer,
        live: Callable[[], ANSI | None],
        queued: Callable[[], StyleAndTextTuples],
        prefix: Callable[[int, int], StyleAndTextTuples],
        hint: Callable[[], str],
        status: Callable[[], StyleAndTextTuples],
    ) -> None:
        search = SearchToolbar(ignore_case=True)
        hinted = ConditionalProcessor(
            AfterInput(lambda: [("class:hint", hint())]), Condition(lambda: not buffer.text)
        )
        line = Window(
            BufferControl(
                buffer,
                input_processors=[hinted],
                search_buffer_control=search.control,
                preview_search=True,
            ),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prefix,
            height=Dimension(min=1, max=MOST_LINE_ROWS),
        )
        parts = [
            _shown(live),
            _shown(queued),
            line,
            CompletionsMenu(max_height=8),
            search,
            _shown(status, "class:status"),
            Window(height=Dimension(min=0, preferred=0)),
        ]
        self.layout = Layout(HSplit(parts), focused_element=line)


def _shown(text: Callable[[], Any], style: str = "") -> ConditionalContainer:
    """Return a container that shows a text, and nothing if it is empty."""

    def formatted() -> AnyFormattedText:
        return text()

    control = FormattedTextControl(formatted)
    window = Window(control, dont_extend_height=True, style=style)
    return ConditionalContainer(window, Condition(lambda: bool(text())))
