"""Change sets as the editor sees them: files with hunks, each hunk decided on its own.

Change set: proposed → partly_decided → decided.
Hunk: proposed → applied | rejected | replaced | superseded | stale | conflict | diverged | undone.
"""

from typing import Literal

from msgspec import Struct

ChangeSetState = Literal["proposed", "partly_decided", "decided"]
HunkState = Literal[
    "proposed",
    "applied",
    "rejected",
    "replaced",
    "superseded",
    "stale",
    "conflict",
    "diverged",
    "undone",
]
HunkKind = Literal["modify", "create", "rename", "delete"]
HunkFlag = Literal["unread", "staleRead", "sensitive", "invisibleCharacters"]


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
    `superseded_by` names the hunk that took over, `repairs` the diverged one whose text this one
    puts right, `reason` says why one is stale. `diff`, of a diverged hunk, leads from what was sent
    to what is there. `code_points` are the hidden characters in `new_text` that the flag
    `invisibleCharacters` is about, as `U+202E`.
    """

    hunk_id: str
    state: HunkState
    kind: HunkKind | None = None
    range: Range | None = None
    old_text: str | None = None
    new_text: str | None = None
    flags: tuple[HunkFlag, ...] = ()
    code_points: tuple[str, ...] = ()
    superseded_by: str | None = None
    reason: str | None = None
    new_uri: str | None = None
    new_path: str | None = None
    repairs: str | None = None
    diff: str | None = None


class TextBase(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The text that hunks were computed on, or stand in now.

    `version` is absent for a file read from disk.

    `sha256` is over the text in UTF-8 with LF line ends and without BOM; `eol` is the line end
    itself.
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
