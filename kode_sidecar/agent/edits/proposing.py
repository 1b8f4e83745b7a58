"""From what the model proposes to hunks that the editor knows; `tools.proposals.Proposals`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count

from kode_sidecar.agent.edits.announcing import Announcer, Basis
from kode_sidecar.agent.edits.applying import Applying
from kode_sidecar.agent.edits.hunk_status import HunkStatus
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.edits.verdicts import verdict_line
from kode_sidecar.agent.permissions import UNASKED, PermissionGate, is_whole, preview
from kode_sidecar.agent.tools.proposals import Proposed, Rewrite, apart
from kode_sidecar.agent.tools.text_rewrites import held_text
from kode_sidecar.core.domain.change_set import FileChangeKind, ProposedHunk
from kode_sidecar.core.domain.event_parts import APPLYING_MODES
from kode_sidecar.core.domain.hunk import Composition
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import HunkDecision
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.editor_config import new_file_style
from kode_sidecar.infrastructure.workspace.file_changes import FileChange
from kode_sidecar.infrastructure.workspace.paths import Location

MAX_CHASES = 5
"""How often a large text may change while it is worked on beside the loop."""


@dataclass(frozen=True)
class _Question:
    """What the user may be asked: `places` are the targets by name, each as it was spelled.

    `texts` are the file's before and after.
    """

    verb: str
    subject: str
    places: Mapping[str, Sequence[str]]
    texts: tuple[str, str] = ("", "")

    @property
    def title(self) -> str:
        return f"{self.verb} {self.subject}"


@dataclass(frozen=True)
class _Consent:
    """Whether a target is `sensitive`, and whether the user said yes to all of the edit."""

    sensitive: bool
    to_all: bool

    @property
    def to_this_place(self) -> "_Consent":
        """A yes to edit there, and to no text."""
        return replace(self, to_all=False)


@dataclass(frozen=True)
class _Made:
    """What a rewrite makes of a text: `wanted`, the text that is then `held`, and hunks.

    `before` and `after` are what the model reads (LF), `runs` its lines that change.
    """

    wanted: str
    before: str
    after: str
    held: str
    hunks: Composition
    runs: Sequence[Run]


class Proposer:
    """One session's proposals, in the mode of the running turn."""

    def __init__(
        self,
        services: EditServices,
        announcer: Announcer,
        applying: Applying,
        status: HunkStatus,
        gate: PermissionGate,
        published: Callable[[], Awaitable[None]],
    ) -> None:
        self._workspace = services.workspace
        self._overlay = services.overlay
        self._files = services.files
        self._freshness = services.freshness
        self._watch = services.watch
        self._news = services.news
        self._ledger = services.ledger
        self._editor = services.editor
        self._locks = services.locks
        self._announcer = announcer
        self._applying = applying
        self._status = status
        self._gate = gate
        self._published = published
        self.mode: Mode = "review"

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """See `tools.proposals.Proposals`."""
        document = await self._files.load(path, "edit")
        self._status.see_verdicts(document)  # what stands there already is superseded by nothing
        shown = self._files.view(document).text_lf
        # A mistake shows before anyone is asked.
        size = len(shown) + int(getattr(rewrite, "weight", 0))
        wanted = await apart(size, partial(_rewritten, rewrite, document, shown))
        name = self._workspace.display_path(document.key)
        question = _Question("Edit", name, {name: (path, document.uri)}, (shown, wanted))
        consent = await self._permit(question, call)
        target, _ = self._files.edited(path)
        async with self._locks.of(target.key):
            document, created, made = await self._made(path, rewrite, (shown, wanted))
            before, after = made.before, made.after
            if consent.sensitive and made.wanted != wanted:
                raise _other_than_allowed(name)
            if made.wanted != wanted or created is not None or shown != document.lf_text:
                consent = consent.to_this_place  # what waits there was not shown
            self._watch.look()
            if created is not None:
                text = new_file_style(created.place.real).text(made.held, created.text)
                change = self._new("create", created.uri, created.place, text=text)
                replacements = {created.id: change.id}
                hunks = [
                    self._announcer.file(change, call, replacements, sensitive=consent.sensitive)
                ]
            else:
                hunks = self._announcer.text(
                    document, made.hunks, call, sensitive=consent.sensitive
                )
        self._freshness.note_edit(document, before, after, made.runs)
        self._news.expect(document.uri)
        if created is not None:
            self._freshness.applied(document.key, created.lf_text, made.held)
        return await self._proposed(hunks, name, before, after, path, call, consent, runs=made.runs)

    async def _made(
        self, path: str, rewrite: Rewrite, known: tuple[str, str]
    ) -> tuple[Document, FileChange | None, "_Made"]:
        """Rewrite the text of now; `known` is a text with what becomes of it.

        A large text is worked on beside the loop, and once more if it changed meanwhile.
        """
        for attempt in count():
            document, created = self._files.edited(path)
            before = created.lf_text if created else self._overlay.text_of(document)
            basis = None if created else self._announcer.basis(document)
            size = len(before) + int(getattr(rewrite, "weight", 0))
            work = partial(_make, rewrite, document, before, known, basis)
            made = work() if attempt == MAX_CHASES else await apart(size, work)
            if basis is None or self._announcer.holds(document, basis):
                return document, created, made
        raise AssertionError("a text that is worked on at once does not change")

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """See `tools.proposals.Proposals`."""
        new = Document(self._workspace.locate(path).uri, "")
        text = held_text(new, "", to_lf(text), "")[0] if new.is_notebook else text
        after = new.shown(to_lf(text))
        deleted = self._files.deleted(path)
        if deleted is None:
            self._check_can("create")
        place = deleted.place if deleted else self._files.new_place(path)
        question = _Question("Create", place.display, {place.display: (path,)}, ("", after))
        consent = await self._permit(question, call)
        key = canonical_key(place.uri)
        async with self._locks.of(key):
            deleted = self._files.deleted(path)
            if deleted is not None:
                self._announcer.withdraw(deleted.key, {deleted.id: None})
                document, _ = self._files.edited(path)
                made = self._announcer.basis(document).composed(to_lf(text))
                hunks = self._announcer.text(document, made, call, sensitive=consent.sensitive)
            else:
                place = self._files.new_place(path)
                text = new_file_style(place.real).text(text)
                after = new.shown(to_lf(text))
                change = self._new("create", place.uri, place, text=text)
                hunks = [self._announcer.file(change, call, {}, sensitive=consent.sensitive)]
                new = Document(place.uri, text, path=place.path)
                self._freshness.note(new, after, 1, len(split_lines(after)))
        return await self._proposed(hunks, place.display, "", after, path, call, consent)

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """See `tools.proposals.Proposals`."""
        self._check_can("rename")
        document = await self._files.load(source, "edit")
        place = self._files.new_place(target, leaving=source)
        name = self._workspace.display_path(document.key)
        places = {name: (source, document.uri), place.display: (target,)}
        question = _Question("Move", f"{name} to {place.display}", places)
        consent = await self._permit(question, call)
        keys = (document.key, canonical_key(place.uri))
        async with self._locks.of_all(keys):
            document = self._files.document(source, purpose="edit")
            place = self._files.new_place(target, leaving=source)
            text = self._files.view(document).text_lf
            hunks = self._move(document, place, call, sensitive=consent.sensitive)
        if any(hunk.kind != "rename" for hunk in hunks):
            consent = consent.to_this_place
        return await self._proposed(hunks, place.display, text, text, target, call, consent)

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """See `tools.proposals.Proposals`."""
        document = await self._files.load(path, "edit")
        adding = self._files.adding(document)
        if adding is None or adding.kind != "create":
            self._check_can("delete")
        name = self._workspace.display_path(document.key)
        shown = self._files.view(document).text_lf
        question = _Question("Delete", name, {name: (path, document.uri)}, (shown, ""))
        consent = await self._permit(question, call)
        async with self._locks.of(document.key):
            document = self._files.document(path, purpose="edit")
            before = self._files.view(document).text_lf
            if consent.sensitive and before != shown:
                raise _other_than_allowed(name)
            self._watch.look()
            hunks = self._delete(document, call, sensitive=consent.sensitive)
        return await self._proposed(hunks, name, before, "", path, call, consent)

    def _move(
        self, document: Document, place: Location, call: ToolCall, *, sensitive: bool
    ) -> list[ProposedHunk]:
        """A file that is itself only proposed goes where it shall go at once."""
        adding = self._files.adding(document)
        if adding is None:
            source = self._files.place_of(document)
            change = self._new("rename", document.uri, source, target=place)
            return [self._announcer.file(change, call, {}, sensitive=sensitive)]
        if adding.kind == "rename" and adding.place.real == place.real:
            self._announcer.withdraw(adding.key, {adding.id: None})
            return []
        if adding.kind == "create":
            uri = place.uri
            change = self._new("create", uri, place, text=adding.text)
        else:
            change = self._new("rename", adding.uri, adding.place, target=place)
        replacements = {adding.id: change.id}
        return [self._announcer.file(change, call, replacements, sensitive=sensitive)]

    def _delete(self, document: Document, call: ToolCall, *, sensitive: bool) -> list[ProposedHunk]:
        """Pending hunks of the file go with it."""
        adding = self._files.adding(document)
        if adding is not None and adding.kind == "create":
            self._announcer.withdraw(adding.key, {adding.id: None})
            return []
        moved = [adding.id] if adding else []
        if adding is not None:
            document = self._files.source(adding, "edit")
        text = self._overlay.current(document).text
        change = self._new("delete", document.uri, self._files.place_of(document), text=text)
        waiting = [hunk.id for hunk in self._overlay.hunks(document)]
        replacements = dict.fromkeys([*waiting, *moved], change.id)
        return [self._announcer.file(change, call, replacements, sensitive=sensitive)]

    def _new(
        self,
        kind: FileChangeKind,
        uri: str,
        place: Location,
        target: Location | None = None,
        text: str = "",
    ) -> FileChange:
        return FileChange(self._announcer.new_id("hunk"), kind, uri, place, target, text)

    def _check_can(self, kind: FileChangeKind) -> None:
        if not self._editor.can_change_files(kind):
            raise KodeError(
                "CapabilityMissing",
                f"The user's editor cannot {kind} files for you. Edit files that exist, or tell "
                "the user what to do by hand.",
            )

    async def _permit(self, question: "_Question", call: ToolCall) -> "_Consent":
        """Ask the user where that is needed. Raises KodeError `Denied`."""
        spelled = (place for places in question.places.values() for place in places)
        reason = next(filter(None, map(self._workspace.why_sensitive, spelled)), None)
        shown = cache(lambda: preview(*question.texts, question.subject))
        said = await self._gate.choose(
            call,
            question.title,
            question.subject,
            operation="" if question.verb == "Edit" else question.verb.lower(),
            paths=tuple(question.places),
            sensitive=reason is not None,
            reason=reason or "",
            diff=shown,
        )
        if said is None:
            raise KodeError(
                "Denied",
                f"The user does not allow you to {question.verb.lower()} {question.subject}. "
                "Do not try again; go on without it, or say what you would change there.",
            )
        return _Consent(reason is not None, said is not UNASKED and is_whole(shown()))

    async def _proposed(
        self,
        hunks: Sequence[ProposedHunk],
        name: str,
        before: str,
        after: str,
        path: str,
        call: ToolCall,
        consent: "_Consent",
        runs: Sequence[Run] | None = None,
    ) -> Proposed:
        summary, message = await self._settled(hunks, call, consent)
        return Proposed(
            path=name,
            before=before,
            after=after,
            text=self._text_now(path, after),
            summary=f"{summary} in {name}",
            message=message,
            change_set_id=self._ledger.of_turn(call.turn_id).id if hunks else "",
            hunk_ids=tuple(hunk.id for hunk in hunks),
            runs=runs,
        )

    async def _settled(
        self, hunks: Sequence[ProposedHunk], call: ToolCall, consent: "_Consent"
    ) -> tuple[str, str]:
        """What becomes of fresh hunks now: a few words, and what the model reads of it.

        It depends on the mode, but nobody is asked twice: a yes to the whole diff is a decision.
        """
        count = f"{len(hunks)} hunk{'' if len(hunks) == 1 else 's'}"
        if not hunks:
            return "Took edits back", "Your pending edits there were taken back; nothing is left."
        applies = consent.to_all or self.mode in APPLYING_MODES
        if not applies and self.mode != "ask":
            return f"Proposed {count}", (
                f"Proposed, not yet applied: {count} for the user to decide. "
                "Your reads show them already."
            )
        decided = self._ledger.expect(hunks)
        try:
            if applies:
                for hunk in hunks:
                    hunk.kept = False if self.mode == "keep" and not consent.to_all else None
                await self._published()
                yes = {hunk.id: HunkDecision(hunk_id=hunk.id, action="accept") for hunk in hunks}
                await self._applying.decide(yes, by_user=consent.to_all)
            else:
                set_id = self._ledger.of_turn(call.turn_id).id
                await self._gate.decision(call, set_id, [hunk.id for hunk in hunks], decided)
            await self._news.settled()
        finally:
            self._ledger.expected(hunks)
        done = sum(hunk.is_done for hunk in hunks)
        lines = "\n".join(verdict_line(hunk) for hunk in hunks)
        return f"Applied {done} of {count}", f"What became of {count}:\n{lines}"

    def _text_now(self, path: str, otherwise: str) -> str:
        try:
            document = self._files.document(path, purpose="read")
        except KodeError:
            return otherwise
        return self._files.view(document).text_lf


def _rewritten(rewrite: Rewrite, document: Document, text: str) -> str:
    return to_lf(rewrite(document, text))


def _make(
    rewrite: Rewrite,
    document: Document,
    before: str,
    known: tuple[str, str],
    basis: Basis | None,
) -> _Made:
    """Pure: what a rewrite makes of a text, as hunks where there is a file to have them."""
    shown = document.shown(before)
    wanted = known[1] if shown == known[0] else _rewritten(rewrite, document, shown)
    held, by_lines = held_text(document, before, wanted, to_lf(basis.text) if basis else before)
    hunks = basis.composed(held, by_lines=by_lines) if basis else Composition((), ())
    after = document.shown(held)
    runs = diff_lines(split_lines(shown), split_lines(after))
    return _Made(wanted, shown, after, held, hunks, runs)


def _other_than_allowed(name: str) -> KodeError:
    """A yes is for what the user was shown, and for nothing else (W12)."""
    return KodeError(
        "StaleBase",
        f"{name} changed while the user was asked, so your call would do something else there than "
        "what was allowed. Read it and call again.",
    )
