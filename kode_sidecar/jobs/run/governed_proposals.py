"""Proposed edits of a job: the policy decides before the session sees one (B9)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from kode_sidecar.agent.permissions import PermissionGate
from kode_sidecar.agent.tools.governed import Subject, check_allowed
from kode_sidecar.agent.tools.proposals import Proposals, Proposed, Rewrite
from kode_sidecar.core.domain.run_policy import Policy
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import encode
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import Workspace

PlaceCheck = Callable[[Location], None]
"""Raises KodeError if a place must not be written to."""


@dataclass
class WrittenFiles:
    """The changes that tools made to the files of a project.

    `origins` maps a moved file's current path to its first one; `touched` are the paths of all
    files that were written.
    """

    origins: dict[Path, Path] = field(default_factory=dict[Path, Path])
    touched: set[Path] = field(default_factory=set[Path])


@dataclass(frozen=True)
class GovernedProposals:
    """`tools.proposals.Proposals` that checks the policy, then asks the session to apply the edit.

    `check_place` is called for every target, `check_free` also for those of new files; `done` gets
    each file that exists afterwards. If the policy allows a sensitive file, the session's own
    `gate` does not ask about it.
    """

    session: Proposals
    gate: PermissionGate
    workspace: Workspace
    policy: Policy
    check_place: PlaceCheck
    check_free: PlaceCheck
    written: WrittenFiles
    done: Callable[[Location, ToolCall], None]

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """Write the result of `rewrite`. Also raises KodeError `Unencodable`, `NotEditable`."""
        place = self._allow(call, "", path)

        def writable(document: Document, text: str) -> str:
            after = rewrite(document, text)
            _check_bytes(place, document, after)
            return after

        proposed = await self.session.propose(path, writable, call)
        self._note(place, proposed, call)
        return _applied(proposed, "Changed", "Your edit was applied to")

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """Write a new file."""
        place = self._allow(call, "create", path)
        self.check_free(place)
        proposed = await self.session.propose_create(path, text, call)
        self._note(place, proposed, call)
        return _applied(proposed, "Created", "Your file was created:")

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """Move a file; `written.origins` records its first path."""
        leaving, place = self._allow(call, "move", source), self._allow(call, "move", target)
        self.check_free(place)
        proposed = await self.session.propose_move(source, target, call)
        if leaving.real.exists():
            raise _not_done(proposed)
        self._note(place, proposed, call)
        origins = self.written.origins
        origins[place.real] = origins.pop(leaving.real, leaving.real)
        name = leaving.display
        return _applied(proposed, f"Moved {name} to", f"{name} was moved to")

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """Delete a file."""
        place = self._allow(call, "delete", path)
        proposed = await self.session.propose_delete(path, call)
        if place.real.exists():
            raise _not_done(proposed)
        self.written.origins.pop(place.real, None)
        return _applied(proposed, "Deleted", "The file was deleted:")

    def _note(self, place: Location, proposed: Proposed, call: ToolCall) -> None:
        """Record a file as written. Raises KodeError `ToolFailed` if it was not."""
        try:
            document = self.workspace.document(place.display, purpose="read")
        except KodeError:
            raise _not_done(proposed) from None
        if document.shown(document.lf_text) != proposed.after:
            raise _not_done(proposed)
        self.written.touched.add(place.real)
        self.done(place, call)

    def _allow(self, call: ToolCall, operation: str, path: str) -> Location:
        """Return the place. Raises KodeError `Denied`, and what `check_place` raises."""
        place = self.workspace.locate(path, purpose="edit")
        self.check_place(place)
        tool = f"{call.name}:{operation}" if operation else call.name
        sensitive = self.workspace.is_sensitive(path)
        check_allowed(self.policy, tool, Subject(place.display, sensitive))
        if sensitive:
            with suppress(KodeError):  # the name is no valid pattern: the session will refuse it
                self.gate.set_rule(tool, place.display, "allow")
        return place


def _applied(proposed: Proposed, did: str, reported: str) -> Proposed:
    """Return the proposal worded as an edit that is already applied."""
    name = proposed.path
    return replace(proposed, summary=f"{did} {name}", message=f"{reported} {name}.")


def _not_done(proposed: Proposed) -> KodeError:
    return KodeError("ToolFailed", f"{proposed.path} was not changed. {proposed.message}")


def _check_bytes(place: Location, document: Document, after: str) -> None:
    """Raise KodeError if a text cannot be encoded, or if unchanged lines would change bytes."""
    try:
        after.encode(document.encoding)
    except UnicodeEncodeError as error:
        raise KodeError(
            "Unencodable",
            f"{place.display} is {document.encoding}, which has no {after[error.start]!r}.",
        ) from None
    if encode(document.text, document.encoding, bom=document.bom) != read_regular(place):
        raise KodeError(
            "NotEditable",
            f"{place.display} holds bytes that {document.encoding} would not write back unchanged.",
        )
