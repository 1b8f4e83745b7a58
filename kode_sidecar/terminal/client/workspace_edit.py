"""Plans LSP WorkspaceEdits (3.17 "WorkspaceEdit"), checked whole before anything changes."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kode_sidecar.core.text.text_edit import Edit
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.core.text.uris import canonical_key, file_path
from kode_sidecar.terminal.client.buffer import Buffer

FindBuffer = Callable[[str], Buffer | None]


@dataclass(frozen=True)
class FileOperation:
    """One operation on a file; `target` is the new path of a rename. Overwrites nothing."""

    kind: Literal["create", "rename", "delete"]
    path: Path
    target: Path = Path()

    def carry_out(self) -> None:
        """Carry out the operation; make missing folders. Raises OSError."""
        match self.kind:
            case "create":
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.open("xb").close()
            case "rename":
                if os.path.lexists(self.target):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.target)
                self.target.parent.mkdir(parents=True, exist_ok=True)
                self.path.rename(self.target)
            case "delete":
                self.path.unlink()


@dataclass
class EditPlan:
    """The steps of an edit: `files` on disk, drop `removed`, add `touched`, apply `changes`.

    `reopened` are those touched buffers that replace a synced document after a rename.
    """

    files: list[FileOperation] = field(default_factory=list[FileOperation])
    removed: list[str] = field(default_factory=list[str])
    touched: list[Buffer] = field(default_factory=list[Buffer])
    reopened: list[Buffer] = field(default_factory=list[Buffer])
    changes: list[tuple[Buffer, list[Edit]]] = field(
        default_factory=list[tuple[Buffer, list[Edit]]]
    )


def plan_edit(
    edit: dict[str, Any],
    opened: FindBuffer,
    loaded: FindBuffer,
    encoding: PositionEncoding = "utf-16",
) -> EditPlan:
    """Plan a WorkspaceEdit: one edit of text per document, operations on files and not folders.

    `opened` returns the buffer of a document, `loaded` also one read from disk. Raises ValueError
    or OSError; then nothing may be changed.
    """
    planner = _Planner(opened, loaded, encoding)
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
    """Plans the entries one by one: `_there` and `_buffers` are the files after those so far."""

    def __init__(self, opened: FindBuffer, loaded: FindBuffer, encoding: PositionEncoding) -> None:
        self._opened_before = opened
        self._loaded_before = loaded
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
        there = self._there.get(canonical_key(uri))
        return os.path.lexists(file_path(uri)) if there is None else there

    def _opened(self, uri: str) -> Buffer | None:
        key = canonical_key(uri)
        return self._buffers[key] if key in self._buffers else self._opened_before(uri)

    def _touch(self, buffer: Buffer) -> None:
        self._buffers[canonical_key(buffer.uri)] = buffer
        if buffer not in self.plan.touched:
            self.plan.touched.append(buffer)

    def _change(self, uri: str, version: int | None, edits: list[dict[str, Any]]) -> None:
        key = canonical_key(uri)
        buffer = self._buffers[key] if key in self._buffers else self._loaded_before(uri)
        if buffer is None:
            raise ValueError(f"{uri} does not exist")
        if any(changed is buffer for changed, _ in self.plan.changes):
            raise ValueError(f"{uri} is edited twice in one WorkspaceEdit")
        self._touch(buffer)
        self.plan.changes.append((buffer, buffer.check(edits, version)))

    def _create(self, uri: str, options: dict[str, Any]) -> None:
        if self._makes_way(uri, options):
            self.plan.files.append(FileOperation("create", file_path(uri)))
            self._there[canonical_key(uri)] = True
            self._touch(Buffer(uri, "", encoding=self._encoding))

    def _rename(self, old_uri: str, new_uri: str, options: dict[str, Any]) -> None:
        self._require(old_uri)
        if not self._makes_way(new_uri, options):
            return
        self.plan.files.append(FileOperation("rename", file_path(old_uri), file_path(new_uri)))
        buffer = self._opened(old_uri)
        self._forget(old_uri)
        self._there[canonical_key(new_uri)] = True
        if buffer is not None:
            moved = Buffer(
                new_uri, buffer.text, language_id=buffer.language_id, encoding=buffer.encoding
            )
            self._touch(moved)
            self.plan.changes = [
                (moved if changed is buffer else changed, edits)
                for changed, edits in self.plan.changes
            ]
            if buffer.synced or buffer in self.plan.reopened:
                self.plan.reopened.append(moved)

    def _delete(self, uri: str, options: dict[str, Any]) -> None:
        if self._exists(uri) or not options.get("ignoreIfNotExists"):
            self._require(uri)
            self.plan.files.append(FileOperation("delete", file_path(uri)))
            gone = self._opened(uri)
            self.plan.changes = [one for one in self.plan.changes if one[0] is not gone]
            self._forget(uri)

    def _require(self, uri: str) -> None:
        if not self._exists(uri):
            raise ValueError(f"{uri} does not exist")

    def _makes_way(self, uri: str, options: dict[str, Any]) -> bool:
        """Return whether a file can be created there; False if an existing one must stay."""
        if not self._exists(uri):
            return True
        if options.get("overwrite"):
            self._delete(uri, {})
            return True
        if options.get("ignoreIfExists"):
            return False
        raise ValueError(f"{uri} exists")

    def _forget(self, uri: str) -> None:
        """Plan that no file is there, and drop the buffer that the plan wanted there."""
        gone = self._opened(uri)
        if gone is not None and gone in self.plan.touched:
            self.plan.touched.remove(gone)
        self._there[canonical_key(uri)] = False
        self._buffers[canonical_key(uri)] = None
        self.plan.removed.append(uri)
