"""Shows what a call that the model is still writing changes so far, before anybody can decide.

It is found as for a proposal, and nothing is proposed: the call is read again when it is whole. A
call that does not fit shows nothing; it is refused later, with the reason.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from kode_sidecar.agent.edits.announcing import Announcer, Basis, range_of
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.tools.begun_calls import BegunFile, begun_files
from kode_sidecar.agent.tools.proposals import Rewrite, apart
from kode_sidecar.agent.tools.text_rewrites import check_omission, check_size, held_text
from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    ChangeSetForming,
    Event,
    FormingHunk,
)
from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.domain.message import ToolUseBlock
from kode_sidecar.core.kernel.contracts import Emit
from kode_sidecar.core.text.growing_json import GrowingArguments
from kode_sidecar.core.text.text_edit import to_lf, with_one_eol
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document


@dataclass
class _Call:
    """A call that is being written, and the hunks that were announced of it, by URI."""

    tool: str
    arguments: GrowingArguments = field(default_factory=GrowingArguments)
    reported: dict[str, tuple[FormingHunk, ...]] = field(
        default_factory=dict[str, tuple[FormingHunk, ...]]
    )


class FormingEdits:
    """The `Emit` of one turn: passes everything on, and reads the arguments of edits on the way."""

    def __init__(
        self, services: EditServices, announcer: Announcer, emit: Emit, turn_id: str
    ) -> None:
        self._services = services
        self._announcer = announcer
        self._emit = emit
        self._turn_id = turn_id
        self._calls: dict[str, _Call] = {}
        self._at_work: dict[str, asyncio.Task[None]] = {}

    def __call__(self, event: Event | BlockDelta) -> int:
        """Store and publish, in call order."""
        seq = self._emit(event)
        match event:
            case BlockStarted(block=ToolUseBlock(name="propose_edit" | "propose_file" as name)):
                self._calls[event.block_id] = _Call(name)
            case BlockDelta() if event.block_id in self._calls:
                if self._calls[event.block_id].arguments.feed(event.add):
                    self._look(event.block_id)
            case BlockCompleted() | BlockDropped() if self._calls:
                self._calls.pop(event.block_id, None)
            case _:
                pass
        return seq

    async def flow(self) -> None:
        """Wait for room downstream."""
        await self._emit.flow()

    def _look(self, block_id: str) -> None:
        """Show a call anew; while that is under way more of it may come."""
        if block_id not in self._at_work:
            self._at_work[block_id] = asyncio.create_task(self._show(block_id))

    async def _show(self, block_id: str) -> None:
        """Show what there is; what does not fit is refused later, with the reason."""
        try:
            with suppress(KodeError):
                await self._show_all(block_id)
        finally:
            del self._at_work[block_id]

    async def _show_all(self, block_id: str) -> None:
        """Show a call until nothing is left to show; one that has ended is left alone."""
        seen = 0
        while (call := self._calls.get(block_id)) and seen < call.arguments.looks:
            seen = call.arguments.looks
            files = begun_files(call.tool, call.arguments, self._services.freshness)
            formed = [await self._formed(block_id, file) for file in files]
            for event in formed if block_id in self._calls else ():
                if event is not None and call.reported.get(event.uri) != event.hunks:
                    call.reported[event.uri] = event.hunks
                    self._emit(event)

    async def _formed(self, block_id: str, begun: BegunFile) -> ChangeSetForming | None:
        """Return what a call would change in a file; None where that cannot be edited.

        Raises KodeError where it does not fit.
        """
        if begun.rewrite is None:
            return self._new_file(block_id, begun)
        workspace = self._services.workspace
        uri = path_to_uri(workspace.locate(begun.path, purpose="edit").path)
        document = await self._services.files.fetch(uri)
        if document is None:
            return None
        basis = self._announcer.basis(document)
        text = self._services.overlay.text_of(document)
        drafts = await apart(len(text), partial(_drafts, document, basis, text, begun.rewrite))
        if not drafts or not self._announcer.holds(document, basis):
            return None
        return ChangeSetForming(
            turn_id=self._turn_id,
            block_id=block_id,
            uri=document.uri,
            path=workspace.display_path(document.key),
            hunks=self._hunks(document, drafts),
            version=document.version,
        )

    def _new_file(self, block_id: str, begun: BegunFile) -> ChangeSetForming | None:
        """Return the lines of a new file so far. Raises KodeError where it cannot be made."""
        if not begun.text or not self._services.editor.can_change_files("create"):
            return None
        check_omission(begun.text, "", "")
        check_size(begun.text, begun.path)
        place = self._services.files.new_place(begun.path)
        nowhere = Range(Position(0, 0), Position(0, 0))
        if Document(place.uri, "").is_notebook:
            return None  # it is written once its cells are complete
        text = with_one_eol(begun.text, begun.text)
        return ChangeSetForming(
            turn_id=self._turn_id,
            block_id=block_id,
            uri=place.uri,
            path=place.display,
            hunks=(FormingHunk(range=nowhere, old_text="", new_text=text),),
        )

    def _hunks(self, document: Document, drafts: Sequence[Hunk]) -> tuple[FormingHunk, ...]:
        """On the event loop: nowhere else is an open document's text cut into lines."""
        current = self._services.overlay.current(document)
        encoding = self._services.workspace.position_encoding
        return tuple(
            FormingHunk(
                range=range_of(current, draft, encoding),
                old_text=draft.old_text,
                new_text=draft.new_text,
            )
            for draft in drafts
        )


def _drafts(document: Document, basis: Basis, text: str, rewrite: Rewrite) -> Sequence[Hunk]:
    """Pure: of an open document only what never changes while keys are typed is used."""
    wanted = rewrite(document, document.shown(text))
    held, by_lines = held_text(document, text, wanted, to_lf(basis.text))
    return basis.composed(held, by_lines=by_lines).drafts
