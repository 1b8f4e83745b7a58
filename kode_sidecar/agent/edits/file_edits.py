"""Asks the editor to create, rename or delete one file, and looks whether it did."""

import asyncio
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from kode_sidecar.agent.edits.flights import refused
from kode_sidecar.agent.edits.hunks import EditResult
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, FileEdit
from kode_sidecar.core.text.uris import canonical_key, path_to_uri
from kode_sidecar.infrastructure.workspace.file_changes import FileChange
from kode_sidecar.infrastructure.workspace.paths import Location

_UNDONE = "the editor answered that it is done, but the files do not show it"
LOOKS = 20
"""How often the files are looked at while an editor may still be at work."""


class FileEdits:
    """Sends one change of a file at a time; the caller holds the locks of its documents."""

    def __init__(self, services: EditServices) -> None:
        self._services = services
        self._workspace = services.workspace
        self._overlay = services.overlay
        self._files = services.files
        self._changes = services.changes
        self._editor = services.editor
        self._watch = services.watch

    def creates(self, hunk_id: str) -> bool:
        """Return whether a hunk, or its undo, puts a file with a text where there is none."""
        change = self._changes.find(hunk_id)
        return change is not None and change.kind == "create"

    def in_order(self, hunk_ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the hunks of whole files to send before the edits of a text, and those after.

        A new file comes first, unless another one leaves its place.
        """
        changes = {one: self._changes.find(one) for one in hunk_ids}
        left = {one.removes.real for one in changes.values() if one and one.removes}
        waits = [key for key, one in changes.items() if one and one.adds and one.adds.real in left]
        first = [one for one in hunk_ids if self.creates(one) and one not in waits]
        return first, [one for one in hunk_ids if one not in (*first, *waits)] + waits

    def fits(self, hunk_id: str, text: str | None = None, others: Iterable[str] = ()) -> bool:
        """Return whether a hunk can still be done, or taken back, as it was meant.

        `text` is what the file to delete will have by then, its present text where not given.
        `others` are the hunks that are done before.
        """
        change = self._changes.find(hunk_id)
        done = [found for one in others if (found := self._changes.find(one)) is not None]
        left = {one.removes.real for one in done if one.removes is not None}
        return change is not None and self._fits(change, text, left)

    def _fits(
        self, change: FileChange, text: str | None = None, left: Collection[Path] = ()
    ) -> bool:
        needed = change.adds if change.adds and change.adds.real not in left else None
        if needed is not None and self._files.is_taken(needed):
            return False
        if change.removes is None:
            return True
        found = self.text_at(change.place) if text is None else text
        return found is not None and (change.kind == "rename" or found == change.lf_text)

    def text_at(self, place: Location) -> str | None:
        """Return the present text (LF) of the file at a place; None where there is none to read."""
        document = self._workspace.open_document(place) or self._files.find(str(place.path))
        return document.lf_text if document is not None and document.synced else None

    async def send(self, change: FileChange, label: str, *, ask: bool) -> EditResult:
        """Have it done, and return what became of it."""
        places = [place for place in (change.removes, change.adds) if place is not None]
        keys = [canonical_key(place.uri) for place in places]
        self._services.in_flight.update(keys)
        if change.kind == "create":
            self._overlay.hold(change.key)
        try:
            result = await self._send(change, label, ask=ask)
        finally:
            self._overlay.release(change.key)
            self._services.in_flight.difference_update(keys)
        if result.is_applied:
            self._report_to_watch(change)
        return result

    def _report_to_watch(self, change: FileChange) -> None:
        """Say that it was the session's own doing."""
        if change.target is not None and self._changes.adding(change.place.real) is not None:
            return  # what is known by that name is known of the file that comes there
        if change.target is not None:
            uri = path_to_uri(change.target.path)
            self._watch.moved(change.key, uri, change.target.path)
        elif change.kind == "delete":
            self._watch.removed(change.key)
        else:
            self._watch.created(change.uri, change.place.path, change.lf_text)

    async def _send(self, change: FileChange, label: str, *, ask: bool) -> EditResult:
        if not self._editor.can_change_files(change.kind):
            return EditResult("conflict", reason=f"the editor cannot {change.kind} files")
        if not self._fits(change):
            taken = change.adds is not None and self._files.is_taken(change.adds)
            name = change.adds.display if change.adds else ""
            return EditResult("conflict", reason=f"there is a file {name}" if taken else None)
        edit = FileEdit(
            label=label,
            kind=change.kind,
            uri=change.uri,
            new_uri=change.target_uri or "",
            text=change.text if change.kind == "create" else "",
            ask=ask,
        )
        on_disk = change.removes is not None and os.path.lexists(change.removes.real)
        answer = None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._services.locks.answer_seconds):
                answer = await self._editor.apply_edit(edit)
        for look in range(LOOKS):
            if self._is_done(change, on_disk=on_disk):
                self._forget(change.removes)
                return EditResult("applied")
            if look and not (answer is not None and answer.applied):
                break
            await self._pause()
        return self._judge(change, answer)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            seconds = self._services.settle_seconds / LOOKS
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()

    def _is_done(self, change: FileChange, *, on_disk: bool) -> bool:
        """Return whether it shows. A file that is on disk is gone once it is no longer there."""
        if change.removes is not None:
            left = os.path.lexists(change.removes.real) if on_disk else self._is_open(change)
            if left or (not on_disk and self._changes.unsaved(change.removes.real)):
                return False
        if change.adds is None:
            return True
        if change.kind == "create":
            return self.text_at(change.adds) == change.lf_text
        on_disk = os.path.lexists(change.adds.real)
        return on_disk or self._workspace.open_document(change.adds) is not None

    def _judge(self, change: FileChange, answer: ApplyAnswer | None) -> EditResult:
        """Return what to make of a change that does not show."""
        if change.kind == "create":
            document = self._workspace.open_document(change.place)
            if document is not None:
                return EditResult("diverged", document.lf_text)
        if answer is None or not answer.applied:
            return EditResult("conflict", reason=refused(answer))
        if change.kind == "create":
            self._changes.assume_created(change)
            return EditResult("unconfirmed")
        if change.removes is not None and self._changes.unsaved(change.removes.real):
            self._forget(change.removes)
            return EditResult("unconfirmed")
        return EditResult("conflict", reason=_UNDONE)

    def _is_open(self, change: FileChange) -> bool:
        place = change.removes
        return place is not None and self._workspace.open_document(place) is not None

    def _forget(self, place: Location | None) -> None:
        if place is not None:
            self._changes.forget_unsaved(place.real)
