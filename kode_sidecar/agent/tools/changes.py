"""`changes`: what changed in the project, as numbered diffs; or the whole text of some files."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from kode_sidecar.agent.tools.changed_files import (
    ChangedFiles,
    ChangeReader,
    ChangeScope,
    DiffedFile,
    Wanted,
    text_hunks,
)
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import number_lines, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_CHARS = 18_000
_MAX_FILE_CHARS = 12_000
_MAX_NAMED = 200

Subject = Literal["working_tree", "staged", "branch", "range", "file", "pending"]


class ChangesParams(Struct, forbid_unknown_fields=True):
    """Show what changed, as diffs with the line numbers of the new text.

    Unsaved text in the editor counts. Binary, generated and vendored files are only named. When
    not all files fit, the last line says with which `first` to go on.
    """

    of: Annotated[
        Subject,
        Meta(
            description="working_tree: all since the last commit; staged: what Git would commit; "
            "branch: all since the base; range: the commits of `range`; file: the text of `paths`; "
            "pending: your own proposals that wait"
        ),
    ] = "working_tree"
    range: Annotated[
        str,
        Meta(
            max_length=300,
            description="A commit, A..B or A...B; for branch its base, main or master if empty",
        ),
    ] = ""
    paths: Annotated[list[str], Meta(description="Only these files or folders; [] for all")] = []
    start_line: Annotated[int, Meta(ge=1, description="Of `file`: first line")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="Of `file`: last line, inclusive")] | None = (
        None
    )
    first: Annotated[int, Meta(ge=1, description="Number of the first file to show")] = 1


class ChangesView:
    """The changes as one session sees them."""

    def __init__(self, workspace: Workspace, reader: ChangeReader, files: SessionFileView) -> None:
        self._workspace, self._reader, self._files = workspace, reader, files
        self._known: tuple[ChangesParams, ChangedFiles] | None = None

    def knowing(self, params: ChangesParams, changed: ChangedFiles) -> "ChangesView":
        """Return a view that has listed these changes: Git is not asked again for some of them."""
        view = ChangesView(self._workspace, self._reader, self._files)
        view._known = _without_paths(params), changed
        return view

    async def list(self, params: ChangesParams) -> ChangedFiles:
        """Return the files that changed. Raises KodeError."""
        if self._known is not None and self._known[0] == _without_paths(params):
            by_path = {file.path: file for file in self._known[1].files}
            if params.paths and by_path.keys() >= set(params.paths):
                return ChangedFiles([by_path[path] for path in sorted(set(params.paths))])
        match params.of:
            case "file":
                return self._whole_files(params)
            case "pending":
                return self._pending(params)
            case scope:
                return await self._reader.list(_wanted(scope, params))

    async def diffs(self, params: ChangesParams, files: Sequence[DiffedFile]) -> Sequence[str]:
        """Return the diff of each file. Raises KodeError."""
        if params.of in ("file", "pending"):
            return [file.hunks or "" for file in files]
        return await self._reader.diffs(_wanted(params.of, params), files)

    def text_of(self, path: str) -> str:
        """Return a file's text as the session sees it. Raises KodeError."""
        return self._files.view(self._files.document(path, purpose="read")).text_lf

    def name_of(self, path: str) -> str:
        """Return how the model knows a file, however it spelled the path. Raises KodeError."""
        return self._workspace.locate(path).display

    def _whole_files(self, params: ChangesParams) -> ChangedFiles:
        if not params.paths:
            raise KodeError("InvalidArguments", "Name the files in `paths`.")
        found = ChangedFiles()
        for path in dict.fromkeys(params.paths):
            lines = split_lines(self.text_of(path))
            first = params.start_line or 1
            some = lines[first - 1 : params.end_line]
            shown = number_lines([line.rstrip("\n") for line in some], first)
            location = self._workspace.locate(path)
            remark = f"lines {first}-{first - 1 + len(some)} of {len(lines)}"
            found.files.append(
                DiffedFile(
                    location.root,
                    location.below,
                    location.display,
                    len(some),
                    0,
                    remark=remark,
                    hunks=shown,
                )
            )
        return found

    def _pending(self, params: ChangesParams) -> ChangedFiles:
        found = ChangedFiles()
        wanted = [self._workspace.locate(path).real for path in params.paths]
        for uri in self._files.pending_paths():
            document = self._files.document(uri, purpose="read")
            text = self._files.view(document).text_lf
            try:
                there = self._workspace.document(uri, purpose="read")
                before = self._workspace.view(there).text_lf
            except KodeError:
                before = ""  # a file that is only proposed
            location = self._workspace.locate(uri)
            if wanted and not any(location.real.is_relative_to(one) for one in wanted):
                continue
            hunks = text_hunks(before, text)
            marks = [line[6:7] for line in hunks.split("\n")]
            found.files.append(
                DiffedFile(
                    location.root,
                    location.below,
                    location.display,
                    marks.count("+"),
                    marks.count("-"),
                    remark="proposed by you",
                    hunks=hunks,
                )
            )
        return found


def changes_tool(view: ChangesView) -> Tool:
    """Make the tool of one session, or of a reader that sees what the session sees."""

    async def run(params: ChangesParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        found = await view.list(params)
        ahead = found.files[params.first - 1 :]
        shown = await _shown(view, params, ahead)
        head = summary_of(found)
        parts = [head, *left_out_lines(found)]
        if params.first == 1 and len(shown) < len(ahead):
            parts += _names(found.files)
        parts += shown
        if len(shown) < len(ahead):
            parts.append(f"[cut; go on with first={params.first + len(shown)}]")
        content = without_controls("\n\n".join(parts))
        return ToolOutcome(ok=True, summary=without_controls(head), content=content)

    return Tool("changes", ChangesParams, run, read_only=True, kind="read", card=_card)


async def _shown(
    view: ChangesView, params: ChangesParams, files: Sequence[DiffedFile]
) -> Sequence[str]:
    """Return the diffs of as many files as fit, one at least."""
    shown: list[str] = []
    room = MAX_CHARS
    at = 0
    while at < len(files) and room > 0:
        some = files[at : at + 20]
        at += len(some)
        for file, hunks in zip(some, await view.diffs(params, some), strict=True):
            text = f"{_heading(file)}\n{_cut(hunks)}"
            if shown and len(text) > room:
                return shown
            shown.append(text)
            room -= len(text)
    return shown


def _cut(hunks: str) -> str:
    if len(hunks) <= _MAX_FILE_CHARS:
        return hunks
    end = hunks.rfind("\n", 0, _MAX_FILE_CHARS)
    kept = hunks[: end if end > 0 else _MAX_FILE_CHARS]
    left = hunks.count("\n") - kept.count("\n")
    return f"{kept}\n[{left:,} more lines of this diff; read_file shows the text]"


def summary_of(found: ChangedFiles) -> str:
    """Return how much changed, in a line."""
    count = len(found.files)
    added, removed = (sum(getattr(f, n) for f in found.files) for n in ("added", "removed"))
    if not count:
        return "No changes" if not found.left_out else "No changes to show"
    return f"{count} file{'' if count == 1 else 's'}, +{added} −{removed}"


def left_out_lines(found: ChangedFiles) -> Sequence[str]:
    """Return a line for each reason why files are not shown."""
    lines: list[str] = []
    for why, names in found.left_out.items():
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        lines.append(f"[not shown, {why}: {', '.join(names[:20])}{more}]")
    return lines


def _names(files: Sequence[DiffedFile]) -> Sequence[str]:
    named = [f"{number}. {_heading(file)}" for number, file in enumerate(files, 1)]
    rest = [f"… {len(named) - _MAX_NAMED} more files"] if len(named) > _MAX_NAMED else []
    return ["\n".join([*named[:_MAX_NAMED], *rest])]


def _heading(file: DiffedFile) -> str:
    moved = f", renamed from {file.old_path}" if file.old_path else ""
    remark = f", {file.remark}" if file.remark else ""
    return f"## {file.path} (+{file.added} −{file.removed}{moved}{remark})"


def _without_paths(params: ChangesParams) -> ChangesParams:
    return structs.replace(params, paths=[], first=1)


def _wanted(scope: ChangeScope, params: ChangesParams) -> Wanted:
    return Wanted(scope, params.range, tuple(params.paths))


def _card(params: ChangesParams) -> CallCard:
    named = f" {params.range}" if params.range else ""
    return CallCard(f"Changes: {params.of.replace('_', ' ')}{named}")
