"""Write reminders for the model: the editor's state, the prompt's options, changed files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.core.protocol.documents import EditorContextParams
from kode_sidecar.core.protocol.turn import TurnOptions
from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines, unified_diff
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import clipped, one_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.freshness import Loss
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_FILES = 20
MAX_DIFF_CHARS = 4_000
MAX_ALL_DIFF_CHARS = 12_000
MAX_RANGES = 20
_MAX_TITLE = 60

_HEAD = (
    "Files that you have read were changed since, by the user or by a program, not by you. What "
    "you know of them is out of date there: read again what you rely on.\n"
)


@dataclass(frozen=True)
class EditorNote:
    """What the user looks at: a displayed path, and the first and last selected line, from 1."""

    path: str
    lines: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The text of the reminder."""
        return f"The user looks at {self.path} in the editor{self._selected()}."

    @property
    def meta(self) -> dict[str, Any]:
        """The note as fields of the reminder's stored message."""
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
    """Return what the user looks at; None outside the roots, or for a file with credentials."""
    if params.uri is None or not params.uri.lower().startswith("file:"):
        return None
    try:
        location = workspace.locate(params.uri)
    except KodeError:
        return None
    if location.is_secret:
        return None
    return EditorNote(without_controls(location.display), _selected_lines(params))


def _selected_lines(params: EditorContextParams) -> tuple[int, int] | None:
    span = params.selection
    if span is None or span.start == span.end:
        return None
    start, end = sorted((span.start, span.end), key=lambda at: (at.line, at.character))
    # A selection of whole lines ends at the start of the next line.
    last = end.line - 1 if end.character == 0 else end.line
    return max(start.line, 0) + 1, max(start.line, last, 0) + 1


def koding_note(prompts: PromptFiles, options: TurnOptions) -> str | None:
    """Return the reminder of the prompt's options (C7); None if they need none.

    Raises KodeError `ConfigInvalid` when a prompt file is missing or broken.
    """
    reported: list[str] = []
    if options.koding:
        reported.append(prompts.read("koding"))
    context = without_controls(options.koding_context or "").strip()
    if context:
        reported.append(prompts.read("koding_context", {"context": context}))
    return "\n\n".join(reported) or None


@dataclass(frozen=True)
class ReportedChange:
    """A changed file by its displayed path, and each step from one text (LF) to the next.

    `by` are the titles of other sessions that changed it.
    """

    path: str
    steps: Sequence[tuple[str, str]] = ()
    lost: Loss = ""
    by: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The path, with the other conversations that changed the file."""
        if not self.by:
            return self.path
        return f"{self.path} (in {', '.join(map(_conversation, self.by))} with the same user)"


def elsewhere_note(files: Mapping[str, str]) -> str | None:
    """Return the reminder of unread files that other sessions changed; values are titles."""
    if not files:
        return None
    lines = [f"- {path}, in {_conversation(by)}" for path, by in files.items()]
    if len(lines) > MAX_FILES:
        lines[MAX_FILES:] = [f"- and {len(lines) - MAX_FILES} more files."]
    head = "Other conversations with the same user have changed files that you have not read:\n"
    return without_controls(head + "\n".join(lines))


def _conversation(title: str) -> str:
    shown = clipped(one_line(title), _MAX_TITLE)
    return f"the conversation “{shown}”" if shown else "another conversation"


def file_changes_note(changes: Sequence[ReportedChange]) -> str:
    """Return the reminder: a short diff, or the line numbers. `changes` is not empty."""
    room = MAX_ALL_DIFF_CHARS
    parts: list[str] = []
    for change in changes[:MAX_FILES]:
        part = _reported(change, min(room, MAX_DIFF_CHARS))
        room -= len(part)
        parts.append(part)
    if len(changes) > MAX_FILES:
        parts.append(f"- and {len(changes) - MAX_FILES} more files.")
    return without_controls(_HEAD + "\n".join(parts))


def _reported(change: ReportedChange, room: int) -> str:
    if change.lost == "deleted":
        return f"- {change.name}: it does not exist any more."
    if change.lost:
        return f"- {change.name}: it cannot be read any more."
    if any(find_secret(text) for step in change.steps for text in step):
        return f"- {change.name}: changed; it holds credentials and is not shown."
    diff = "".join(_diffs(change))
    if len(diff) <= room:
        fence = "```" if "```" not in diff else "~~~~"
        return f"- {change.name}:\n{fence}diff\n{diff}{fence}"
    old, new = change.steps[-1]
    return f"- {change.name}: {_ranges(diff_lines(split_lines(old), split_lines(new)))}"


def _diffs(change: ReportedChange) -> Iterator[str]:
    for old, new in change.steps:
        yield unified_diff(split_lines(old), split_lines(new), change.path)


def _ranges(runs: Sequence[Run]) -> str:
    """Return the changed places, in line numbers of the new text."""
    names = [_range(b0, b1) for _, _, b0, b1 in runs[:MAX_RANGES]]
    more = f" and {len(runs) - MAX_RANGES} more places" if len(runs) > MAX_RANGES else ""
    return f"changed, as it is now, at {', '.join(names)}{more}."


def _range(start: int, end: int) -> str:
    if start == end:
        return f"line {start + 1} (lines before it are gone)"
    return f"line {start + 1}" if end == start + 1 else f"lines {start + 1}-{end}"
