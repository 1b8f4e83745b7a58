"""An editor in a few lines: it owns buffers, applies edits, and reports what changed.

Positions and text changes are those of `edit_buffer`, code that shares nothing with what makes
the edits.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.edits.change_sets import ChangeSets
from kode_sidecar.agent.event_log import EventHistory
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.agent.permissions.questions import UserQuestions
from kode_sidecar.agent.tools.list_files import list_files_tool
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.propose_file import propose_file_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.agent.tools.search_code import search_code_tool
from kode_sidecar.core.domain.agent_event import BlockDelta, ChangeSetUpdated, Event
from kode_sidecar.core.domain.change_set import HunkView
from kode_sidecar.core.kernel.contracts import IdKind, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.change_set import DecideParams, DecideResult, HunkDecision
from kode_sidecar.core.protocol.documents import TextDocumentRef
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.core.text.uris import file_path, path_to_uri
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.support.edit_buffer import Buffer, ChangeStyle, StaleVersion

Apply = Callable[[DocumentEdit], Awaitable[ApplyAnswer]]
ApplyFile = Callable[[FileEdit], Awaitable[ApplyAnswer]]
HANG = 20.0


class Editor:
    """`EditorPort` over buffers. `on_apply` may replace how an edit is handled.

    `reads_as` is the encoding in which it opens a file it is asked to open; None: it will not.
    """

    def __init__(self, workspace: Workspace, style: ChangeStyle = "minimal") -> None:
        self.documents = workspace.documents
        self.encoding: PositionEncoding = workspace.position_encoding
        self.style: ChangeStyle = style
        self.buffers: dict[str, Buffer] = {}
        self.edits: list[DocumentEdit] = []
        self.questions: list[PermissionRequestParams] = []
        self.warnings: list[str] = []
        self.answer: str | None = None
        self.on_apply: Apply = self.obey
        self.file_edits: list[FileEdit] = []
        self.file_operations = {"create", "rename", "delete"}
        self.on_file_edit: ApplyFile = self.do_file_edit
        self.syncs_new_files = True
        self.asked_to_open: list[str] = []
        self.reads_as: str | None = None

    def publish(self, session_id: str, events: Sequence[Event]) -> None: ...

    def publish_delta(self, delta: BlockDelta) -> None: ...

    async def flow(self) -> None: ...

    def open(self, path: Path, text: str, version: int = 1) -> Buffer:
        """Open a buffer, maybe one that differs from the file."""
        buffer = Buffer(path_to_uri(path), text, version=version, encoding=self.encoding)
        self.buffers[buffer.uri] = buffer
        item = buffer.did_open()["textDocument"]
        self.documents.open(item["uri"], item["languageId"], item["version"], item["text"])
        return buffer

    def close(self, buffer: Buffer) -> None:
        del self.buffers[buffer.uri]
        self.documents.close(buffer.uri)

    def type(self, buffer: Buffer, offset: int, text: str, delete: int = 0) -> None:
        """A key of the user, reported at once."""
        buffer.type(offset, text, delete=delete)
        self.report(buffer)

    def report(self, buffer: Buffer) -> None:
        """Send `didChange` for all that was not told yet."""
        params = buffer.take_did_change(self.style)
        if params is not None:
            document = params["textDocument"]
            self.documents.change(document["uri"], document["version"], params["contentChanges"])

    def do(self, edit: DocumentEdit) -> bool:
        """Apply an edit to its buffer, as a well-behaved editor does; does not report it."""
        buffer = self.buffers.get(edit.uri)
        if buffer is None:
            return True  # loaded without being synced
        try:
            buffer.apply_edits(wire_edits(edit), edit.version)
        except StaleVersion:
            return False
        return True

    async def obey(self, edit: DocumentEdit) -> ApplyAnswer:
        applied = self.do(edit)
        if edit.uri in self.buffers:
            self.report(self.buffers[edit.uri])
        return ApplyAnswer(applied)

    def warn(self, line: str) -> None:
        self.warnings.append(line)

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        if isinstance(edit, FileEdit):
            self.file_edits.append(edit)
            return await self.on_file_edit(edit)
        self.edits.append(edit)
        return await self.on_apply(edit)

    def can_change_files(self, kind: str) -> bool:
        return kind in self.file_operations

    def can_save(self) -> bool:
        return False

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        del documents
        return ()

    async def refresh(self, uri: str) -> None:
        """Document sync has told it."""
        del uri

    async def open_document(self, uri: str) -> bool:
        self.asked_to_open.append(uri)
        if self.reads_as is None:
            return False
        path = file_path(uri)
        self.open(path, path.read_bytes().decode(self.reads_as))
        return True

    async def do_file_edit(self, edit: FileEdit) -> ApplyAnswer:
        """As VS Code does: files on disk at once, the text of a new one in an unsaved buffer."""
        path = file_path(edit.uri)
        buffer = self.buffers.get(edit.uri)
        match edit.kind:
            case "create":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                if self.syncs_new_files:
                    self.open(path, edit.text)
            case "rename":
                path.rename(file_path(edit.new_uri))
                if buffer is not None:
                    self.close(buffer)
                    self.open(file_path(edit.new_uri), buffer.text)
            case "delete":
                path.unlink()
                if buffer is not None:
                    self.close(buffer)
        return ApplyAnswer(True)

    async def ask_choice(self, question: AskParams) -> AskResult:
        del question
        return AskResult(())

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        self.questions.append(question)
        return self.answer and PermissionRequestResult(option_id=self.answer)


def wire_edits(edit: DocumentEdit) -> list[dict[str, Any]]:
    """An edit as the client reads it from JSON."""
    return [
        {
            "range": {
                "start": {"line": e.range.start.line, "character": e.range.start.character},
                "end": {"line": e.range.end.line, "character": e.range.end.character},
            },
            "newText": e.new_text,
        }
        for e in edit.edits
    ]


class Desk:
    """A workspace, an editor and the change sets of one session, with what was emitted."""

    def __init__(
        self,
        root: Path,
        encoding: PositionEncoding = "utf-16",
        style: ChangeStyle = "minimal",
        *,
        file_encoding: str | None = None,
        counts_lone_cr: bool = False,
        **more: Any,
    ) -> None:
        self.root = root
        self.workspace = Workspace(
            [root], encoding, file_encoding=file_encoding, counts_lone_cr=counts_lone_cr
        )
        self.editor = Editor(self.workspace, style)
        self.events: list[Event] = []
        self.saves = 0
        self._numbers = itertools.count(1)
        more = {
            "save": self._save,
            "settle_seconds": 0.05,
            "questions": UserQuestions(0.05),
            **more,
        }
        self.sets = ChangeSets(
            session_id="s-1",
            workspace=self.workspace,
            editor=self.editor,
            emit=self._emit,
            new_id=self._new_id,
            now=lambda: "2026-01-01T00:00:00.000Z",
            **more,
        )
        files, shown, proposals = self.sets.session_files, self.sets.freshness, self.sets.proposals
        tools = (
            read_file_tool(self.workspace, files, shown.note),
            list_files_tool(self.workspace, files),
            search_code_tool(self.workspace, Ripgrep(find_ripgrep()), files, shown.note),
            propose_edit_tool(proposals, files, shown),
            propose_file_tool(proposals, files, shown),
        )
        self.tools = {tool.name: tool for tool in tools}
        self.enter("t-1")

    def enter(self, turn_id: str, mode: str = "review", path: tuple[str, ...] = ()) -> None:
        self.turn_id = turn_id
        self.sets.enter_turn(turn_id, mode, path)  # type: ignore[arg-type]

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    async def edit(self, path: str, *pairs: tuple[str, str]) -> ToolOutcome:
        """Call the tool as the model does. Raises KodeError where the model gets a failure."""
        edits = [{"old": old, "new": new} for old, new in pairs]
        return await self.use("propose_edit", path=path, edits=edits)

    async def use(self, name: str, **arguments: Any) -> ToolOutcome:
        """Call one of the session's tools with arguments as a model sends them."""
        tool = self.tools[name]
        given = tool.accept(arguments) if tool.accept else msgspec.convert(arguments, tool.params)
        call = ToolCall("tool-1", name, "s-1", self.turn_id, "m-1")
        return await asyncio.wait_for(tool.run(given, call), HANG)

    async def decide(self, *decisions: HunkDecision, **more: Any) -> DecideResult:
        """Decide on the newest change set."""
        params = DecideParams(change_set_id=self.change_set_id, decisions=decisions, **more)
        return await asyncio.wait_for(self.sets.decide(params), HANG)

    async def accept(self, *hunk_ids: str) -> DecideResult:
        return await self.decide(*(HunkDecision(hunk_id=h, action="accept") for h in hunk_ids))

    @property
    def updates(self) -> list[ChangeSetUpdated]:
        return [event for event in self.events if isinstance(event, ChangeSetUpdated)]

    @property
    def change_set_id(self) -> str:
        return self.updates[-1].change_set_id

    @property
    def hunks(self) -> list[HunkView]:
        """Every hunk as it was announced, in order."""
        views = (h for event in self.updates for file in event.files for h in file.hunks)
        return [view for view in views if view.kind is not None]

    @property
    def states(self) -> dict[str, str]:
        """The last state told of each hunk."""
        views = (h for event in self.updates for file in event.files for h in file.hunks)
        return {view.hunk_id: view.state for view in views}

    async def until(self, condition: Callable[[], object]) -> None:
        """Let everything else run until it is so."""
        async with asyncio.timeout(HANG):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0)

    def text(self, path: str) -> str:
        """What the model reads."""
        files = self.sets.session_files
        return files.view(files.document(path, purpose="read")).text_lf

    def _emit(self, event: Event) -> int:
        self.events.append(event)
        return len(self.events)

    def _new_id(self, kind: IdKind) -> str:
        return f"{kind[0]}{next(self._numbers)}"

    async def _save(self) -> None:
        self.saves += 1


def again(desk: Desk) -> Desk:
    """The session as the next process opens it."""
    desk.sets.close()
    fresh = Desk(desk.root)
    history = EventHistory()
    history.feed_all(desk.events)
    fresh.sets.restore(history)
    return fresh
