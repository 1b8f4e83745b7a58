"""LSP WorkspaceEdits (3.17 "WorkspaceEdit") checked whole before anything is changed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.client.buffer import Buffer
from kode_sidecar.client.positions import PositionEncoding, Span
from kode_sidecar.client.uris import uri_key


@dataclass
class EditPlan:
    """What to do, in this order: forget `removed`, keep `touched`, then apply `changes`."""

    removed: list[str] = field(default_factory=list[str])
    touched: list[Buffer] = field(default_factory=list[Buffer])
    changes: list[tuple[Buffer, list[Span]]] = field(
        default_factory=list[tuple[Buffer, list[Span]]]
    )


def plan_edit(
    edit: dict[str, Any],
    find: Callable[[str], Buffer | None],
    encoding: PositionEncoding = "utf-16",
) -> EditPlan:
    """Plan a WorkspaceEdit; `find` gives the buffer of a URI, loading it if need be.

    One edit of text per document. Raises StaleVersion, InvalidPosition or ValueError; then
    nothing may be changed.
    """
    planner = _Planner(find, encoding)
    entries = edit.get("documentChanges")
    if entries is None:
        changes: dict[str, Any] = edit.get("changes") or {}
        entries = [
            {"textDocument": {"uri": uri, "version": None}, "edits": edits}
            for uri, edits in changes.items()
        ]
    for entry in entries:
        planner.add(entry)
    return planner.plan


class _Planner:
    def __init__(self, find: Callable[[str], Buffer | None], encoding: PositionEncoding) -> None:
        self._find_known = find
        self._encoding: PositionEncoding = encoding
        self._buffers: dict[str, Buffer | None] = {}
        self.plan = EditPlan()

    def add(self, entry: dict[str, Any]) -> None:
        match entry.get("kind"):
            case None:
                document = entry["textDocument"]
                self._change(document["uri"], document.get("version"), entry["edits"])
            case "create":
                self._create(entry["uri"], entry.get("options") or {})
            case "rename":
                self._rename(entry["oldUri"], entry["newUri"])
            case "delete":
                self._existing(entry["uri"])
                self._remove(entry["uri"])
            case kind:
                raise ValueError(f"unknown file operation {kind!r}")

    def _find(self, uri: str) -> Buffer | None:
        key = uri_key(uri)
        if key not in self._buffers:
            self._buffers[key] = self._find_known(uri)
        return self._buffers[key]

    def _existing(self, uri: str) -> Buffer:
        buffer = self._find(uri)
        if buffer is None:
            raise ValueError(f"{uri} does not exist")
        return buffer

    def _keep(self, buffer: Buffer) -> None:
        self._buffers[uri_key(buffer.uri)] = buffer
        if buffer not in self.plan.touched:
            self.plan.touched.append(buffer)

    def _remove(self, uri: str) -> None:
        self._buffers[uri_key(uri)] = None
        self.plan.removed.append(uri)

    def _change(self, uri: str, version: int | None, edits: list[dict[str, Any]]) -> None:
        buffer = self._existing(uri)
        if any(changed is buffer for changed, _ in self.plan.changes):
            raise ValueError(f"{uri} is edited twice in one WorkspaceEdit")
        self._keep(buffer)
        self.plan.changes.append((buffer, buffer.check(edits, version)))

    def _create(self, uri: str, options: dict[str, Any]) -> None:
        known = self._find(uri)
        if known is not None and not options.get("overwrite"):
            if options.get("ignoreIfExists"):
                return
            raise ValueError(f"{uri} exists")
        if known is not None:
            self._remove(uri)
        self._keep(Buffer(uri, "", encoding=self._encoding))

    def _rename(self, old_uri: str, new_uri: str) -> None:
        buffer = self._existing(old_uri)
        if self._find(new_uri) is not None:
            raise ValueError(f"{new_uri} exists")
        self._remove(old_uri)
        moved = Buffer(
            new_uri, buffer.text, language_id=buffer.language_id, encoding=buffer.encoding
        )
        self._keep(moved)
