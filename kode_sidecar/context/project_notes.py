"""`AGENTS.md`: what a project tells assistants, read only where the user trusts it (C12, W12)."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.workspace.workspace import Root, Workspace

FILE = "AGENTS.md"
MAX_CHARS = 32_000
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ProjectNote:
    """The notes of one folder. `text` is bounded and free of control characters."""

    root: str
    text: str


class ProjectNotes:
    """Reads them when a turn starts; a file that has not changed is not read again.

    `trusted` is the editor's word: without it nothing is even looked for. What the guard refuses
    (a link that leads out, credentials) counts as absent.
    """

    def __init__(self, workspace: Workspace, trusted: Callable[[], bool]) -> None:
        self._workspace = workspace
        self._trusted = trusted
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def read(self) -> tuple[ProjectNote, ...]:
        """The notes of all roots that have some, in the order of the roots."""
        if not self._trusted():
            return ()
        found = ((root, self._text_of(root)) for root in self._workspace.roots)
        return tuple(ProjectNote(str(root.path), text) for root, text in found if text)

    def _text_of(self, root: Root) -> str:
        path = root.path / FILE
        try:
            status = os.stat(path)
            state = (status.st_mtime_ns, status.st_size)
            if status.st_size > _MAX_BYTES:
                return ""
            document = self._workspace.open_document(self._workspace.locate(str(path)))
            if document is None and path in self._known and self._known[path][0] == state:
                return self._known[path][1]
            text = _bounded(self._workspace.document(str(path), purpose="read").lf_text)
        except (OSError, KodeError):
            return ""
        if document is None:
            self._known[path] = (state, text)
        return text


def _bounded(text: str) -> str:
    text = without_controls(text).strip()
    if len(text) <= MAX_CHARS:
        return text
    return f"{text[:MAX_CHARS]}\n[cut after {MAX_CHARS} of {len(text)} characters]"
