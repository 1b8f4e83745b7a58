"""`rename_symbol`: propose a rename by the editor's language server as hunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.tools.editor_lookup import EditorLookup, LineField, PathField, SymbolField
from kode_sidecar.agent.tools.proposals import Proposals, outcome, text_report
from kode_sidecar.core.domain.change_set import Position
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.language import EditorTextEdit, RenamedFile
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf
from kode_sidecar.core.text.text_lines import LineIndex, PositionEncoding
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers, LineMap
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_FILES = 200


class RenameSymbolParams(Struct, forbid_unknown_fields=True):
    """Rename a symbol wherever it is used, by the editor's language server.

    It proposes the edits of all files as hunks, as `propose_edit` does: the user decides. It knows
    the editor's text and nothing of your pending edits: rename first, then go on.
    """

    path: PathField
    line: LineField
    symbol: SymbolField
    new_name: Annotated[str, Meta(min_length=1, max_length=200, description="The name to be")]


@dataclass(frozen=True)
class _Renaming:
    """The rewrite of one file, from edits of the text that the language server saw.

    It may be applied to the model's text, with pending edits, and again later: each edit must
    still find the text it replaces, in a line that has not changed otherwise.
    """

    name: str
    edits: Sequence[EditorTextEdit]
    olds: Sequence[str]
    encoding: PositionEncoding

    def __call__(self, document: Document, text: str) -> str:
        """See `tools.proposals.Rewrite`. Raises KodeError `StaleBase`, `InvalidArguments`."""
        lines = LineMap(text, document.lf_text)
        index = LineIndex(text, self.encoding)
        found = [
            Edit(
                self._at(edit.range.start, lines, index),
                self._at(edit.range.end, lines, index),
                new,
            )
            for edit in self.edits
            for new in [to_lf(edit.new_text)]
        ]
        for edit, old in zip(found, self.olds, strict=True):
            if text[edit.start : edit.end] != old:
                text = f"{self.name} changed while it was renamed; call again."
                raise KodeError("StaleBase", text)
        found.sort(key=lambda edit: (edit.start, edit.end))
        if any(one.end > other.start for one, other in pairwise(found)):
            raise KodeError("ToolFailed", f"The edits of {self.name} overlap; nothing is renamed.")
        return apply_edits(text, found)

    def _at(self, position: Position, lines: LineMap, index: LineIndex) -> int:
        line = lines.seen(position.line)
        if line is None:
            text = (
                f"In {self.name} the rename meets your own pending edit of line "
                f"{position.line + 1} (as the editor has it). Wait until it is decided."
            )
            raise KodeError("InvalidArguments", text)
        return index.offset(line, position.character)


def rename_symbol_tool(
    workspace: Workspace,
    servers: LanguageServers,
    lookup: EditorLookup,
    files: SessionFileView,
    proposals: Proposals,
) -> Tool:
    """Make the tool of one session. It proposes nothing unless all files fit."""

    async def run(params: RenameSymbolParams, call: ToolCall) -> ToolOutcome:
        if not params.path.startswith("untitled:"):
            workspace.locate(params.path, purpose="edit")  # an edit guesses no file
        uri, position = await lookup.place(params.path, params.line, params.symbol)
        found = await servers.rename(uri, position, params.new_name)
        changed = [file for file in found.files if file.edits]
        if not changed:
            why = found.refused or "the language server knows of nothing to change"
            raise KodeError("ToolFailed", f"Nothing is renamed: {why}.")
        if (count := len(changed)) > MAX_FILES:
            text = f"The rename would change {count} files; at most {MAX_FILES} are proposed."
            raise KodeError("TooLarge", text)
        renamings = [await _renaming(file, workspace, files) for file in changed]
        done = [
            await proposals.propose(file.uri, renaming, call)
            for file, renaming in zip(changed, renamings, strict=True)
        ]
        return outcome(done, "\n\n".join(text_report(one) for one in done), ())

    return Tool("rename_symbol", RenameSymbolParams, run, kind="edit", card=_card)


async def _renaming(file: RenamedFile, workspace: Workspace, files: SessionFileView) -> _Renaming:
    """Make a file's rewrite and try it on the current text. Raises KodeError if it does not fit."""
    name = workspace.display_path(file.uri)
    document = await files.load(file.uri, "edit")
    encoding = workspace.position_encoding
    held, index = document.lf_text, LineIndex(document.lf_text, encoding)
    count = max(len(split_lines(held)), 1)
    olds: list[str] = []
    for edit in file.edits:
        start, end = edit.range.start, edit.range.end
        if not 0 <= start.line <= end.line <= count or min(start.character, end.character) < 0:
            raise KodeError("ToolFailed", f"The editor named a place that {name} has not.")
        first = index.offset(start.line, start.character)
        olds.append(held[first : index.offset(end.line, end.character)])
    renaming = _Renaming(name, file.edits, olds, encoding)
    renaming(document, files.view(document).text_lf)
    return renaming


def _card(params: RenameSymbolParams) -> CallCard:
    title = f"Rename {params.symbol} to {params.new_name}"
    return CallCard(title, (CallPlace(params.path, params.line),))
