"""Change sets as the editor sees them: files with hunks, each hunk decided on its own.

Change set: proposed → partly_decided → decided.
Hunk: proposed → applied | rejected | replaced | superseded | stale | conflict | diverged | undone.
A hunk that is stale, in conflict or diverged may be accepted again, and counts as applied once the
text shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from msgspec import Struct

from kode_sidecar.core.domain.hunk_state import HunkState, facts
from kode_sidecar.core.text.text_edit import ending_like
from kode_sidecar.core.text.uris import canonical_key

ChangeSetState = Literal["proposed", "partly_decided", "decided"]
FileChangeKind = Literal["create", "rename", "delete"]
HunkKind = Literal["modify", "create", "rename", "delete"]
HunkFlag = Literal["unread", "staleRead", "sensitive", "runsInBuild", "invisibleCharacters"]


class Position(Struct, frozen=True, gc=False):
    """LSP position: zero-based line, `character` in the negotiated position encoding."""

    line: int
    character: int


class Range(Struct, frozen=True, gc=False):
    """LSP range, end exclusive."""

    start: Position
    end: Position


class HunkView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A hunk on the wire. Sent whole once; afterwards only `hunk_id` and `state`.

    `range` and `old_text` are those of the editor's text at the file's `version`: whole lines, with
    the line ends of the file in `old_text` and `new_text`.
    A `create` has all of the new file as `new_text`, a `delete` all of the old one as `old_text`, a
    `rename` `new_uri` and `new_path`; none of them has a range.
    `superseded_by` names the hunk that replaced it, `reason` says why it is not applied. `diff` of
    a diverged hunk leads from the sent text to the present one; in conflict, from the present text
    to the hunk's. `fits` is sent for a pending hunk: false once the text under it has changed, so
    that it cannot be applied; true when it can again. `merge_of`: this hunk is what is left of that
    one after a merge by lines with the present text; to accept it, name it. `comment` is the user's
    on the decision, `replacement` their own text for the hunk, `block_id` the tool call that
    proposed it. `kept` counts while the hunk is applied: false if the mode `keep` applied it and
    the user has yet to keep or undo it; true once they kept it.
    `code_points` are the hidden characters in `new_text` that the flag `invisibleCharacters`
    reports, as `U+202E`.
    """

    hunk_id: str
    state: HunkState
    kind: HunkKind | None = None
    range: Range | None = None
    old_text: str | None = None
    new_text: str | None = None
    flags: tuple[HunkFlag, ...] = ()
    code_points: tuple[str, ...] = ()
    block_id: str = ""
    superseded_by: str | None = None
    reason: str | None = None
    new_uri: str | None = None
    new_path: str | None = None
    diff: str | None = None
    comment: str | None = None
    fits: bool | None = None
    merge_of: str | None = None
    replacement: str | None = None
    kept: bool | None = None


class TextBase(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The text that hunks were computed on, or that holds them now.

    `version` is absent for a file read from disk.

    `sha256` is the hash of the text in UTF-8 with LF line ends and without BOM; `eol` is the line
    end itself.
    """

    uri: str
    sha256: str
    encoding: str
    eol: str
    bom: bool = False
    version: int | None = None


class FileView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The hunks of one file, in document order. `path` is relative to its root."""

    uri: str
    path: str
    hunks: tuple[HunkView, ...]
    version: int | None = None
    base: TextBase | None = None


@dataclass(frozen=True)
class FileName:
    """A file: the URI as the editor spells it, and a path for display."""

    uri: str
    path: str

    @cached_property
    def key(self) -> str:
        """Its canonical key."""
        return canonical_key(self.uri)


@dataclass
class ProposedHunk:
    """One announced hunk: its contents and the decision on it.

    Its texts never change; `state` and the fields that explain it do. The overlay knows its present
    position, or the pending file changes for a whole file. `announced` is the `seq` of the event
    that carried it whole, `range` and `base` are those of that event, `block_id` is the call.
    `recalled`: it is from an earlier process, which may have sent it. `fits`: the text under it is
    unchanged. `found` is the text in the place of a diverged hunk; None if an earlier process saw
    it. `undone_by` is the number of the newest undo that undid it. `tried` are the replacements
    (None for its own new text) that were sent but not seen, and may still arrive. `repeats` is how
    often its old lines were repeated right beside it, None if unknown. `kept`: as in `HunkView`.
    """

    id: str
    turn_id: str
    file: FileName
    old_text: str
    new_text: str
    kind: HunkKind = "modify"
    new_file: FileName | None = None
    flags: tuple[HunkFlag, ...] = ()
    code_points: tuple[str, ...] = ()
    block_id: str = ""
    range: Range | None = None
    base: TextBase | None = None
    recalled: bool = False
    fits: bool = True
    merge_of: str | None = None
    announced: int = 0
    state: HunkState = "proposed"
    superseded_by: str | None = None
    comment: str | None = None
    replacement: str | None = None
    unconfirmed: bool = False
    found: str | None = None
    reason: str | None = None
    diff: str | None = None
    undone_by: int = 0
    tried: tuple[str | None, ...] = ()
    repeats: int | None = None
    kept: bool | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The canonical keys of the documents it concerns."""
        return (self.file.key, self.new_file.key) if self.new_file else (self.file.key,)

    @property
    def done_state(self) -> HunkState:
        """Its state once the text shows it."""
        return "applied" if self.replacement is None else "replaced"

    @property
    def put_text(self) -> str:
        """The text to insert: the user's own, as whole lines, or its new text."""
        if self.replacement is None:
            return self.new_text
        return ending_like(self.replacement, self.old_text, self.new_text)

    @property
    def is_done(self) -> bool:
        """Whether it counts as applied, with its new text or the user's own."""
        return facts(self.state).is_done

    @property
    def is_to_keep(self) -> bool:
        """Whether it was applied unasked, and the user has yet to keep or undo it."""
        return self.is_done and self.kept is False

    @property
    def is_waiting(self) -> bool:
        """Whether the user has yet to decide on it."""
        return self.state == "proposed" or self.is_to_keep

    @property
    def is_open(self) -> bool:
        """Whether the text may still show that it is applied."""
        return self.state == "proposed" or facts(self.state).is_failed

    def explain(self, reason: str | None, diff: str | None) -> None:
        """Record why it is not applied; an empty reason takes back one that clients hold."""
        self.reason = reason or ("" if self.reason else None)
        self.diff = diff

    def try_for(self, put: str | None) -> None:
        """Record a replacement that was sent but not seen in the text."""
        if put not in self.tried:
            self.tried += (put,)

    def as_sent(self) -> "list[ProposedHunk]":
        """Return the hunk with each text that may be in its place, the latest first."""
        if not self.is_open:
            return [self]
        puts = dict.fromkeys((self.replacement, *reversed(self.tried)))
        return [replace(self, replacement=put) for put in puts]

    def whole_view(self, span: Range | None) -> HunkView:
        """Return the whole hunk; `span` is its position, None once it is decided."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            kind=self.kind,
            range=span,
            old_text=self.old_text if self.kind in ("modify", "delete") else None,
            new_text=self.new_text if self.kind in ("modify", "create") else None,
            flags=self.flags,
            code_points=self.code_points,
            block_id=self.block_id,
            superseded_by=self.superseded_by,
            reason=self.reason,
            new_uri=self.new_file.uri if self.new_file else None,
            new_path=self.new_file.path if self.new_file else None,
            diff=self.diff,
            comment=self.comment or None,
            fits=self._fit_on_wire(),
            merge_of=self.merge_of,
            replacement=self.replacement,
            kept=self._kept_on_wire(),
        )

    def state_view(self) -> HunkView:
        """Return the fields that can change after the announcement."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            superseded_by=self.superseded_by,
            reason=self.reason,
            diff=self.diff,
            comment=self.comment or None,
            fits=self._fit_on_wire(),
            replacement=self.replacement,
            kept=self._kept_on_wire(),
        )

    def _kept_on_wire(self) -> bool | None:
        return self.kept if self.kept or self.is_done else None

    def _fit_on_wire(self) -> bool | None:
        return False if self.state == "proposed" and not self.fits else None

    def restore_state(self, news: HunkView) -> None:
        """Restore a change of state from an event of an earlier process."""
        self.state = news.state
        self.superseded_by = news.superseded_by or self.superseded_by
        self.comment = news.comment or self.comment
        self.reason = news.reason
        self.diff = news.diff
        self.replacement = news.replacement
        self.kept = self.kept if news.kept is None else news.kept
        if facts(self.state).is_failed:
            self.try_for(news.replacement)
        self.fits = news.fits is not False


@dataclass
class ChangeSet:
    """All edits proposed in one turn."""

    id: str
    turn_id: str
    hunks: dict[str, ProposedHunk] = field(default_factory=dict[str, ProposedHunk])

    @property
    def state(self) -> ChangeSetState:
        """`decided` when no hunk waits for the user; superseded hunks do not count."""
        live = [hunk for hunk in self.hunks.values() if hunk.state != "superseded"]
        waiting = sum(hunk.is_waiting for hunk in live)
        if not waiting:
            return "decided"
        return "proposed" if waiting == len(live) else "partly_decided"

    def receive(self, files: Iterable[FileView], seq: int) -> set[str]:
        """Restore hunks from an event of an earlier process; return the ids that it decided."""
        decided: set[str] = set()
        for file in files:
            for view in file.hunks:
                hunk = self.hunks.get(view.hunk_id)
                if hunk is not None:
                    if not (hunk.is_to_keep and view.kept and not view.comment):
                        decided.add(hunk.id)  # to keep what is applied is no news to the model
                    hunk.restore_state(view)
                else:
                    self.hunks[view.hunk_id] = _announced_hunk(self.turn_id, file, view, seq)
        return decided

    def reported_files(self) -> tuple[FileView, ...]:
        """Return all hunks by file, with the ranges of their announcements."""
        return tuple(
            FileView(
                uri=file.uri,
                path=file.path,
                hunks=tuple(hunk.whole_view(hunk.range) for hunk in hunks),
                version=hunks[0].base.version if hunks[0].base else None,
                base=hunks[0].base,
            )
            for file, hunks in by_file(self.hunks.values()).items()
        )


def by_file(hunks: Iterable[ProposedHunk]) -> dict[FileName, list[ProposedHunk]]:
    """Return hunks grouped by file, both in the order given."""
    groups: dict[FileName, list[ProposedHunk]] = {}
    for hunk in hunks:
        groups.setdefault(hunk.file, []).append(hunk)
    return groups


def _announced_hunk(turn_id: str, file: FileView, view: HunkView, seq: int) -> ProposedHunk:
    new_uri = view.new_uri
    return ProposedHunk(
        id=view.hunk_id,
        turn_id=turn_id,
        file=FileName(file.uri, file.path),
        old_text=view.old_text or "",
        new_text=view.new_text or "",
        kind=view.kind or "modify",
        new_file=FileName(new_uri, view.new_path or "") if new_uri is not None else None,
        flags=view.flags,
        code_points=view.code_points,
        block_id=view.block_id,
        range=view.range,
        base=file.base,
        recalled=True,
        merge_of=view.merge_of,
        fits=view.fits is not False,
        announced=seq,
        state=view.state,
        superseded_by=view.superseded_by,
        reason=view.reason,
        diff=view.diff,
        comment=view.comment,
        replacement=view.replacement,
        kept=view.kept,
    )
