"""The change sets of a session: hunks from proposal to verified edit, and back."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from kode_sidecar.domain.agent_event import Event
from kode_sidecar.edits.announcer import Announcer
from kode_sidecar.edits.change_set_views import ChangeSetViews
from kode_sidecar.edits.decisions import Decisions, choose, result
from kode_sidecar.edits.edit_locks import EditLocks
from kode_sidecar.edits.edit_sender import ANSWER_SECONDS, EditSender
from kode_sidecar.edits.edit_services import EditServices
from kode_sidecar.edits.file_sender import FileSender
from kode_sidecar.edits.file_watch import FileWatch
from kode_sidecar.edits.hunk_ledger import HunkLedger
from kode_sidecar.edits.proposer import Proposer
from kode_sidecar.edits.restored_hunks import RestoredHunks
from kode_sidecar.edits.session_files import SessionFiles
from kode_sidecar.edits.undo import Undo
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import EventHistory
from kode_sidecar.event_log.editor_port import EditorPort
from kode_sidecar.kernel.contracts import Alarm, NewId
from kode_sidecar.permissions import PermissionGate, UserQuestions
from kode_sidecar.protocol.change_set import (
    ChangeSetListResult,
    ChangeSetView,
    DecideParams,
    DecideResult,
    UndoParams,
    UndoResult,
)
from kode_sidecar.protocol.session import Mode
from kode_sidecar.workspace.file_changes import FileChanges
from kode_sidecar.workspace.freshness import Freshness
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace

SETTLE_SECONDS = 2.0


async def _at_once() -> None:
    """Nothing holds events back."""


class ChangeSets:
    """One change set per turn that proposes something.

    `session_files` is what the model reads, `freshness` what it has read, `files` tells of changes
    by others, `proposals` takes what the model proposes. `emit` returns the `seq` of
    the event, `save` makes decisions durable before they are answered, `published` returns once no
    emitted event is held back: an edit never overtakes its announcement (O6). Sessions of one
    editor share `locks`: at most one unverified edit per URI.
    """

    def __init__(
        self,
        *,
        session_id: str,
        workspace: Workspace,
        editor: EditorPort,
        emit: Callable[[Event], int],
        new_id: NewId,
        questions: UserQuestions,
        now: Callable[[], str],
        alarm: Alarm,
        save: Callable[[], Awaitable[None]],
        published: Callable[[], Awaitable[None]] = _at_once,
        locks: EditLocks | None = None,
        settle_seconds: float = SETTLE_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._session_id = session_id
        self._save = save
        self._branch: frozenset[str] = frozenset()
        locks = locks or EditLocks()
        self.overlay = overlay = Overlay()
        self._changes = changes = FileChanges()
        self.freshness = freshness = Freshness(overlay.current, now)
        self.session_files = files = SessionFiles(
            workspace, overlay, changes, editor.open_document, alarm
        )
        self.files = watch = FileWatch(workspace, files.known, freshness, emit)
        self._ledger = ledger = HunkLedger(emit, new_id)
        announcer = Announcer(workspace, overlay, changes, ledger, freshness, new_id)
        times = (settle_seconds, answer_seconds, alarm)
        self._sender = sender = EditSender(
            workspace, overlay, files.find, editor, watch, new_id, *times
        )
        file_sender = FileSender(workspace, overlay, files, changes, editor, watch, *times)
        edits = EditServices(ledger, overlay, files, announcer, sender, file_sender, locks)
        self._decisions = Decisions(edits)
        self._undo = Undo(edits)
        self._restored = RestoredHunks(workspace, overlay, changes, ledger)
        self._views = ChangeSetViews(overlay, files, announcer)
        self.permissions = PermissionGate(session_id, editor, emit, new_id, questions, now)
        self.proposals = Proposer(
            workspace=workspace,
            overlay=overlay,
            files=files,
            freshness=freshness,
            watch=watch,
            announcer=announcer,
            ledger=ledger,
            decisions=self._decisions,
            gate=self.permissions,
            editor=editor,
            locks=locks,
            published=published,
        )

    def close(self) -> None:
        """Stop following the documents and give up what is on its way."""
        self._decisions.close()
        self._undo.close()
        self._sender.close()
        self.files.close()

    def restore(self, history: EventHistory) -> None:
        """Take over the change sets of earlier processes; see `RestoredHunks`."""
        self._restored.restore(history)

    def enter_turn(self, turn_id: str, mode: Mode, path_turn_ids: Collection[str]) -> None:
        """A turn begins: its overlay is that of the turns on the path it grows from."""
        self._branch = frozenset((turn_id, *path_turn_ids))
        self.overlay.enter_branch(self._branch)
        self._changes.enter_branch(self._branch)
        self.proposals.mode = mode

    def pending_paths(self) -> Sequence[str]:
        """URIs of the files that the model sees otherwise than the editor has saved them."""
        return self.session_files.pending_paths()

    def has(self, some_id: str) -> bool:
        """Whether a change set, a turn that has one, or a hunk of that id belongs here."""
        return self._ledger.holding(some_id) is not None

    def list(self) -> ChangeSetListResult:
        """All change sets, oldest first."""
        sets = self._ledger.change_sets
        return ChangeSetListResult(
            change_sets=tuple(self._views.summary(one, self._branch) for one in sets)
        )

    def all_views(self) -> Sequence[ChangeSetView]:
        """All change sets as they stand now, oldest first."""
        return [self.get(change_set.id) for change_set in self._ledger.change_sets]

    def get(self, change_set_id: str) -> ChangeSetView:
        """A change set as it stands now. Raises KodeError `ChangeSetNotFound`."""
        return self._views.whole(self._session_id, self._ledger.change_set(change_set_id))

    def take_reminders(self) -> str | None:
        """What the model was not told yet: decisions on this branch's edits, others' changes.

        Each hunk and each change once.
        """
        return _joined(self._ledger.take_reminders(self._branch), self.files.take_reminder())

    def untold(self, turn_ids: Collection[str]) -> str | None:
        """What `take_reminders` would say on the branch of these turns; nothing is taken."""
        return _joined(self._ledger.untold(turn_ids), self.files.reminder())

    async def decide(self, params: DecideParams) -> DecideResult:
        """Accept, reject or replace hunks; returns when the editor's text was checked.

        Raises KodeError `ChangeSetNotFound`, `ChangeSetClosed`, `InvalidParams`, `Storage`.
        """
        change_set = self._ledger.change_set(params.change_set_id)
        choices = choose(change_set, params)
        if params.dry_run:
            return self._decisions.forecast(change_set, choices)
        await self._decisions.carry_out(choices)
        await self._save()
        return result(change_set, [change_set.hunks[hunk_id] for hunk_id in choices])

    async def undo(self, scope: str, params: UndoParams) -> UndoResult:
        """Take applied hunks back: those of a change set, of a turn, or one.

        Raises KodeError `ChangeSetNotFound`, `Storage`.
        """
        change_set = self._ledger.holding(scope)
        if change_set is None:
            raise KodeError("ChangeSetNotFound", f"Nothing here has the id {scope!r}.")
        hunk = change_set.hunks.get(scope)
        hunks = [hunk] if hunk is not None else list(change_set.hunks.values())
        undone = await self._undo.undo(change_set, hunks, params)
        if undone.undone or undone.restored:
            await self._save()
        return undone


def _joined(*told: str | None) -> str | None:
    return "\n\n".join(text for text in told if text is not None) or None
