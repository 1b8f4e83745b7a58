"""An editor without a screen: buffers, and answers to the server's requests."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.text_edit import apply_edits
from kode_sidecar.core.text.uris import canonical_key, file_path, path_to_uri
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.workspace_edit import EditPlan, plan_edit

AnswerPermission = Callable[[dict[str, Any]], Awaitable[str | dict[str, Any] | None]]
AnswerChoice = Callable[[dict[str, Any]], Awaitable[Sequence[str] | dict[str, Any]]]
AnswerMessage = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]


async def reject(params: dict[str, Any]) -> str | None:
    """Return the rejecting answer to a permission question, without asking anybody."""
    return next((o["optionId"] for o in params["options"] if o["kind"] == "reject"), None)


async def choose_nothing(params: dict[str, Any]) -> Sequence[str]:
    """Return no choice, without asking anybody."""
    del params
    return ()


async def dismiss(params: dict[str, Any]) -> dict[str, Any] | None:
    """Close a message box without choosing."""
    del params
    return None


def read_text(path: Path) -> str:
    """Return a file as an editor shows it: UTF-8, line ends kept, no BOM. Raises OSError."""
    return path.read_bytes().decode("utf-8-sig")


@dataclass
class ClientEditor:
    """Holds buffers synced over a connection. Only `write` writes text to disk.

    Files are created (empty), renamed and deleted on disk at once when the server asks for it, as
    editors do; the text of a new file stays in an unsaved buffer.

    `open_touched` sends `didOpen` for a file that was loaded for an edit. `before_edit` is called
    when the server asks for one, `load` gives the text of a file that is edited without being open;
    it raises OSError or ValueError. `write` gets a buffer and the text that an edit is about to
    give it; where it raises OSError or ValueError the edit is refused; what it did to files before
    that stays done.
    `applied` is called with what an edit has done, after the server was notified.
    `edits` logs every `workspace/applyEdit` with the answer it got; `asked` every question of
    either kind.
    """

    client: Client
    answer_permission: AnswerPermission = reject
    answer_choice: AnswerChoice = choose_nothing
    answer_message: AnswerMessage = dismiss
    open_touched: bool = False
    before_edit: Callable[[], None] | None = None
    load: Callable[[Path], str] = read_text
    write: Callable[[Buffer, str], None] | None = None
    applied: Callable[[EditPlan], None] | None = None
    configuration: dict[str, Any] = field(default_factory=dict[str, Any])
    edits: list[tuple[dict[str, Any], dict[str, Any]]] = field(
        default_factory=list[tuple[dict[str, Any], dict[str, Any]]]
    )
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        self._buffers: dict[str, Buffer] = {}
        for method, handler in (
            ("workspace/applyEdit", self.apply_edit),
            ("workspace/configuration", self._configuration),
            ("window/showMessageRequest", self._message_request),
            ("window/workDoneProgress/create", _nothing),
            ("client/registerCapability", _nothing),
            ("client/unregisterCapability", _nothing),
            ("kode/permission/request", self._permission),
            ("kode/openDocument", self._open_document),
            ("kode/saveDocuments", self._save_documents),
            ("kode/ask", self._ask),
        ):
            self.client.handle(method, handler)

    @property
    def encoding(self) -> Any:
        """The negotiated position encoding."""
        capabilities = self.client.initialize_result.get("capabilities", {})
        return capabilities.get("positionEncoding", "utf-16")

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers, in the order they were opened."""
        return list(self._buffers.values())

    def buffer(self, uri: str) -> Buffer:
        """Return the buffer of a document in any spelling of its URI. Raises KeyError."""
        return self._buffers[canonical_key(uri)]

    def text(self, uri: str) -> str | None:
        """Return the text of a document's buffer, None without one."""
        buffer = self._buffers.get(canonical_key(uri))
        return buffer.text if buffer is not None else None

    def open(
        self,
        file: str | Path,
        text: str | None = None,
        *,
        language_id: str = "plaintext",
        version: int = 1,
    ) -> Buffer:
        """Open a file and notify the server; with `text` the buffer has unsaved changes."""
        uri = path_to_uri(Path(file).absolute())
        content = text if text is not None else read_text(Path(file))
        buffer = Buffer(
            uri, content, language_id=language_id, version=version, encoding=self.encoding
        )
        self._buffers[canonical_key(uri)] = buffer
        self.client.notify("textDocument/didOpen", buffer.did_open())
        return buffer

    def close(self, buffer: Buffer) -> None:
        """Close a buffer without saving it."""
        del self._buffers[canonical_key(buffer.uri)]
        self.client.notify("textDocument/didClose", buffer.did_close())

    def report(self, buffer: Buffer) -> None:
        """Send the unsent changes of a synced buffer as one `didChange`."""
        if buffer.synced and (params := buffer.take_did_change()):
            self.client.notify("textDocument/didChange", params)

    def type(self, buffer: Buffer, offset: int, text: str, *, delete: int = 0) -> None:
        """Type into a buffer and notify the server."""
        buffer.type(offset, text, delete=delete)
        self.report(buffer)

    async def apply_edit(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer `workspace/applyEdit`: all or nothing; `didChange` is sent before the answer."""
        if self.before_edit is not None:
            self.before_edit()
        plan, refusal = self.carry_out(params["edit"])
        answer = {"applied": True} if refusal is None else refused(refusal)
        self.edits.append((params, answer))
        for buffer in self.buffers:
            self.report(buffer)
        if self.applied and (plan.files or plan.changes):
            self.applied(plan)
        return answer

    def carry_out(self, edit: dict[str, Any]) -> tuple[EditPlan, str | None]:
        """Apply a WorkspaceEdit without `didChange`; return the plan, or why it was refused."""
        try:
            plan = plan_edit(edit, self.opened, self.loaded, self.encoding)
            self._write(plan)
        except (ValueError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            return EditPlan(), reason or str(error)
        self._carry_out(plan)
        return plan, None

    def opened(self, uri: str) -> Buffer | None:
        """Return the buffer of a document, None without one."""
        return self._buffers.get(canonical_key(uri))

    def loaded(self, uri: str) -> Buffer | None:
        """Return the buffer, else one loaded from disk, else None. Raises OSError, ValueError."""
        path = file_path(uri)
        known = self.opened(uri)
        if known is not None or not path.is_file():
            return known
        return Buffer(uri, self.load(path), encoding=self.encoding)

    def _write(self, plan: EditPlan) -> None:
        for operation in plan.files:
            operation.carry_out()
        if self.write is not None:
            for buffer, edits in plan.changes:
                self.write(buffer, apply_edits(buffer.text, edits))

    def _carry_out(self, plan: EditPlan) -> None:
        for old in plan.removed:
            buffer = self._buffers.pop(canonical_key(old), None)
            if buffer is not None and buffer.synced:
                self.client.notify("textDocument/didClose", buffer.did_close())
        for buffer in plan.touched:
            if self._buffers.setdefault(canonical_key(buffer.uri), buffer) is not buffer:
                raise AssertionError(f"two buffers for {buffer.uri}")
            wanted = self.open_touched or buffer in plan.reopened
            if wanted and not buffer.synced:
                self.client.notify("textDocument/didOpen", buffer.did_open())
        for buffer, edits in plan.changes:
            buffer.replace(edits)

    async def _configuration(self, params: dict[str, Any]) -> list[Any]:
        return [self.configuration.get(item.get("section") or "") for item in params["items"]]

    async def _message_request(self, params: dict[str, Any]) -> dict[str, Any] | None:
        return await self.answer_message(params)

    async def _permission(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        answer = await self.answer_permission(params)
        return answer if isinstance(answer, dict) else {"optionId": answer}

    async def _open_document(self, params: dict[str, Any]) -> dict[str, Any]:
        """Open a file that the server cannot decode, as `load` reads it."""
        path = file_path(params["uri"])
        try:
            self.open(path, self.load(path))
        except (OSError, ValueError):
            return {"opened": False}
        return {"opened": True}

    async def _save_documents(self, params: dict[str, Any]) -> dict[str, Any]:
        """Save buffers that still have the version that the server knows."""
        saved: list[str] = []
        for asked in params["documents"]:
            buffer = self.opened(asked["uri"])
            if buffer is not None and asked.get("version") == buffer.version:
                file_path(buffer.uri).write_bytes(buffer.text.encode())
                document = {"textDocument": {"uri": buffer.uri}}
                self.client.notify("textDocument/didSave", document)
                saved.append(asked["uri"])
        return {"saved": saved}

    async def _ask(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        answer = await self.answer_choice(params)
        return answer if isinstance(answer, dict) else {"choices": list(answer)}


async def _nothing(params: Any) -> None:
    del params


def refused(reason: str) -> dict[str, Any]:
    """Return the answer that an edit was not applied."""
    return {"applied": False, "failureReason": reason}
