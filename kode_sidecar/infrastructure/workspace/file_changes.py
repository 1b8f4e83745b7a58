"""Tracks files that a session has proposed to create, move or delete; the disk is unchanged."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.domain.change_set import FileChangeKind
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.uris import canonical_key, path_to_uri
from kode_sidecar.infrastructure.workspace.paths import Location


@dataclass(frozen=True)
class FileChange:
    """One file to create with `text`, to rename to `target`, or to delete while it has `text`.

    `text` has the line ends of a file that is or was there, or uniform ones in a proposed file.
    `uri` is the editor's spelling of the file.
    """

    id: str
    kind: FileChangeKind
    uri: str
    place: Location
    target: Location | None = None
    text: str = ""

    @property
    def key(self) -> str:
        """The canonical key of the file."""
        return canonical_key(self.uri)

    @property
    def lf_text(self) -> str:
        """The text with LF line ends."""
        return to_lf(self.text)

    @property
    def target_uri(self) -> str | None:
        """The new URI of a renamed file."""
        return path_to_uri(self.target.path) if self.target else None

    @property
    def adds(self) -> Location | None:
        """The place that gets a file by this change."""
        return self.place if self.kind == "create" else self.target

    @property
    def removes(self) -> Location | None:
        """The place that loses its file by this change."""
        return None if self.kind == "create" else self.place

    def inverse(self) -> "FileChange":
        """Return the change that reverts this one."""
        if self.kind == "rename" and self.target is not None:
            uri = path_to_uri(self.target.path)
            return FileChange(self.id, "rename", uri, self.target, self.place)
        kind = "delete" if self.kind == "create" else "create"
        return FileChange(self.id, kind, self.uri, self.place, text=self.text)


class FileChanges:
    """Pending changes of files, each in a turn; a branch of the conversation sees its own.

    For a finished change it holds the inverse, under the same id. It also holds the text of files
    created in an editor that neither syncs them nor has saved them yet.
    """

    def __init__(self) -> None:
        self._changes: dict[str, FileChange] = {}
        self._inverses: dict[str, FileChange] = {}
        self._turns: dict[str, str] = {}
        self._branch: frozenset[str] = frozenset()
        self._unsaved: dict[Path, FileChange] = {}

    def enter_branch(self, turn_ids: Collection[str]) -> None:
        """Show only the changes of these turns from now on."""
        self._branch = frozenset(turn_ids)

    def add(self, change: FileChange, turn_id: str) -> None:
        """Make a change pending."""
        self._changes[change.id] = change
        self._turns[change.id] = turn_id

    def remove(self, ids: Iterable[str]) -> None:
        """Drop these changes: they are no longer pending."""
        for change_id in ids:
            self._changes.pop(change_id, None)
            self._turns.pop(change_id, None)

    def detach(self, ids: Iterable[str]) -> None:
        """Hide these changes from every branch, but keep them so that they can be retried."""
        for change_id in ids:
            self._turns.pop(change_id, None)

    def find(self, change_id: str) -> FileChange | None:
        """Return the pending change, or the inverse of a finished one, or None."""
        return self._changes.get(change_id) or self._inverses.get(change_id)

    def finish(self, change: FileChange) -> None:
        """Note that the change, or its inverse, was applied."""
        self.remove([change.id])
        self._inverses[change.id] = change.inverse()

    def visible(self) -> list[FileChange]:
        """Return the branch's changes, oldest first."""
        mine = self._branch
        return [one for one in self._changes.values() if self._turns.get(one.id) in mine]

    def adding(self, real: Path) -> FileChange | None:
        """Return the visible change that would add a file at this place."""
        return next((c for c in self.visible() if c.adds and c.adds.real == real), None)

    def removing(self, real: Path) -> FileChange | None:
        """Return the visible change that would remove the file at this place."""
        return next((c for c in self.visible() if c.removes and c.removes.real == real), None)

    def assume_created(self, change: FileChange) -> None:
        """Note that the editor has created this file, which is neither synced nor saved yet."""
        self._unsaved[change.place.real] = change

    def unsaved(self, real: Path) -> FileChange | None:
        """Return a file created in the editor that has not been seen since."""
        return self._unsaved.get(real)

    def forget_unsaved(self, real: Path) -> None:
        """Drop an unsaved file: it was seen, or it is gone."""
        self._unsaved.pop(real, None)
