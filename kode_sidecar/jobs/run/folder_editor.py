"""The editor of a job: applies edits to a folder on disk, guarded by its sandbox (F19).

A session asks its editor for everything the user decides. A job has no user: the policy has already
allowed what it allows, and everything else is refused.
"""

import asyncio
from collections.abc import Callable, Sequence

from kode_sidecar.agent.event_log.editor_port import (
    ApplyAnswer,
    DocumentEdit,
    FileEdit,
    WithoutDocuments,
)
from kode_sidecar.core.domain.agent_event import BlockDelta, Event, TurnCompleted
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import decode, encode
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.editor_config import new_file_style
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.saving import (
    create_file,
    delete_file,
    move_file,
    replace_file,
)
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.sandbox import Sandbox


class FolderEditor(WithoutDocuments):
    """`event_log.editor_port.EditorPort` of one run.

    `record` gets every event and every piece of text, in their order.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        workspace: Workspace,
        record: Callable[[Event | BlockDelta], object],
    ) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._record = record
        self._ends: dict[str, asyncio.Future[TurnCompleted]] = {}

    def turn_end(self, turn_id: str) -> "asyncio.Future[TurnCompleted]":
        """Return a future that is done when the turn has ended and all its events are recorded."""
        return self._ends.setdefault(turn_id, asyncio.get_running_loop().create_future())

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Record the events."""
        del session_id
        for event in events:
            self._record(event)
            if isinstance(event, TurnCompleted) and not self.turn_end(event.turn_id).done():
                self.turn_end(event.turn_id).set_result(event)

    def publish_delta(self, delta: BlockDelta) -> None:
        """Record the growth of a text."""
        self._record(delta)

    async def flow(self) -> None:
        """Return at once: every event is on disk when it is published."""

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Apply an edit on disk, within the writable zones of the sandbox."""
        try:
            if isinstance(edit, FileEdit):
                await self._change(edit)
            else:
                await self._apply(edit)
        except (KodeError, UnicodeEncodeError) as error:
            return ApplyAnswer(applied=False, reason=str(error))
        return ApplyAnswer(applied=True)

    async def _apply(self, edit: DocumentEdit) -> None:
        """Change a text, and show it to the session as an editor does: that proves the edit."""
        place = self._writable(edit.uri)
        data = await asyncio.to_thread(read_regular, place)
        found = decode(data, place.display, self._workspace.file_encoding)
        text = edit.applied_to(found.text, self._workspace.position_encoding)
        after = encode(text, found.encoding, bom=found.bom)
        await asyncio.to_thread(replace_file, place, data, after)
        self._workspace.documents.show(edit.uri, found.text, text)
        self._workspace.documents.close(edit.uri)

    async def _change(self, edit: FileEdit) -> None:
        place = self._writable(edit.uri)
        if edit.kind == "create":
            data = new_file_style(place.real).data(edit.text)
            await asyncio.to_thread(create_file, place, data)
        elif edit.kind == "rename":
            await asyncio.to_thread(move_file, place, self._writable(edit.new_uri))
        else:
            await asyncio.to_thread(delete_file, place)

    def _writable(self, uri: str) -> Location:
        """Return a file's place. Raises KodeError `PathOutsideRoots` outside writable zones."""
        place = self._workspace.locate(uri)
        self._sandbox.locate(place.display, "write")
        return place

    async def refresh(self, uri: str) -> None:
        """Do nothing: the only texts are those on disk."""

    def warn(self, line: str) -> None:
        """Do nothing: a job has no editor whose developer could read it."""

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Refuse: calls that the policy allows never ask."""
        no = (one.option_id for one in question.options if one.kind == "reject")
        return next((PermissionRequestResult(option_id=one) for one in no), None)

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Raise KodeError `CapabilityMissing`: a job has no user to choose."""
        del question
        text = "Nobody is here to answer: this is a job. Decide yourself, and say what you assumed."
        raise KodeError("CapabilityMissing", text)
