"""The change sets of a session: hunks from proposal to verified edit."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from kode_sidecar.domain.agent_event import Event
from kode_sidecar.domain.change_set import FileView, Range, TextBase
from kode_sidecar.domain.hunk import Hunk, compose, overlay_text
from kode_sidecar.domain.line_diff import split_lines, unified_diff
from kode_sidecar.domain.text_edit import shift, to_lf
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import NewId, ToolCall
from kode_sidecar.main_session.contracts import EditorPort
from kode_sidecar.main_session.decisions import Decisions, choose, result
from kode_sidecar.main_session.edit_sender import EditLocks, EditSender
from kode_sidecar.main_session.event_history import EventHistory, ToldHunk
from kode_sidecar.main_session.hunk_ledger import HunkLedger
from kode_sidecar.main_session.permission_gate import PermissionGate
from kode_sidecar.main_session.proposed_hunk import (
    FileName,
    ProposedHunk,
    by_file,
    new_hunk,
    verdict_line,
)
from kode_sidecar.main_session.restored_hunks import find_hunk, overlaps, told_change_set
from kode_sidecar.protocol.change_set import (
    ChangeSetView,
    DecideParams,
    DecideResult,
    HunkDecision,
)
from kode_sidecar.protocol.session import Mode
from kode_sidecar.tools.propose_edit import Proposed, Rewrite
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace

SETTLE_SECONDS = 2.0


async def _at_once() -> None:
    """Nothing holds events back."""


class ChangeSets:
    """One change set per turn that proposes something; `tools.propose_edit.Proposals`.

    `overlay` is what the model reads. `emit` returns the `seq` of the event, `save` makes decisions
    durable before they are answered, `published` returns once no emitted event is held back: an
    edit never overtakes its announcement (O6). Sessions of one editor share `locks`: at most one
    unverified edit per URI.
    """

    def __init__(
        self,
        *,
        session_id: str,
        workspace: Workspace,
        editor: EditorPort,
        emit: Callable[[Event], int],
        new_id: NewId,
        permission_timeout: float,
        save: Callable[[], Awaitable[None]],
        published: Callable[[], Awaitable[None]] = _at_once,
        locks: EditLocks | None = None,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._session_id = session_id
        self._workspace = workspace
        self._new_id = new_id
        self._save = save
        self._published = published
        self._locks = locks or EditLocks()
        self._gate = PermissionGate(session_id, editor, emit, new_id, permission_timeout)
        self.overlay = Overlay()
        self._sender = EditSender(workspace, self.overlay, editor, settle_seconds)
        self._ledger = HunkLedger(emit, new_id)
        self._decisions = Decisions(self._ledger, self.overlay, self._sender, self._locks)
        self._branch: frozenset[str] = frozenset()
        self._mode: Mode = "review"

    def close(self) -> None:
        """Stop following the documents and give up what is on its way."""
        self._decisions.close()
        self._sender.close()

    def restore(self, history: EventHistory) -> None:
        """Take over the change sets of earlier processes; what waits is found in today's texts.

        A hunk whose base does not hold any more is stale. One in a file outside the folders that
        are open now waits on.
        """
        for told in history.change_sets.values():
            change_set = told_change_set(told)
            self._ledger.restore(change_set, history.decided_since_turn)
            waiting = [hunk for hunk in change_set.hunks.values() if hunk.state == "proposed"]
            for file, hunks in by_file(waiting).items():
                self._find_again(file, [told.hunks[hunk.id] for hunk in hunks], told.turn_id)

    def _find_again(self, file: FileName, hunks: Sequence[ToldHunk], turn_id: str) -> None:
        lost: dict[str, str] = {}
        found: list[Hunk] = []
        try:
            document = self._workspace.document(file.uri, purpose="edit")
        except KodeError as error:
            if error.code == "NotFound":
                lost = {hunk.view.hunk_id: "the file is not there any more." for hunk in hunks}
                self._ledger.go_stale(lost)
            return
        for told in hunks:
            hunk = find_hunk(told, document)
            if hunk is None or overlaps(hunk, found):
                lost[told.view.hunk_id] = "the text there changed while no sidecar looked after it."
            else:
                found.append(hunk)
        self.overlay.add(document, found, turn_id)
        self._ledger.go_stale(lost)

    def enter_turn(self, turn_id: str, mode: Mode, path_turn_ids: Collection[str]) -> None:
        """A turn begins: its overlay is that of the turns on the path it grows from."""
        self._branch = frozenset((turn_id, *path_turn_ids))
        self.overlay.enter_branch(self._branch)
        self._mode = mode

    def pending_paths(self) -> Sequence[str]:
        """URIs of the files that the model sees otherwise than the editor has saved them."""
        return self.overlay.changed_keys()

    def has(self, change_set_id: str) -> bool:
        """Whether the change set belongs to this session."""
        return change_set_id in self._ledger

    def all_views(self) -> Sequence[ChangeSetView]:
        """All change sets as they stand now, oldest first."""
        return [self.get(change_set.id) for change_set in self._ledger.change_sets]

    def get(self, change_set_id: str) -> ChangeSetView:
        """A change set as it stands now. Raises KodeError `ChangeSetNotFound`."""
        change_set = self._ledger.change_set(change_set_id)
        files: list[FileView] = []
        diffs: list[str] = []
        for file, hunks in by_file(change_set.hunks.values()).items():
            view, diff = self._file_now(file, hunks)
            files.append(view)
            diffs.append(diff)
        return ChangeSetView(
            change_set_id=change_set.id,
            session_id=self._session_id,
            turn_id=change_set.turn_id,
            state=change_set.state,
            files=tuple(files),
            diff="".join(diffs),
        )

    def take_reminders(self) -> str | None:
        """What was decided since the last call about this branch's edits; each hunk once."""
        return self._ledger.take_reminders(self._branch)

    def untold(self, turn_ids: Collection[str]) -> str | None:
        """What `take_reminders` would say on the branch of these turns; nothing is taken."""
        return self._ledger.untold(turn_ids)

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

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """See `tools.propose_edit.Proposals`."""
        document = self._workspace.document(path, purpose="edit")
        rewrite(document, self.overlay.text_of(document))  # a mistake shows before anyone is asked
        sensitive = any(map(self._workspace.is_sensitive, (path, document.uri)))
        if sensitive:
            await self._permit(document, call)
        async with self._locks.of(document.key):
            document = self._workspace.document(path, purpose="edit")
            before = self.overlay.text_of(document)
            after = rewrite(document, before)
            hunks = self._announce(document, after, call, sensitive=sensitive)
        summary, message = await self._settled(hunks)
        name = self._workspace.display_path(document.key)
        return Proposed(
            path=name,
            before=before,
            after=after,
            text=self._text_now(document, after),
            summary=f"{summary} in {name}",
            message=message,
            change_set_id=self._ledger.of_turn(call.turn_id).id if hunks else "",
            hunk_ids=tuple(hunk.id for hunk in hunks),
        )

    async def _permit(self, document: Document, call: ToolCall) -> None:
        name = self._workspace.display_path(document.key)
        if not await self._gate.ask(call, f"Edit {name}", name):
            raise KodeError(
                "Denied",
                f"The user does not allow you to edit {name}. Do not try again; go on without it, "
                "or say what you would change there.",
            )

    def _announce(
        self, document: Document, after: str, call: ToolCall, *, sensitive: bool
    ) -> list[ProposedHunk]:
        """Make hunks of a new overlay text, pending and known to the editor, without an await."""
        current = self.overlay.current(document)
        made = compose(current.text, current.eol, self.overlay.pending(document), after)
        spans = [
            Hunk(self._new_id("hunk"), draft.start, draft.end, draft.old_text, draft.new_text)
            for draft in made.drafts
        ]
        heirs: dict[str, str | None] = dict.fromkeys(made.withdrawn)
        lost = [old for old in self.overlay.hunks(document) if old.touched]
        for draft, span in zip(made.drafts, spans, strict=True):
            met = (old.id for old in lost if shift(old.start, old.end, span.edit)[2])
            heirs |= dict.fromkeys((*draft.replaces, *met), span.id)
        self.overlay.remove(document.key, heirs)
        self.overlay.add(document, spans, call.turn_id)
        file = FileName(document.uri, document.key, self._workspace.display_path(document.key))
        hunks = [
            new_hunk(span, call.turn_id, file, sensitive=sensitive, is_open=document.is_open)
            for span in spans
        ]
        ranges = [self._range(current, span) for span in spans]
        self._ledger.announce(hunks, ranges, _base(current))
        self._ledger.supersede(heirs)
        return hunks

    async def _settled(self, hunks: Sequence[ProposedHunk]) -> tuple[str, str]:
        """What the mode does with fresh hunks now: a few words, and what the model is told."""
        count = f"{len(hunks)} hunk{'' if len(hunks) == 1 else 's'}"
        if not hunks:
            return "Took edits back", "Your pending edits there were taken back; nothing is left."
        if self._mode not in ("auto", "ask"):
            return f"Proposed {count}", (
                f"Proposed, not yet applied: {count} for the user to decide. "
                "Your reads show them already."
            )
        for hunk in hunks:
            hunk.waiter = asyncio.get_running_loop().create_future()
        try:
            if self._mode == "auto":
                await self._published()
                yes = {hunk.id: HunkDecision(hunk_id=hunk.id, action="accept") for hunk in hunks}
                await self._decisions.carry_out(yes)
            else:
                await asyncio.wait([hunk.waiter for hunk in hunks if hunk.waiter])
        finally:
            for hunk in hunks:
                hunk.waiter = None
        done = sum(hunk.state in ("applied", "replaced") for hunk in hunks)
        lines = "\n".join(verdict_line(hunk) for hunk in hunks)
        return f"Applied {done} of {count}", f"What became of {count}:\n{lines}"

    def _file_now(self, file: FileName, hunks: Sequence[ProposedHunk]) -> tuple[FileView, str]:
        """A file's hunks where they stand now, and the diff of those that wait."""
        document = self._sender.find_document(file.uri)
        if document is None:
            views = tuple(hunk.whole_view(None) for hunk in hunks)
            return FileView(uri=file.uri, path=file.path, hunks=views), ""
        current = self.overlay.current(document)
        spans = {hunk.id: self.overlay.find(document, hunk.id) for hunk in hunks}
        views = tuple(
            hunk.whole_view(self._range(current, span) if span else None)
            for hunk in hunks
            for span in [spans[hunk.id]]
        )
        waiting = sorted(
            (span for span in spans.values() if span and not span.touched),
            key=lambda span: (span.start, span.end),
        )
        after = to_lf(overlay_text(current.text, waiting))
        diff = unified_diff(split_lines(current.lf_text), split_lines(after), file.path)
        return FileView(uri=file.uri, path=file.path, hunks=views, version=current.version), diff

    def _text_now(self, document: Document, otherwise: str) -> str:
        now = self._sender.find_document(document.uri)
        return self.overlay.text_of(now) if now else otherwise

    def _range(self, document: Document, hunk: Hunk) -> Range:
        encoding = self._workspace.position_encoding
        return Range(
            document.position_at(hunk.start, encoding), document.position_at(hunk.end, encoding)
        )


def _base(document: Document) -> TextBase:
    return TextBase(
        uri=document.uri,
        sha256=document.rev,
        encoding=document.encoding,
        eol=document.eol,
        bom=document.bom,
        version=document.version,
    )
