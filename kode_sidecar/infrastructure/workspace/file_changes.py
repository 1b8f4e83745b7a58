"""Files that a session has proposed to create, move or delete: nothing of it is on disk."""

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

    `text` has the line ends of a file that is or was there, or one for all lines where it is only
    proposed. `uri` is the editor's spelling of the file.
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
        """Where a renamed file goes."""
        return path_to_uri(self.target.path) if self.target else None

    @property
    def adds(self) -> Location | None:
        """The place where there is a file afterwards and was none before."""
        return self.place if self.kind == "create" else self.target

    @property
    def removes(self) -> Location | None:
        """The place where there is none afterwards."""
        return None if self.kind == "create" else self.place

    def inverse(self) -> "FileChange":
        """Return what takes it back once it is done."""
        if self.kind == "rename" and self.target is not None:
            uri = path_to_uri(self.target.path)
            return FileChange(self.id, "rename", uri, self.target, self.place)
        kind = "delete" if self.kind == "create" else "create"
        return FileChange(self.id, kind, self.uri, self.place, text=self.text)


class FileChanges:
    """Pending changes of files, each in a turn; a branch of the conversation sees its own.

    Of what is done it keeps the inverse, under the same id. It also knows the text of files that
    were created in an editor which neither syncs nor has saved them yet.
    """

    def __init__(self) -> None:
        self._changes: dict[str, FileChange] = {}
        self._inverses: dict[str, FileChange] = {}
        self._turns: dict[str, str] = {}
        self._branch: frozenset[str] = frozenset()
        self._unsaved: dict[Path, FileChange] = {}

    def enter_branch(self, turn_ids: Collection[str]) -> None:
        """See the changes of these turns, and no others, from now on."""
        self._branch = frozenset(turn_ids)

    def add(self, change: FileChange, turn_id: str) -> None:
        """Make a change pending."""
        self._changes[change.id] = change
        self._turns[change.id] = turn_id

    def remove(self, ids: Iterable[str]) -> None:
        """These changes are no longer pending, whatever became of them."""
        for change_id in ids:
            self._changes.pop(change_id, None)
            self._turns.pop(change_id, None)

    def detach(self, ids: Iterable[str]) -> None:
        """No branch sees these changes any more; they may be tried again."""
        for change_id in ids:
            self._turns.pop(change_id, None)

    def find(self, change_id: str) -> FileChange | None:
        """Return the change to do, or once it is done the one that takes it back."""
        return self._changes.get(change_id) or self._inverses.get(change_id)

    def finish(self, change: FileChange) -> None:
        """The change, or its inverse, is done."""
        self.remove([change.id])
        self._inverses[change.id] = change.inverse()

    def visible(self) -> list[FileChange]:
        """Return the branch's changes, oldest first."""
        mine = self._branch
        return [one for one in self._changes.values() if self._turns.get(one.id) in mine]

    def adding(self, real: Path) -> FileChange | None:
        """Return the change that would put a file at this place."""
        return next((c for c in self.visible() if c.adds and c.adds.real == real), None)

    def removing(self, real: Path) -> FileChange | None:
        """Return the change that would take the file at this place away."""
        return next((c for c in self.visible() if c.removes and c.removes.real == real), None)

    def assume_created(self, change: FileChange) -> None:
        """The editor has created this file, but nobody can see it yet."""
        self._unsaved[change.place.real] = change

    def unsaved(self, real: Path) -> FileChange | None:
        """Return a file created in the editor that was never seen since."""
        return self._unsaved.get(real)

    def forget_unsaved(self, real: Path) -> None:
        """The file was seen, or it is gone."""
        self._unsaved.pop(real, None)
