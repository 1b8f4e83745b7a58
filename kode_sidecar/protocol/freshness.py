"""Params and results of `kode/freshness/get`."""

from typing import Literal

from msgspec import Struct


class FreshnessGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`limit` is how many important files to name, 1 to 100."""

    session_id: str
    limit: int = 10


class LineRange(Struct, frozen=True):
    """Lines from 1 on, `end` inclusive."""

    start: int
    end: int


class FileFreshness(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A file that the model has read or edited. Times are those of the latest read and edit.

    `sha256` is over the text the editor, or else the disk, had when it was last looked at (LF,
    UTF-8, no BOM); `lines` of that text the model has seen as they are, `staleLines` are others
    than it has seen. `mtime` and `size` are the file's, where the text is from the disk.
    `changed`: by somebody else since the last read or own edit. `lost`: there is no text any more.
    """

    uri: str
    path: str
    sha256: str
    lines: tuple[LineRange, ...] = ()
    stale_lines: tuple[LineRange, ...] = ()
    read_at: str | None = None
    edited_at: str | None = None
    mtime: str | None = None
    size: int | None = None
    changed: bool = False
    lost: Literal["deleted", "unreadable"] | None = None


class ImportantFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file of the project that was used lately."""

    uri: str
    path: str
    used_at: str


class FreshnessGetResult(Struct, frozen=True, kw_only=True):
    """Both lists have the file that was used last first.

    `important` leaves out dependency folders and files that are gone.
    """

    files: tuple[FileFreshness, ...]
    important: tuple[ImportantFile, ...]
