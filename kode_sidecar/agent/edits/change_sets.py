"""The change sets of a session: hunks from proposal to verified edit, and back."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from kode_sidecar.agent.edits.announcing import Announcer, range_of, text_base
from kode_sidecar.agent.edits.applying import Applying, Choices
from kode_sidecar.agent.edits.decisions import choose, left_out, result
from kode_sidecar.agent.edits.diagnostic_news import DiagnosticNews
from kode_sidecar.agent.edits.file_edits import FileEdits
from kode_sidecar.agent.edits.file_watch import FileWatch
from kode_sidecar.agent.edits.forming import FormingEdits
from kode_sidecar.agent.edits.hunk_status import HunkStatus
from kode_sidecar.agent.edits.hunks import HunkLedger
from kode_sidecar.agent.edits.proposing import Proposer
from kode_sidecar.agent.edits.recovery import Recovery
from kode_sidecar.agent.edits.services import EditLocks, EditServices
from kode_sidecar.agent.edits.session_files import SessionFiles
from kode_sidecar.agent.edits.text_edits import TextEdits
from kode_sidecar.agent.event_log import EventHistory
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions import PermissionGate, UserQuestions
from kode_sidecar.core.domain.agent_event import Event
from kode_sidecar.core.domain.change_set import (
    ChangeSet,
    FileName,
    FileView,
    HunkView,
    ProposedHunk,
    by_file,
)
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.domain.hunk_state import HunkState
from kode_sidecar.core.kernel.contracts import Emit, NewId
from kode_sidecar.core.protocol.change_set import (
    ChangeSetListResult,
    ChangeSetSummary,
    ChangeSetView,
    DecideParams,
    DecideResult,
    FileSummary,
    HunkCount,
    UndoParams,
    UndoResult,
)
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.text.line_diff import Run, split_lines, unified_diff
from kode_sidecar.core.text.text_edit import line_runs, to_lf
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.documents import DocumentChange
from kode_sidecar.infrastructure.workspace.file_changes import FileChanges
from kode_sidecar.infrastructure.workspace.freshness import Freshness
from kode_sidecar.infrastructure.workspace.language_servers import LineMap
from kode_sidecar.infrastructure.workspace.overlay import Overlay
from kode_sidecar.infrastructure.workspace.unsaved import OpenTexts
from kode_sidecar.infrastructure.workspace.workspace import Workspace

SETTLE_SECONDS = 2.0


async def _at_once() -> None:
    """Nothing holds events back."""


class News(Protocol):
    """What the model is to be notified of before its next step."""

    def unreported(self) -> str | None:
        """Return the text; nothing is taken."""
        ...

    def reported(self) -> None:
        """Take what `unreported` said last: the model has it."""
        ...


class ChangeSets:
    """One change set per turn that proposes something.

    `session_files` is what the model reads, `freshness` what it has read, `files` reports changes
    by others, `proposals` takes what the model proposes. `emit` returns the `seq` of
    the event, `save` makes decisions durable before they are answered, `published` returns once no
    emitted event is held back: an edit never overtakes its announcement (O6). Sessions of one
    editor share `locks`: at most one unverified edit per URI, and each is notified, by its `title`,
    of what the others changed. `open_texts` knows what of the open files is not on disk. `news` is
    what else the model is notified of.
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
        save: Callable[[], Awaitable[None]],
        published: Callable[[], Awaitable[None]] = _at_once,
        locks: EditLocks | None = None,
        title: Callable[[], str] = str,
        save_accepted: Callable[[], bool] = lambda: True,
        settle_seconds: float = SETTLE_SECONDS,
        news: Sequence[News] = (),
    ) -> None:
        self._session_id = session_id
        self._workspace = workspace
        self._save = save
        self._branch: frozenset[str] = frozenset()
        self._unsaved: dict[DecideParams, Choices] = {}
        self.overlay = Overlay()
        self._changes = FileChanges()
        self.freshness = Freshness(self.overlay.current, now)
        self.session_files = SessionFiles(
            workspace, self.overlay, self._changes, editor.open_document, editor.refresh
        )
        in_flight: set[str] = set()
        locks = locks or EditLocks()
        self._peers, self._title = locks.peers, title
        self._news = DiagnosticNews(locks.language, self._place)
        self._all_news: Sequence[News] = (self._news, *news)
        self.files = FileWatch(
            workspace, self.session_files.known, self.freshness, emit, in_flight, self._edited
        )
        self._leave = locks.peers.join(session_id, self.files.notify)
        self._ledger = HunkLedger(emit, new_id)
        services = EditServices(
            workspace=workspace,
            editor=editor,
            overlay=self.overlay,
            changes=self._changes,
            files=self.session_files,
            freshness=self.freshness,
            watch=self.files,
            news=self._news,
            ledger=self._ledger,
            new_id=new_id,
            settle_seconds=settle_seconds,
            locks=locks,
            in_flight=in_flight,
        )
        saving = (editor.can_save, editor.save_documents, save_accepted)
        self.open_texts = OpenTexts(workspace, self.overlay, *saving, self._pending)
        announcer, file_edits = Announcer(services), FileEdits(services)
        self._recovery = Recovery(services)
        self._status = HunkStatus(services, self._recovery, file_edits)
        self._text_edits = TextEdits(services)
        parts = (announcer, self._text_edits, file_edits, self._recovery, self._status)
        self._applying = Applying(services, *parts, self.open_texts, save)
        gate = PermissionGate(session_id, editor, emit, new_id, questions, now, published)
        self._services, self._announcer, self.permissions = services, announcer, gate
        self.proposals = Proposer(
            services, announcer, self._applying, self._status, gate, published
        )
        self._unsubscribe = workspace.documents.subscribe(self._document_changed)

    def close(self) -> None:
        """Stop following the documents and give up what is on its way."""
        self._unsubscribe()
        self._leave()
        self._news.close()
        self._applying.close()
        self._text_edits.close()
        self._status.close()

    def _document_changed(self, change: DocumentChange) -> None:
        """Look for the session's own edits first: what they did is nobody else's change."""
        self._text_edits.changed(change)
        self.files.changed(change)
        self._status.changed(change)

    def _edited(self, uri: str) -> None:
        """An own edit changed a file: others are notified, and what it broke is looked for."""
        self._peers.notify(self._session_id, canonical_key(uri), self._title())
        record = self.freshness.find(canonical_key(uri))
        if record is not None and not record.lost:
            self._news.edited(record.uri)

    def _place(self, uri: str, line: int) -> str:
        """A line of the editor's text, from 0, as the model knows it."""
        name, document = self._workspace.display_path(uri), self.session_files.find(uri)
        if document is None:
            return f"{name}:{line + 1}"
        seen = LineMap(self.session_files.view(document).text_lf, document.lf_text).seen(line)
        return name if seen is None else f"{name}:{seen + 1}"

    def restore(self, history: EventHistory) -> None:
        """Take over the change sets of earlier processes."""
        self._recovery.restore(history)

    def enter_turn(self, turn_id: str, mode: Mode, path_turn_ids: Collection[str]) -> None:
        """A turn begins: its overlay is that of the turns on the path it grows from."""
        self._branch = frozenset((turn_id, *path_turn_ids))
        self.overlay.enter_branch(self._branch)
        self._changes.enter_branch(self._branch)
        self.proposals.mode = mode

    def forming(self, emit: Emit, turn_id: str) -> Emit:
        """Return an `Emit` that also shows edits of a turn while the model writes them."""
        return FormingEdits(self._services, self._announcer, emit, turn_id)

    def has(self, some_id: str) -> bool:
        """Whether a change set, a turn that has one, or a hunk of that id belongs here."""
        return self._ledger.holding(some_id) is not None

    def list(self) -> ChangeSetListResult:
        """Return all change sets without texts, oldest first."""
        return ChangeSetListResult(change_sets=tuple(map(self._summary, self._ledger.change_sets)))

    def all_views(self) -> Sequence[ChangeSetView]:
        """Return all change sets as they stand now, oldest first."""
        return [self.get(change_set.id) for change_set in self._ledger.change_sets]

    def get(self, change_set_id: str) -> ChangeSetView:
        """Return a change set as it stands now, with a unified diff of what waits.

        Raises KodeError `ChangeSetNotFound`.
        """
        change_set = self._ledger.change_set(change_set_id)
        hunks = by_file(change_set.hunks.values())
        files = [self._file_now(file, group) for file, group in hunks.items()]
        diff = "".join(diff for _, diff in files)
        return self._view(change_set, tuple(view for view, _ in files), diff)

    def places(self, key: str) -> Sequence[ChangeSetView]:
        """Return where the hunks of a file that wait for the user are now, without their texts."""
        return [view for one in self._ledger.change_sets if (view := self._places(one, key))]

    def _places(self, change_set: ChangeSet, key: str) -> ChangeSetView | None:
        hunks = [one for one in change_set.hunks.values() if one.is_waiting and one.file.key == key]
        document = self.session_files.find(hunks[0].file.uri) if hunks else None
        if document is None:
            return None
        file, current = hunks[0].file, self.overlay.current(document)
        views = tuple(
            HunkView(
                hunk_id=hunk.id,
                state=hunk.state,
                kept=hunk.kept,
                range=span and range_of(current, span, self._workspace.position_encoding),
            )
            for hunk in hunks
            for span in [self.overlay.find(document, hunk.id)]
        )
        shown = FileView(uri=file.uri, path=file.path, hunks=views, version=current.version)
        return self._view(change_set, (shown,))

    def _view(
        self, change_set: ChangeSet, files: tuple[FileView, ...], diff: str | UnsetType = UNSET
    ) -> ChangeSetView:
        return ChangeSetView(
            change_set_id=change_set.id,
            session_id=self._session_id,
            turn_id=change_set.turn_id,
            state=change_set.state,
            files=files,
            diff=diff,
        )

    def take_reminders(self) -> str | None:
        """Return what is not reported to the model yet: decisions on this branch, others' changes.

        Each hunk and each change once.
        """
        text = self.unreported()
        self.reminders_reported()
        return text

    def reminders_reported(self) -> None:
        """The model has all that `unreported` said last on the branch of the running turn."""
        self._ledger.reported(self._branch)
        self.files.reminder_reported()
        for news in self._all_news:
            news.reported()

    def unreported(self, turn_ids: Collection[str] | None = None) -> str | None:
        """What `take_reminders` would say on the branch of these turns; nothing is taken.

        Without turns: on the branch of the turn that runs.
        """
        self._status.look_at_closed(self._ledger.unconfirmed_keys())
        branch = self._branch if turn_ids is None else turn_ids
        news = [one.unreported() for one in self._all_news]
        return _joined(self._ledger.unreported(branch), self.files.reminder(), *news)

    async def decide(self, params: DecideParams) -> DecideResult:
        """Accept, reject or replace hunks; returns when the editor's text was checked.

        Raises KodeError `ChangeSetNotFound`, `ChangeSetClosed`, `InvalidParams`, `Storage`.
        """
        change_set = self._ledger.change_set(params.change_set_id)
        choices = self._unsaved.get(params)
        if choices is None:
            choices = choose(change_set, params)
            if params.dry_run:
                return await self._applying.forecast(change_set, choices)
            try:
                await self._applying.decide(choices)
            except KodeError:
                self._unsaved[params] = choices
                raise
        else:  # it was carried out, and could not be saved
            await self._save()
            del self._unsaved[params]
        left = left_out(change_set, params)
        return result(change_set, [change_set.hunks[key] for key in choices], choices, left)

    async def undo(self, scope: str, params: UndoParams) -> UndoResult:
        """Take applied hunks back: those of a change set, of a turn, or one.

        Raises KodeError `ChangeSetNotFound`, `Storage`.
        """
        change_set = self._ledger.holding(scope)
        if change_set is None:
            raise KodeError("ChangeSetNotFound", f"Nothing here has the id {scope!r}.")
        hunk = change_set.hunks.get(scope)
        hunks = [hunk] if hunk is not None else list(change_set.hunks.values())
        return await self._applying.undo(change_set, hunks, params)

    def _pending(self) -> Iterable[ProposedHunk]:
        """Return the undecided hunks on the branch of the turn that runs."""
        return [
            hunk
            for change_set in self._ledger.change_sets
            if change_set.turn_id in self._branch
            for hunk in change_set.hunks.values()
            if hunk.state == "proposed"
        ]

    def _summary(self, change_set: ChangeSet) -> ChangeSetSummary:
        files = (
            FileSummary(uri=file.uri, path=file.path, hunks=_counts(hunks))
            for file, hunks in by_file(change_set.hunks.values()).items()
        )
        return ChangeSetSummary(
            change_set_id=change_set.id,
            turn_id=change_set.turn_id,
            state=change_set.state,
            on_head=change_set.turn_id in self._branch,
            files=tuple(files),
        )

    def _file_now(self, file: FileName, hunks: Sequence[ProposedHunk]) -> tuple[FileView, str]:
        """Return a file's hunks where they stand now, and the diff of those that wait."""
        whole = "".join(map(_file_diff, hunks))
        document = self.session_files.find(file.uri)
        if document is None:
            views = tuple(hunk.whole_view(None) for hunk in hunks)
            return FileView(uri=file.uri, path=file.path, hunks=views), whole
        self._status.look_at(document)
        current = self.overlay.current(document)
        spans = {hunk.id: self.overlay.find(document, hunk.id) for hunk in hunks if _stands(hunk)}
        views = tuple(
            hunk.whole_view(
                range_of(current, span, self._workspace.position_encoding) if span else None
            )
            for hunk in hunks
            for span in [spans.get(hunk.id)]
        )
        clean = sorted(
            (
                span
                for hunk in hunks
                if hunk.state == "proposed"
                for span in [spans[hunk.id]]
                if span and not span.touched
            ),
            key=lambda span: (span.start, span.end),
        )
        diff = ""
        if clean:
            runs = line_runs(current.text, [span.edit for span in clean])
            after = _lines_after(current.lf_lines, runs, clean)
            diff = unified_diff(current.lf_lines, after, file.path, runs=runs)
        view = FileView(
            uri=file.uri,
            path=file.path,
            hunks=views,
            version=current.version,
            base=text_base(current),
        )
        return view, diff + whole


def _lines_after(lines: Sequence[str], runs: Sequence[Run], hunks: Sequence[Hunk]) -> list[str]:
    """Return the lines (LF) with these hunks done, each of which is one of the runs."""
    after: list[str] = []
    at = 0
    for run, hunk in zip(runs, hunks, strict=True):
        after += lines[at : run[0]]
        after += split_lines(to_lf(hunk.new_text))
        at = run[1]
    return [*after, *lines[at:]]


def _stands(hunk: ProposedHunk) -> bool:
    """Whether it has a place: it waits there, or what was applied does."""
    return hunk.state == "proposed" or hunk.is_done


def _joined(*texts: str | None) -> str | None:
    return "\n\n".join(text for text in texts if text is not None) or None


def _counts(hunks: Sequence[ProposedHunk]) -> tuple[HunkCount, ...]:
    counts: Counter[HunkState] = Counter(hunk.state for hunk in hunks)
    return tuple(HunkCount(state=state, count=count) for state, count in counts.items())


def _file_diff(hunk: ProposedHunk) -> str:
    """Return the diff of a file that waits to be created, renamed or deleted."""
    if hunk.state != "proposed" or hunk.kind == "modify":
        return ""
    if hunk.kind == "rename" and hunk.new_file is not None:
        return f"rename from {hunk.file.path}\nrename to {hunk.new_file.path}\n"
    old, new = split_lines(to_lf(hunk.old_text)), split_lines(to_lf(hunk.new_text))
    return unified_diff(old, new, hunk.file.path)
