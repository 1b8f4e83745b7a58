"""LSP WorkspaceEdits (3.17 "WorkspaceEdit") checked whole before anything is changed."""

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from kode_sidecar.client.buffer import Buffer
from kode_sidecar.client.file_operation import FileOperation
from kode_sidecar.client.positions import PositionEncoding, Span
from kode_sidecar.client.uris import path_of, uri_key


class Buffers(Protocol):
    """What an editor has before the edit."""

    def opened(self, uri: str) -> Buffer | None:
        """The buffer of a document."""
        ...

    def loaded(self, uri: str) -> Buffer | None:
        """The same, read from the disk if need be; None where there is no file."""
        ...


@dataclass
class EditPlan:
    """What to do: `files` on disk, forget `removed`, keep `touched`, then apply `changes`.

    `reopened` are those of the touched buffers that a synced document goes on in under a new name.
    """

    files: list[FileOperation] = field(default_factory=list[FileOperation])
    removed: list[str] = field(default_factory=list[str])
    touched: list[Buffer] = field(default_factory=list[Buffer])
    reopened: list[Buffer] = field(default_factory=list[Buffer])
    changes: list[tuple[Buffer, list[Span]]] = field(
        default_factory=list[tuple[Buffer, list[Span]]]
    )


def plan_edit(
    edit: dict[str, Any], buffers: Buffers, encoding: PositionEncoding = "utf-16"
) -> EditPlan:
    """Plan a WorkspaceEdit: one edit of text per document, operations on files and not folders.

    Raises StaleVersion, InvalidPosition, ValueError or OSError; then nothing may be changed.
    """
    planner = _Planner(buffers, encoding)
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
    """`_there` and `_buffers` are what the entries up to now have made of the files."""

    def __init__(self, buffers: Buffers, encoding: PositionEncoding) -> None:
        self._before = buffers
        self._encoding: PositionEncoding = encoding
        self._there: dict[str, bool] = {}
        self._buffers: dict[str, Buffer | None] = {}
        self.plan = EditPlan()

    def add(self, entry: dict[str, Any]) -> None:
        options: dict[str, Any] = entry.get("options") or {}
        match entry.get("kind"):
            case None:
                document = entry["textDocument"]
                self._change(document["uri"], document.get("version"), entry["edits"])
            case "create":
                self._create(entry["uri"], options)
            case "rename":
                self._rename(entry["oldUri"], entry["newUri"], options)
            case "delete":
                self._delete(entry["uri"], options)
            case kind:
                raise ValueError(f"unknown file operation {kind!r}")

    def _exists(self, uri: str) -> bool:
        there = self._there.get(uri_key(uri))
        return os.path.lexists(path_of(uri)) if there is None else there

    def _opened(self, uri: str) -> Buffer | None:
        key = uri_key(uri)
        return self._buffers[key] if key in self._buffers else self._before.opened(uri)

    def _keep(self, buffer: Buffer) -> None:
        self._buffers[uri_key(buffer.uri)] = buffer
        if buffer not in self.plan.touched:
            self.plan.touched.append(buffer)

    def _change(self, uri: str, version: int | None, edits: list[dict[str, Any]]) -> None:
        key = uri_key(uri)
        buffer = self._buffers[key] if key in self._buffers else self._before.loaded(uri)
        if buffer is None:
            raise ValueError(f"{uri} does not exist")
        if any(changed is buffer for changed, _ in self.plan.changes):
            raise ValueError(f"{uri} is edited twice in one WorkspaceEdit")
        self._keep(buffer)
        self.plan.changes.append((buffer, buffer.check(edits, version)))

    def _create(self, uri: str, options: dict[str, Any]) -> None:
        if self._makes_way(uri, options):
            self.plan.files.append(FileOperation("create", path_of(uri)))
            self._there[uri_key(uri)] = True
            self._keep(Buffer(uri, "", encoding=self._encoding))

    def _rename(self, old_uri: str, new_uri: str, options: dict[str, Any]) -> None:
        self._require(old_uri)
        if not self._makes_way(new_uri, options):
            return
        self.plan.files.append(FileOperation("rename", path_of(old_uri), path_of(new_uri)))
        buffer = self._opened(old_uri)
        self._forget(old_uri)
        self._there[uri_key(new_uri)] = True
        if buffer is not None:
            moved = Buffer(
                new_uri, buffer.text, language_id=buffer.language_id, encoding=buffer.encoding
            )
            self._keep(moved)
            if buffer.synced:
                self.plan.reopened.append(moved)

    def _delete(self, uri: str, options: dict[str, Any]) -> None:
        if self._exists(uri) or not options.get("ignoreIfNotExists"):
            self._require(uri)
            self.plan.files.append(FileOperation("delete", path_of(uri)))
            self._forget(uri)

    def _require(self, uri: str) -> None:
        if not self._exists(uri):
            raise ValueError(f"{uri} does not exist")

    def _makes_way(self, uri: str, options: dict[str, Any]) -> bool:
        """Whether a file can be put there; False where the one that is there shall stay."""
        if not self._exists(uri):
            return True
        if options.get("overwrite"):
            self._delete(uri, {})
            return True
        if options.get("ignoreIfExists"):
            return False
        raise ValueError(f"{uri} exists")

    def _forget(self, uri: str) -> None:
        self._there[uri_key(uri)] = False
        self._buffers[uri_key(uri)] = None
        self.plan.removed.append(uri)
