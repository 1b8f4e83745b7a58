"""The client's editor with the manners of others: how they take edits and tell changes."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.text_edit import Edit
from kode_sidecar.core.text.uris import canonical_key, path_to_uri
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.editor import ClientEditor, read_text, refused
from tests.support.edit_buffer import ChangeStyle, content_changes
from tests.support.positions import Span


@dataclass
class Manners:
    """How the editor behaves when the server wants an edit; the default is a good editor.

    `style` None tells changes as the client does. `before_edit` and `after_edit` are keys the user
    types between the server's sending and the edit, and between the edit and its `didChange`.
    `hold_changes`: no `didChange` leaves before it is set. `answer_first` answers before the
    `didChange` (editors that debounce).
    """

    style: ChangeStyle | None = None
    drop_edits: bool = False
    refuse: str | None = None
    before_edit: Callable[["ManneredEditor"], None] | None = None
    after_edit: Callable[["ManneredEditor"], None] | None = None
    hold_changes: asyncio.Event | None = None
    answer_first: bool = False


class StyledBuffer(Buffer):
    """A buffer that tells its changes in the style of `manners`."""

    manners: Manners

    def replace(self, edits: Sequence[Edit]) -> None:
        before, version = self.text, self.version
        super().replace(edits)
        if self.version != version:
            spans = [Span(edit.start, edit.end, edit.text) for edit in edits]
            self.batches = [*getattr(self, "batches", ()), (before, spans)]

    def take_did_change(self) -> dict[str, Any] | None:
        params = super().take_did_change()
        batches, self.batches = getattr(self, "batches", ()), []
        if params is not None and self.manners.style is not None:
            params["contentChanges"] = [
                entry
                for before, spans in batches
                for entry in content_changes(before, spans, self.manners.style, self.encoding)
            ]
        return params


@dataclass
class ManneredEditor(ClientEditor):
    """An `ClientEditor` whose `manners` a test sets."""

    manners: Manners = field(default_factory=Manners)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._telling: set[asyncio.Task[None]] = set()

    def open(
        self,
        file: str | Path,
        text: str | None = None,
        *,
        language_id: str = "plaintext",
        version: int = 1,
    ) -> Buffer:
        content = text if text is not None else read_text(Path(file))
        uri = path_to_uri(Path(file).absolute())
        buffer = StyledBuffer(
            uri, content, language_id=language_id, version=version, encoding=self.encoding
        )
        buffer.manners = self.manners
        self._buffers[canonical_key(uri)] = buffer
        self.client.notify("textDocument/didOpen", buffer.did_open())
        return buffer

    def hold(self, buffer: Buffer) -> None:
        """Hold a buffer that a test reports to the server itself."""
        self._buffers[canonical_key(buffer.uri)] = buffer

    async def apply_edit(self, params: dict[str, Any]) -> dict[str, Any]:
        manners, answer = self.manners, {"applied": True}
        if manners.before_edit:
            manners.before_edit(self)
        if manners.refuse is not None:
            answer = refused(manners.refuse)
        elif not manners.drop_edits:
            if self.before_edit is not None:
                self.before_edit()
            plan, refusal = self.carry_out(params["edit"])
            answer = {"applied": True} if refusal is None else refused(refusal)
            if self.applied and (plan.files or plan.changes):
                self.applied(plan)
        if manners.after_edit:
            manners.after_edit(self)
        self.edits.append((params, answer))
        task = asyncio.create_task(self._tell_all())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        if not manners.answer_first:
            await task
        return answer

    async def _tell_all(self) -> None:
        if self.manners.hold_changes:
            await self.manners.hold_changes.wait()
        for buffer in self.buffers:
            self.report(buffer)
