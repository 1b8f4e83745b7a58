"""The real tools over one open document, and no process: what they make of a call."""

import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.edit_application.dialects import Call
from kode_sidecar.agent.edits.change_sets import ChangeSets
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.agent.permissions.questions import UserQuestions
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.propose_file import propose_file_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.domain.hunk import overlay_text
from kode_sidecar.core.kernel.contracts import IdKind, ToolCall, ToolOutcome
from kode_sidecar.core.kernel.message_assembler import parse_arguments
from kode_sidecar.core.protocol.documents import ContentChange, TextDocumentRef
from kode_sidecar.core.protocol.questions import AskParams, AskResult, PermissionRequestParams
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_REV = re.compile(r"base_rev (\w+)")
_NEXT = re.compile(r"next: start=(\d+)\]")


class Refused(Exception):
    """Why a call was refused, in one word."""


class Desk:
    """A session whose editor has one file open; proposals wait for its user."""

    def __init__(self, root: Path, path: str, text: str) -> None:
        self.path = path
        self._workspace = Workspace([root], "utf-16")
        self._uri = path_to_uri(root / path)
        self._workspace.documents.open(self._uri, "text", 1, text)

    def enter(self) -> None:
        """Begin a new session, which has read and proposed nothing."""
        numbers = count(1)

        def new_id(kind: IdKind) -> str:
            return f"{kind}-{next(numbers)}"

        async def save() -> None: ...

        self._sets = ChangeSets(
            session_id="session",
            workspace=self._workspace,
            editor=_Editor(),
            emit=lambda _event: next(numbers),
            new_id=new_id,
            questions=UserQuestions(1),
            now=lambda: "2026-01-01T00:00:00.000Z",
            save=save,
        )
        self._sets.enter_turn("turn", "review", ())
        files, shown = self._sets.session_files, self._sets.freshness
        tools = (
            read_file_tool(self._workspace, files, shown.note),
            propose_edit_tool(self._sets.proposals, files, shown),
            propose_file_tool(self._sets.proposals, files, shown),
        )
        self._tools = {tool.name: tool for tool in tools}

    async def read(self) -> str:
        """Read the whole file; return its `base_rev`."""
        start, rev = 1, ""
        while start:
            outcome = await self._use("read_file", {"path": self.path, "start": start})
            rev, more = _REV.search(outcome.content), _NEXT.search(outcome.content)
            rev, start = rev[1] if rev else "", int(more[1]) if more else 0
        return rev

    def change(self, text: str) -> None:
        """Let another one change the file."""
        self._workspace.documents.change(self._uri, 2, [ContentChange(text=text)])

    async def result(self, call: Call) -> str:
        """Return the text of the file with what was proposed. Raises Refused."""
        arguments = parse_arguments(call.arguments)
        if arguments is None:
            raise Refused("unreadable")
        try:
            await self._use(call.tool, arguments)
        except KodeError as error:
            raise Refused((error.details or {}).get("reason") or error.code) from error
        except msgspec.ValidationError as error:
            raise Refused("unreadable") from error
        if arguments.get("action") == "create":
            return self._sets.session_files.document(arguments["path"], purpose="read").text
        document = self._document()
        return overlay_text(document.text, self._sets.overlay.pending(document))

    def leave(self) -> None:
        """End the session."""
        self._sets.close()

    def _document(self) -> Document:
        document = self._workspace.documents.get(self._uri)
        assert document is not None
        return document

    async def _use(self, name: str, arguments: dict[str, Any]) -> ToolOutcome:
        tool = self._tools[name]
        given = tool.accept(arguments) if tool.accept else msgspec.convert(arguments, tool.params)
        return await tool.run(given, ToolCall("call", name, "session", "turn", "message"))


class _Editor:
    """An editor whose user does not decide: nothing is sent to it."""

    def publish(self, session_id: str, events: Sequence[Event]) -> None: ...

    def publish_delta(self, delta: BlockDelta) -> None: ...

    async def flow(self) -> None: ...

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        del edit
        return ApplyAnswer(False)

    def can_change_files(self, kind: str) -> bool:
        return bool(kind)

    async def open_document(self, uri: str) -> bool:
        del uri
        return False

    async def refresh(self, uri: str) -> None: ...

    def can_save(self) -> bool:
        return False

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        del documents
        return ()

    def warn(self, line: str) -> None: ...

    async def ask_permission(self, question: PermissionRequestParams) -> None:
        del question

    async def ask_choice(self, question: AskParams) -> AskResult:
        del question
        return AskResult(())
