"""What the user looks at in the editor, as far as the model is told."""

from dataclasses import dataclass
from typing import Any

from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.workspace.workspace import Workspace, is_secret_place


@dataclass(frozen=True)
class EditorNote:
    """A file by its name for the model, and the first and last selected line, from 1 on."""

    path: str
    lines: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The reminder."""
        return f"The user looks at {self.path} in the editor{self._selected()}."

    @property
    def meta(self) -> dict[str, Any]:
        """The same for the record of the conversation."""
        if self.lines is None:
            return {"path": self.path}
        return {"path": self.path, "startLine": self.lines[0], "endLine": self.lines[1]}

    def _selected(self) -> str:
        if self.lines is None:
            return ""
        first, last = self.lines
        return (
            f"; line {first} is selected"
            if first == last
            else (f"; lines {first} to {last} are selected")
        )


def editor_note(params: EditorContextParams, workspace: Workspace) -> EditorNote | None:
    """What there is to tell; None for what is no file inside the roots, or holds credentials."""
    if params.uri is None or not params.uri.lower().startswith("file:"):
        return None
    try:
        location = workspace.locate(params.uri)
    except KodeError:
        return None
    if is_secret_place(location):
        return None
    return EditorNote(without_controls(location.display), _selected_lines(params))


def _selected_lines(params: EditorContextParams) -> tuple[int, int] | None:
    span = params.selection
    if span is None or span.start == span.end:
        return None
    start, end = sorted((span.start, span.end), key=lambda at: (at.line, at.character))
    # A selection of whole lines ends before the first character of the line after them.
    last = end.line - 1 if end.character == 0 else end.line
    return max(start.line, 0) + 1, max(start.line, last, 0) + 1
