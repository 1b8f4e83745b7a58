"""`write_artifact`: writes a file to a writable zone and lists it in the manifest (B4)."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.tools.governed import Subject, Subjects
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES, read_regular
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.jobs.run.contracts import RunScope
from kode_sidecar.jobs.run.project_patch import CHANGES_PATCH
from kode_sidecar.jobs.run.sandbox import DELIVERABLES, write_file

WRITE_ARTIFACT = "write_artifact"
_CONTENT_TYPES = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".json": "application/json",
    ".html": "text/html",
    ".csv": "text/csv",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".svg": "image/svg+xml",
    ".diff": "text/x-diff",
    ".patch": "text/x-diff",
}


class WriteArtifactParams(Struct, forbid_unknown_fields=True):
    """Write a file that this run delivers, such as a report. Replaces what is there, or appends.

    Write it out in full; a long one in several calls with `append`. To change files of the
    project use propose_edit.
    """

    path: Annotated[
        str, Meta(min_length=1, description="File in the sandbox, e.g. deliverables/report.md")
    ]
    content: Annotated[str, Meta(description="The text")]
    append: Annotated[bool, Meta(description="Add to the end of what you wrote before")] = False


def artifact_subject(scope: RunScope) -> Subjects:
    """Return the target path of an artifact as the subject of rules."""

    def subjects(params: WriteArtifactParams) -> Sequence[Subject]:
        place = scope.sandbox.locate(params.path, "write")
        return (Subject(place.display, scope.workspace.is_sensitive(place.path)),)

    return subjects


Wrote = Callable[[Location, bytes | None, bytes], None]
"""`(place, before, after)`: called for each file written; `before` is None for a new file."""


def write_artifact_tool(
    scope: RunScope, check_free: Callable[[Location], None], wrote: Wrote
) -> Tool:
    """Make the tool. `check_free` refuses files of the project."""
    written: set[str] = set()

    async def run(params: WriteArtifactParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        place = scope.sandbox.locate(params.path, "write")
        _check(scope, place, params.content)
        if place.root.name != DELIVERABLES:
            _check_new(place, written)
            check_free(place)
        old = read_regular(place) if place.real.exists() else None
        before = old or b"" if params.append else b""
        data = before + params.content.encode("utf-8", "replace")
        if len(data) > MAX_FILE_BYTES:
            text = f"{place.display} would grow beyond {MAX_FILE_BYTES:,} bytes."
            raise KodeError("TooLarge", text)
        write_file(place, data)
        written.add(place.display)
        wrote(place, old, data)
        kind = "deliverable" if place.root.name == DELIVERABLES else "workspace"
        scope.artifacts.add(
            place.display,
            kind=kind,
            created_by=WRITE_ARTIFACT,
            content_type=content_type_of(place.display),
        )
        reported = f"{place.display} now has {len(data):,} bytes."
        summary = f"Wrote {place.display} ({len(data):,} bytes)"
        return ToolOutcome(ok=True, summary=summary, content=reported, artifacts=(place.display,))

    return Tool(WRITE_ARTIFACT, WriteArtifactParams, run, kind="edit", card=_card)


def _card(params: WriteArtifactParams) -> CallCard:
    return CallCard(f"Write {params.path}")


def content_type_of(path: str) -> str:
    """Return the content type of a deliverable, by the ending of its name; else ""."""
    return _CONTENT_TYPES.get(PurePosixPath(path).suffix.lower(), "")


def check_not_the_patch(scope: RunScope, place: Location) -> None:
    """Raises KodeError `Denied` for the patch: it must show what was really changed."""
    if place.display == CHANGES_PATCH and scope.config.workspace.source is not None:
        raise KodeError("Denied", f"{CHANGES_PATCH} is made from your edits when the run is done.")


def _check(scope: RunScope, place: Location, content: str) -> None:
    """Raise KodeError `Denied` for what must not be written in any zone."""
    if place.is_refused:
        raise KodeError("Denied", f"{place.display} belongs to Git and is never written.")
    if place.is_secret:
        raise KodeError("Denied", f"{place.display} holds credentials by its name.")
    check_not_the_patch(scope, place)
    what = find_secret(content)
    if what is not None:
        text = f"{place.display} was not written: it holds {what}. Leave that out."
        raise KodeError("Denied", text)


def _check_new(place: Location, written: set[str]) -> None:
    if place.display not in written and place.real.exists():
        raise KodeError(
            "ToolFailed", f"{place.display} exists already. Change it with propose_edit."
        )
