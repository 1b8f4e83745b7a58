"""Read the notes that a project has for assistants: those of its roots, and of folders below.

The notes of a root are part of the system prompt. Those of a folder below come with the result of
the tool that first touches it, so that what a host has cached of the prompt stays.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.core.kernel.contracts import CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import without_controls, without_hidden
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

NOTE_FILES = (
    *("AGENTS.override.md", "AGENTS.md"),
    *("CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"),
)
"""The first of these in a folder has its notes: its own, or else those for one other assistant."""
REVIEW_FILE = "REVIEW.md"
"""What matters in reviews of the project, for the agents that review."""
MAX_CHARS = 32_000
MAX_CHARS_BELOW = 8_000
"""Of a folder below a root: they share the room of a result."""
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ProjectNote:
    """The notes of one folder. `text` is bounded and free of control characters."""

    root: str
    text: str
    file: str = "AGENTS.md"

    @property
    def values(self) -> Mapping[str, str]:
        """What the prompt files about notes are filled in with."""
        return {"root": one_line(self.root), "notes": self.text, "file": self.file}


def one_line(text: str) -> str:
    """Return an external name on one line, so that it cannot pose as another line of the prompt."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


class ProjectNotes:
    """Reads notes; an unchanged file is not read again.

    `trusted` says if the editor trusts the workspace: if not, no file is touched. A file that the
    guard refuses (a link that leads out, credentials) counts as absent, and so does an empty one.
    """

    def __init__(
        self, workspace: Workspace, trusted: Callable[[], bool], files: Sequence[str] = NOTE_FILES
    ) -> None:
        self._workspace = workspace
        self._files = files
        self._trusted = trusted
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def read(self) -> tuple[ProjectNote, ...]:
        """Return the notes of all roots that have some, in the order of the roots."""
        if not self._trusted():
            return ()
        roots = [root.path for root in self._workspace.roots]
        found = (self._note_of(root, str(root), MAX_CHARS) for root in roots)
        return tuple([note for note in found if note is not None])

    def on_the_way(self, path: str) -> Iterator[ProjectNote]:
        """Yield the notes of the folders from below the root down to a path, the nearest last."""
        if not self._trusted():
            return
        try:
            place = self._workspace.locate(path)
        except KodeError:
            return  # no file of the project
        folder = place.root.path
        for name in place.below:
            folder /= name
            note = self._note_of(folder, self._workspace.display_path(folder), MAX_CHARS_BELOW)
            if note is not None:
                yield note

    def _note_of(self, folder: Path, shown: str, limit: int) -> ProjectNote | None:
        for file in self._files:
            text = self._text_of(folder / file)
            if text:
                return ProjectNote(shown, _bounded(text, limit), file)
        return None

    def _text_of(self, path: Path) -> str:
        try:
            status = os.stat(path)
            state = (status.st_mtime_ns, status.st_size)
            if status.st_size > _MAX_BYTES:
                return ""
            document = self._workspace.open_document(self._workspace.locate(str(path)))
            if document is None and path in self._known and self._known[path][0] == state:
                return self._known[path][1]
            text = self._workspace.document(str(path), purpose="read").lf_text
        except (OSError, KodeError):
            return ""
        text = without_hidden(without_controls(text)).strip()
        if document is None:
            self._known[path] = (state, text)
        return text


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut after {limit} of {len(text)} characters]"


class NotesOnTheWay:
    """Puts the notes of folders before the result of the tool that first touches them.

    One for each session; `shown` are the messages that its model gets. What stands there is not
    said again, so that notes come once, anew when they have changed, and anew below a summary.
    """

    def __init__(
        self, notes: ProjectNotes, prompts: PromptFiles, shown: Callable[[], Sequence[Message]]
    ) -> None:
        self._notes = notes
        self._prompts = prompts
        self._shown = shown
        self._beside: tuple[str, set[str]] = "", set()

    def around(self, tool: Tool) -> Tool:
        """Return the tool with notes in its results, if its calls name files."""
        card = tool.card
        if card is None:
            return tool

        async def run(params: Any, call: ToolCall) -> ToolOutcome:
            outcome = await tool.run(params, call)
            said = self._new(card(params).places, call) if outcome.ok else ""
            if not said:
                return outcome
            text = outcome.content or outcome.summary
            unchanging = outcome.unchanging or text
            content = f"{said}\n\n{text}"
            return msgspec.structs.replace(outcome, content=content, unchanging=unchanging)

        return replace(tool, run=run)

    def _new(self, places: Sequence[CallPlace], call: ToolCall) -> str:
        """Return the notes for these places that the model was not given yet."""
        if self._beside[0] != call.message_id:
            # Results of the same answer are shown together, once all are in.
            self._beside = call.message_id, set()
        beside = self._beside[1]
        texts: list[str] = []
        for place in places:
            for note in self._notes.on_the_way(place.path):
                values = note.values
                digest = hashlib.sha256(repr(values).encode("utf-8", "replace")).hexdigest()[:12]
                head = f"[notes · {values['root']} · {note.file} · {digest}]"
                if head in beside or self._is_shown(head):
                    continue
                beside.add(head)
                texts.append(f"{head}\n{self._prompts.read('folder_notes', values)}")
        return "\n\n".join(texts)

    def _is_shown(self, head: str) -> bool:
        return any(
            isinstance(block, TextBlock) and head in block.text
            for message in self._shown()
            for result in message.results
            for block in result.content
        )
