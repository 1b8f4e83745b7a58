"""`sandbox-manifest.json` and `artifact-manifest.json`: what may be written where, and what was."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from kode_sidecar.headless_run.sandbox import FORBIDDEN, READONLY, WRITABLE, ZONES, Sandbox
from kode_sidecar.records.disk import replace_file
from kode_sidecar.records.json_record import encode_json
from kode_sidecar.workspace.paths import screened

SANDBOX_MANIFEST = "sandbox-manifest.json"
ARTIFACT_MANIFEST = "artifact-manifest.json"


class SandboxManifest(Struct, frozen=True, kw_only=True):
    """The zones of a sandbox, relative to its root."""

    root: str
    writable: tuple[str, ...]
    readonly: tuple[str, ...]
    forbidden: tuple[str, ...]
    created_at: str


class Artifact(Struct, frozen=True, kw_only=True):
    """A file that a run made. `path` is relative to the sandbox."""

    path: str
    kind: str
    created_by: str
    required: bool = False
    content_type: str = ""


class ArtifactManifest(Struct, frozen=True, kw_only=True):
    """All of them, by path."""

    artifacts: tuple[Artifact, ...] = ()
    updated_at: str = ""


def write_sandbox_manifest(sandbox: Sandbox, created_at: str) -> None:
    """Raises KodeError `Storage`."""
    manifest = SandboxManifest(
        root=str(sandbox.root),
        writable=WRITABLE,
        readonly=READONLY,
        forbidden=FORBIDDEN,
        created_at=created_at,
    )
    _write(sandbox, SANDBOX_MANIFEST, manifest)


class Artifacts:
    """`contracts.ArtifactRegister`; the manifest is there from the beginning.

    `required` are the paths of required deliverables. Raises KodeError `Storage`.
    """

    def __init__(self, sandbox: Sandbox, timestamp: Callable[[], str]) -> None:
        self._sandbox = sandbox
        self._timestamp = timestamp
        self._found: dict[str, Artifact] = {}
        self.required: frozenset[str] = frozenset()
        self._save()

    def add(self, path: str, *, kind: str, created_by: str, content_type: str = "") -> None:
        """See `contracts.ArtifactRegister`."""
        anchor, parts = screened(path)
        name = "/".join(parts)
        if anchor or not parts or parts[0] not in ZONES:
            # Not even a bug may put a way out of the sandbox into the manifest.
            self._sandbox.locate(path, "read")
        known = self._found.get(name)
        self._found[name] = Artifact(
            path=name,
            kind=kind,
            created_by=created_by or (known.created_by if known else "unknown"),
            required=name in self.required,
            content_type=content_type or (known.content_type if known else ""),
        )
        if self._found[name] == known:
            return
        self._save()

    @property
    def found(self) -> tuple[Artifact, ...]:
        """What is in the manifest, by path."""
        return tuple(self._found[path] for path in sorted(self._found))

    def _save(self) -> None:
        manifest = ArtifactManifest(artifacts=self.found, updated_at=self._timestamp())
        _write(self._sandbox, ARTIFACT_MANIFEST, manifest)


def _write(sandbox: Sandbox, name: str, manifest: Struct) -> None:
    data = msgspec.json.format(encode_json(manifest), indent=2) + b"\n"
    replace_file(sandbox.root / name, data, durable=False)
