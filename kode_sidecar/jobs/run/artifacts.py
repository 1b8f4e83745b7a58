"""Lists the artifacts of a run in a manifest, and checks its deliverables (B4)."""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.paths import screened
from kode_sidecar.jobs.run.run_config import DeliverablePart
from kode_sidecar.jobs.run.sandbox import (
    DELIVERABLES,
    ZONES,
    Sandbox,
    write_manifest,
)

ARTIFACT_MANIFEST = "artifact-manifest.json"
MAX_FILES = 1_000
"""The most files of one run that are listed as delivered."""


class Artifact(Struct, frozen=True, kw_only=True):
    """A file that a run made. `path` is relative to the sandbox."""

    path: str
    kind: str
    created_by: str
    required: bool = False
    content_type: str | None = None


class ArtifactManifest(Struct, frozen=True, kw_only=True):
    """The artifacts of a run by path, as the manifest holds them."""

    artifacts: tuple[Artifact, ...] = ()
    updated_at: str = ""


class Artifacts:
    """Writes `artifact-manifest.json`, which exists from the start.

    `required` are the paths of required deliverables. Raises KodeError `Storage`.
    """

    def __init__(
        self, sandbox: Sandbox, timestamp: Callable[[], str], required: Collection[str] = ()
    ) -> None:
        self._sandbox = sandbox
        self._timestamp = timestamp
        self._found: dict[str, Artifact] = {}
        self._required = required
        self._save()

    def add(self, path: str, *, kind: str, created_by: str, content_type: str = "") -> None:
        """List a file by its sandbox-relative path; a second call replaces what it gives anew.

        `kind` is `deliverable`, `workspace`, `memory`, `tool_output` or `event_data`,
        `created_by` a tool's name or `runtime`. Also raises KodeError `PathOutsideRoots`.
        """
        anchor, parts = screened(path)
        name = "/".join(parts)
        if anchor or not parts or parts[0] not in ZONES:
            # Even a bug must not put a path out of the sandbox into the manifest.
            self._sandbox.locate(path, "read")
        known = self._found.get(name)
        self._found[name] = Artifact(
            path=name,
            kind=kind,
            created_by=created_by or (known.created_by if known else "unknown"),
            required=name in self._required,
            content_type=content_type or (known.content_type if known else None),
        )
        if self._found[name] == known:
            return
        self._save()

    @property
    def found(self) -> tuple[Artifact, ...]:
        """The artifacts in the manifest, sorted by path."""
        return tuple(self._found[path] for path in sorted(self._found))

    def _save(self) -> None:
        manifest = ArtifactManifest(artifacts=self.found, updated_at=self._timestamp())
        write_manifest(self._sandbox.root / ARTIFACT_MANIFEST, manifest)


@dataclass(frozen=True)
class CheckedDeliverable:
    """One deliverable of the configuration, checked. `problem` is empty if it is as required.

    `refusal` is set if its path leads out of the sandbox.
    """

    path: str
    required: bool
    bytes: int
    content_type: str = ""
    problem: str = ""
    refusal: ErrorInfo | None = None

    @property
    def ok(self) -> bool:
        """True if the deliverable is as required."""
        return not self.problem


def check_deliverables(
    wanted: Sequence[DeliverablePart], sandbox: Sandbox
) -> tuple[CheckedDeliverable, ...]:
    """Check each deliverable, in the order given."""
    return tuple(_check(one, sandbox) for one in wanted)


def delivered_files(sandbox: Sandbox) -> list[str]:
    """Return the files under `deliverables/`, requested or not, however they were made.

    Only regular files with a single name, sandbox-relative, the first `MAX_FILES` by path.
    """
    found: list[str] = []
    for folder, folders, names in os.walk(sandbox.zone(DELIVERABLES)):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                found.append(sandbox.relative(Path(path)))
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def missing_error(found: Sequence[CheckedDeliverable]) -> ErrorInfo | None:
    """Return the error for required deliverables that are not as required; None if all are."""
    missing = [one for one in found if one.required and not one.ok]
    if not missing:
        return None
    reported = "; ".join(f"{one.path} {one.problem}" for one in missing)
    return failure(
        "DeliverableMissing",
        f"The run did not deliver what it must: {reported}.",
        paths=[one.path for one in missing],
    )


def _check(wanted: DeliverablePart, sandbox: Sandbox) -> CheckedDeliverable:
    size, problem, refusal = 0, "", None
    try:
        place = sandbox.locate(wanted.path, "read")
        status = os.lstat(place.real)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            problem = "is not a regular file"
        elif status.st_nlink > 1:
            problem = "is a second name of another file"
        elif size < wanted.min_bytes:
            problem = f"has {size} bytes, at least {wanted.min_bytes} were asked for"
    except KodeError as error:
        problem, refusal = "leads out of the sandbox", error_info(error)
    except OSError:
        problem = "is missing"
    return CheckedDeliverable(
        path=wanted.path,
        required=wanted.required,
        bytes=size,
        content_type=wanted.content_type or "",
        problem=problem,
        refusal=refusal,
    )
