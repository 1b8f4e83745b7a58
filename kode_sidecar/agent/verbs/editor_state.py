"""Tell the model what of the editor's state a verb is about: selection, file, problems, changes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kode_sidecar.agent.context.reminders import editor_note
from kode_sidecar.core.domain.message import ResourceBlock
from kode_sidecar.core.protocol.documents import EditorContextParams
from kode_sidecar.core.protocol.language import EditorDiagnostic
from kode_sidecar.core.protocol.process import VerbContext
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import cut_line, number_lines, one_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_MAX_LINES = 400
_MAX_LINE_CHARS = 2_000
_MAX_PROBLEMS = 20
_MAX_PROBLEM_CHARS = 500
_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_CHANGES = (
    "[The changes meant are those staged in Git; if none are, those of the working tree. Look at "
    "them with the tool `changes` if you have it, else with `git diff --staged`.]"
)


@dataclass(frozen=True)
class EditorState:
    """What the user looks at (`looked_at`), in the texts and by the servers of the editor."""

    workspace: Workspace
    language: LanguageServers
    looked_at: Callable[[], EditorContextParams]

    async def reported(
        self, wanted: Collection[VerbContext], attached: Sequence[ResourceBlock]
    ) -> list[str]:
        """Return a paragraph for each thing that is wanted and there.

        What the user attached to the prompt takes the place of selection, symbol and file.
        """
        looked = self.looked_at()
        parts = [] if attached else self._place(wanted, looked)
        if "diagnostics" in wanted and self.language.serves("diagnostics"):
            near = attached[0].start_line if attached else _first_line(looked)
            uri = attached[0].uri if attached else looked.uri
            parts += await self._problems(uri, near or 1)
        if "changes" in wanted and not attached and not _selected(looked):
            parts.append(_CHANGES)
        return parts

    def _place(self, wanted: Collection[VerbContext], looked: EditorContextParams) -> list[str]:
        """Return selection, symbol or file: the first of these that is wanted and there."""
        note = editor_note(looked, self.workspace)
        if note is None:
            return []
        if "selection" in wanted and note.lines is not None:
            first, last = note.lines
            try:
                text = self.workspace.document(str(looked.uri), purpose="read").lf_text
            except KodeError:
                return []
            lines = split_lines(text)[first - 1 : last]
            shown = [cut_line(line.rstrip("\n"), _MAX_LINE_CHARS) for line in lines[:_MAX_LINES]]
            head = f"The user's selection, {note.path}, lines {first} to {last}:"
            more = f"\n[{len(lines) - _MAX_LINES} more lines]" if len(lines) > _MAX_LINES else ""
            return [f"{head}\n{without_controls(number_lines(shown, first))}{more}"]
        if "symbol" in wanted and looked.selection is not None:
            line = _first_line(looked)
            return [f"This is about the symbol at the cursor: {note.path}, line {line}."]
        return [f"This is about the file {note.path}."] if "file" in wanted else []

    async def _problems(self, uri: str | None, near: int) -> list[str]:
        if uri is None:
            return []
        try:
            location = self.workspace.locate(uri)
            found = await self.language.diagnostics(uri)
        except KodeError:
            return []  # the verb works without: the model can ask by its tool
        problems = [one for file in found.files for one in file.diagnostics]
        if not problems:
            return [f"The editor reports no problems in {location.display}."]
        problems.sort(key=lambda one: (abs(one.range.start.line + 1 - near), one.severity))
        lines = [_problem(location.display, one) for one in problems[:_MAX_PROBLEMS]]
        more = len(problems) - _MAX_PROBLEMS
        lines += [f"- and {more} more"] if more > 0 else []
        return [
            "Problems that the editor reports, nearest to the cursor first:\n" + "\n".join(lines)
        ]


def _selected(looked: EditorContextParams) -> bool:
    return looked.selection is not None and looked.selection.start != looked.selection.end


def _first_line(looked: EditorContextParams) -> int | None:
    return None if looked.selection is None else looked.selection.start.line + 1


def _problem(path: str, one: EditorDiagnostic) -> str:
    kind = _SEVERITIES.get(one.severity, "error")
    by = f" ({one_line(f'{one.source} {one.code}')})" if one.source or one.code else ""
    text = cut_line(one_line(one.message), _MAX_PROBLEM_CHARS)
    return f"- {path}:{one.range.start.line + 1}: {kind}: {text}{by}"
