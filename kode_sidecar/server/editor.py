"""The editor behind the wire: applies edits, asks the user. Knows what each client can do."""

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.event_log.editor_port import (
    ApplyAnswer,
    ChoiceQuestion,
    DocumentEdit,
    FileEdit,
    PermissionQuestion,
)
from kode_sidecar.protocol.documents import OpenDocumentParams, OpenDocumentResult
from kode_sidecar.protocol.events import MAX_INLINE_BYTES, MIN_INLINE_BYTES
from kode_sidecar.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.server.connection import Connection
from kode_sidecar.server.projector import Projector
from kode_sidecar.server.turn_progress import TurnProgress
from kode_sidecar.server.workspace_edits import apply_edit_params

_WARNING, _INFO = 2, 3  # LSP MessageType


class _ApplyResult(Struct):
    """LSP `ApplyWorkspaceEditResult`."""

    applied: bool = False
    failureReason: str | None = None


class _ChosenAction(Struct):
    """LSP `MessageActionItem`."""

    title: str


class ClientProfile:
    """What the client announced in `initialize`, as far as the sidecar cares."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._capabilities = _mapping(params.get("capabilities"))
        kode = _mapping(_mapping(params.get("initializationOptions")).get("kode"))
        self._kode = _mapping(kode.get("capabilities"))
        self._delivery = _mapping(kode.get("delivery"))
        self.name = str(_mapping(params.get("clientInfo")).get("name", ""))

    @property
    def permission_requests(self) -> bool:
        """Does it answer `kode/permission/request`?"""
        return self._kode.get("permission") is not None

    @property
    def asks(self) -> bool:
        """Does it answer `kode/ask`?"""
        return self._kode.get("ask") is not None

    @property
    def work_done_progress(self) -> bool:
        """Does it show progress that the server begins?"""
        return _mapping(self._capabilities.get("window")).get("workDoneProgress") is True

    @property
    def max_inline_bytes(self) -> int:
        """What a text may measure before only its head is sent."""
        wanted: object = self._delivery.get("maxInlineBytes")
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            return MAX_INLINE_BYTES
        return max(wanted, MIN_INLINE_BYTES)

    @property
    def document_changes(self) -> bool:
        """Versioned edits. Neovim handles them without announcing it."""
        return bool(self._workspace_edit.get("documentChanges")) or self.name == "Neovim"

    @property
    def file_operations(self) -> frozenset[str]:
        """Which of `create`, `rename` and `delete` it announced; they need `documentChanges`."""
        announced: object = self._workspace_edit.get("resourceOperations")
        if not self.document_changes or not isinstance(announced, list):
            return frozenset()
        return frozenset(one for one in cast(list[Any], announced) if isinstance(one, str))

    @property
    def change_annotations(self) -> bool:
        """Does it know annotated changes? Some clients fail on those they did not announce."""
        return isinstance(self._workspace_edit.get("changeAnnotationSupport"), dict)

    @property
    def opens_documents(self) -> bool:
        """Does it answer `kode/openDocument`?"""
        return "openDocument" in self._kode

    @property
    def _workspace_edit(self) -> dict[str, Any]:
        return _mapping(_mapping(self._capabilities.get("workspace")).get("workspaceEdit"))


class Editor(Projector):
    """`event_log.editor_port.EditorPort` over one connection."""

    def __init__(self, connection: Connection, client: ClientProfile) -> None:
        progress = TurnProgress(connection) if client.work_done_progress else None
        super().__init__(connection, client.max_inline_bytes, progress)
        self._client = client

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """`workspace/applyEdit` (LSP 3.17). An error answer counts as not applied."""
        try:
            result = await self._connection.request(
                "workspace/applyEdit", apply_edit_params(edit, self._client), _ApplyResult
            )
        except KodeError as error:
            return ApplyAnswer(applied=False, reason=error.message)
        return ApplyAnswer(applied=result.applied, reason=result.failureReason)

    def warn(self, line: str) -> None:
        """A line on stderr."""
        self._connection.log(line, None)

    async def ask_permission(self, question: PermissionQuestion) -> str | None:
        """The user's choice, by `kode/permission/request` or LSP's own message request."""
        try:
            if self._client.permission_requests:
                return await self._ask_kode(question)
            return await self._ask_plain(question)
        except KodeError:
            return None

    def can_change_files(self, kind: str) -> bool:
        """Whether the client announced that operation."""
        return kind in self._client.file_operations

    async def open_document(self, uri: str) -> bool:
        """Ask by `kode/openDocument`, where the client answers that."""
        if not self._client.opens_documents:
            return False
        params = OpenDocumentParams(uri=uri)
        try:
            result = await self._connection.request("kode/openDocument", params, OpenDocumentResult)
        except KodeError:
            return False
        return result.opened

    async def ask_choice(self, question: ChoiceQuestion) -> Sequence[str]:
        """The user's choice, by `kode/ask` or LSP's own message request, which has one answer."""
        if self._client.asks:
            params = AskParams(
                request_id=question.request_id,
                session_id=question.session_id,
                turn_id=question.turn_id,
                tool_use_id=question.tool_use_id,
                question=question.question,
                choices=tuple(question.choices),
                multi=question.multi,
            )
            result = await self._connection.request("kode/ask", params, AskResult)
            return result.choices
        chosen = await self._show_message(_INFO, question.question, question.choices)
        return [] if chosen is None else [chosen]

    async def _ask_kode(self, question: PermissionQuestion) -> str:
        params = PermissionRequestParams(
            request_id=question.request_id,
            session_id=question.session_id,
            turn_id=question.turn_id,
            tool_use_id=question.tool_use_id,
            title=question.title,
            subject=question.subject,
            options=tuple(question.options),
            reason=question.reason,
            diff=question.diff,
        )
        result = await self._connection.request(
            "kode/permission/request", params, PermissionRequestResult
        )
        return result.option_id

    async def _ask_plain(self, question: PermissionQuestion) -> str | None:
        message = " ".join(filter(None, (f"{question.title}?", question.reason)))
        names = [option.name for option in question.options]
        answer = await self._show_message(_WARNING, message, names)
        chosen = (o.option_id for o in question.options if o.name == answer)
        return next(chosen, None)

    async def _show_message(self, kind: int, message: str, actions: Sequence[str]) -> str | None:
        """LSP's `window/showMessageRequest`; the title chosen. Raises KodeError."""
        titles = [{"title": title} for title in actions]
        params = {"type": kind, "message": message, "actions": titles}
        answer = await self._connection.request(
            "window/showMessageRequest", params, _ChosenAction | None
        )
        return None if answer is None else answer.title


def _mapping(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
