"""The files of one conversation: `meta.json`, artifacts, logs of scouts, messages and journal."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.event_parts import EFFORTS, Effort
from kode_sidecar.core.domain.message import Blob, Message
from kode_sidecar.core.protocol.events import artifact_ref
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.core.text.uris import folder_key
from kode_sidecar.core.whole_files import sync_folder
from kode_sidecar.infrastructure.records.disk import not_read, not_saved, replace_file
from kode_sidecar.infrastructure.records.growth import Growth
from kode_sidecar.infrastructure.records.journal import Journal
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, encode_json
from kode_sidecar.infrastructure.records.jsonl_messages import MessageLines
from kode_sidecar.infrastructure.records.messages import MessageFile
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.session_lock import SessionLock
from kode_sidecar.infrastructure.records.session_prefix import (
    PREFIX_FILE,
    SessionPrefix,
    read_prefix,
)

CONVERSATIONS_FOLDER = "conversations"
"""The folder in the state folder with a folder for each conversation, named by its id."""
META_FILE = "meta.json"

# Windows cannot make a folder with the name of a device.
_ID = re.compile(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)$)[a-z0-9-]{1,64}")
_USUAL_BYTES = 16 * 1024
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


def is_session_id(name: str) -> bool:
    """Return whether a name is a valid session id; other names are never looked up on disk."""
    return _ID.fullmatch(name) is not None


class HeadMark(Struct, frozen=True):
    """The message that the user made the head; None is the position before the first message.

    The mark is valid until a message newer than `newest` is written, which is then the head.
    """

    id: str | None
    newest: str | None


class ConversationMeta(Struct, frozen=True, kw_only=True):
    """The contents of `meta.json`; snake_case on disk.

    `agent_type` names an agent; times are RFC 3339 in UTC, `updated_at` that of the newest message.
    `meta` is the user's own and holds `projectRoot` and `roots`. `mode`, `model`, `effort` are set
    if the user chose them for this session, `draft` if a prompt is not sent yet, `head` if it is
    not the newest message; `left_out` and `pinned` are ids of messages. `kind` is set if this is
    no conversation with a user: `job` is the kind of a run.
    """

    id: str
    kind: str | UnsetType = UNSET
    title: str = ""
    agent_type: str = ""
    created_at: str = ""
    updated_at: str = ""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    mode: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    draft: str | UnsetType = UNSET
    head: HeadMark | UnsetType = UNSET
    effort: str | UnsetType = UNSET
    left_out: tuple[str, ...] | UnsetType = UNSET
    pinned: tuple[str, ...] | UnsetType = UNSET

    @property
    def known_effort(self) -> Effort | None:
        """The chosen thinking effort; None: the model's default."""
        return next((effort for effort in EFFORTS if effort == self.effort), None)

    @property
    def folders(self) -> frozenset[str]:
        """The keys of the folders that the conversation belongs to."""
        listed: object = self.meta.get("roots")
        roots = cast(list[Any], listed) if isinstance(listed, list) else None
        names = [self.meta.get("projectRoot")] if roots is None else roots
        return frozenset(folder_key(name) for name in names if isinstance(name, str))

    @property
    def edits(self) -> ContextEdits:
        """The user's edits of the context."""
        return ContextEdits(left_out=self.left_out or (), pinned=self.pinned or ())

    def with_edits(self, edits: ContextEdits) -> "ConversationMeta":
        """Return this meta with other edits of the context."""
        return msgspec.structs.replace(
            self, left_out=edits.left_out or UNSET, pinned=edits.pinned or UNSET
        )


_decode = msgspec.json.Decoder(ConversationMeta).decode


def read_meta(folder: str | os.PathLike[str]) -> ConversationMeta | None:
    """Return the meta of a conversation; None when it is missing, damaged or no file.

    Raises KodeError `Storage` when the disk fails.
    """
    try:
        # Without pathlib and buffers, which cost most of the time: a list reads thousands of files.
        fd = os.open(f"{folder}{os.sep}{META_FILE}", _READ)
        try:
            data = os.read(fd, _USUAL_BYTES)
            while len(data) % _USUAL_BYTES == 0 and (more := os.read(fd, _USUAL_BYTES)):
                data += more
        finally:
            os.close(fd)
        return _decode(data)
    except (FileNotFoundError, *DECODE_ERRORS):
        return None
    except OSError as error:
        if error.errno in _NO_FILE or os.path.isdir(f"{folder}{os.sep}{META_FILE}"):
            return None
        raise not_read(META_FILE, error) from None


def make_way_for_meta(folder: Path) -> None:
    """Move what is not a file out of the meta's place, so that one can be written."""
    path = folder / META_FILE
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            path.rename(folder / f"{META_FILE}.bad")


_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENOTDIR)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# Our ids: longer than any device name, and without characters that lead out of a folder (W11).
_ARTIFACT_ID = re.compile(r"[a-z0-9]{6,64}")


def save_artifact(conversation_folder: Path, new_id: Callable[[], str], text: str) -> Blob:
    """Write a text and return a reference to it; creates the folder if needed.

    Raises KodeError `Storage`.
    """
    artifact_id = new_id()
    path = _artifact_path(conversation_folder, artifact_id)
    data = fix_surrogates(text).encode()
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, _NEW_FILE, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
    except OSError as error:
        raise not_saved(f"artifacts/{path.name}", error) from None
    return Blob(
        ref=artifact_ref(conversation_folder.name, artifact_id),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def copy_artifact(conversation_folder: Path, artifact_id: str, other_folder: Path) -> bool:
    """Copy an artifact into another conversation's folder; False if there is none.

    Raises KodeError `Storage`.
    """
    if not _ARTIFACT_ID.fullmatch(artifact_id):
        return False
    path, copy = (
        _artifact_path(conversation_folder, artifact_id),
        _artifact_path(other_folder, artifact_id),
    )
    if path.is_symlink() or not path.is_file():
        return False
    try:
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(copy, _NEW_FILE, 0o600)
        with path.open("rb") as source, os.fdopen(fd, "wb") as target:
            shutil.copyfileobj(source, target)
    except FileExistsError:
        return True  # it was copied already: two results may name the same artifact
    except OSError as error:
        raise not_saved(f"artifacts/{copy.name}", error) from None
    return True


def read_artifact(
    conversation_folder: Path, artifact_id: str, offset: int, length: int
) -> tuple[int, bytes] | None:
    """Return the size of an artifact and some of its bytes; None if there is no such artifact.

    Raises KodeError `Storage`.
    """
    if not _ARTIFACT_ID.fullmatch(artifact_id):
        return None
    path = _artifact_path(conversation_folder, artifact_id)
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(min(offset, size))
            return size, file.read(length)
    except OSError as error:
        raise not_read(f"artifacts/{path.name}", error) from None


def _artifact_path(conversation_folder: Path, artifact_id: str) -> Path:
    return conversation_folder / "artifacts" / f"{artifact_id}.txt"


SCOUTS_FOLDER = "scouts"


def scout_logs(conversation_folder: Path) -> list[Path]:
    """Return the records of all scouts of a conversation, in the order of their names."""
    return sorted((conversation_folder / SCOUTS_FOLDER).glob("*.jsonl"))


class ConversationFiles:
    """One conversation open for writing; `save` makes everything written durable.

    With `unsynced` folders, the first `sync` saves them and the meta. Changes by `write_meta` and
    `rename` are saved with the next `sync`; otherwise `meta.json` is written some time later, since
    `updated_at` can be found from the messages. `lock` and `journal` are released with the files.
    """

    def __init__(
        self,
        folder: Path,
        meta: ConversationMeta,
        saver: Saver,
        lock: SessionLock,
        messages: MessageFile,
        journal: Journal,
        *,
        unsynced: Sequence[Path] = (),
    ) -> None:
        self._lock = lock
        self._path = folder / META_FILE
        self._meta = meta
        self._saver = saver
        self._messages = messages
        self._unsynced = unsynced
        # Metas to save are counted: the event loop writes and confirms, the saver's thread syncs.
        self._heads = 1 if unsynced else 0
        self._heads_saved = self._heads_synced = 0
        self._saved: ConversationMeta | None = None
        self._prefix = self._prefix_saved = read_prefix(folder)
        self.journal = journal
        self.growth = Growth(folder)

    @property
    def folder(self) -> Path:
        """The folder of the conversation, with journal and artifacts."""
        return self._path.parent

    @property
    def meta(self) -> ConversationMeta:
        """The meta as last written."""
        return self._meta

    @property
    def prefix(self) -> SessionPrefix | None:
        """The beginning of all requests, None before the first one; the next `sync` saves it."""
        return self._prefix

    @prefix.setter
    def prefix(self, prefix: SessionPrefix) -> None:
        self._prefix = prefix

    @property
    def head_due(self) -> int:
        """The number of the meta that a `sync` must save, until `head_saved` confirms it; 0: none.

        It must not depend on the progress of the saver's thread, which a recording cannot replay.
        """
        return self._heads if self._heads > self._heads_saved else 0

    def head_saved(self, head: int) -> None:
        """Note that a `sync` saved the meta with the number `head_due` had before it."""
        self._heads_saved = max(self._heads_saved, head)

    def append(self, *messages: Message) -> None:
        """Write messages, all or none, and bump `updated_at`; the last one is the head.

        Raises KodeError `Storage`.
        """
        self._messages.append(*messages)
        updated = max(self._meta.updated_at, *(one.created_at for one in messages))
        self._write_meta(msgspec.structs.replace(self._meta, updated_at=updated, head=UNSET))

    def rename(self, title: str) -> None:
        """Give the conversation a title; it is saved with the next `sync`."""
        self.write_meta(msgspec.structs.replace(self._meta, title=title))

    def write_meta(self, meta: ConversationMeta) -> None:
        """Replace the meta; it is saved with the next `sync`."""
        self._write_meta(meta)
        self._heads += 1

    def open_scout_log(self, scout_id: str) -> MessageLines:
        """Open the log of a scout, whose id must be one of ours; the scout closes it.

        Raises KodeError `Storage`.
        """
        folder = self.folder / SCOUTS_FOLDER
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise not_saved(SCOUTS_FOLDER, error) from None
        return MessageLines(folder / f"{scout_id}.jsonl")

    async def save(self) -> None:
        """Make everything written durable, including the journal. Raises KodeError `Storage`."""
        if head := self.head_due:  # the meta last: a later process relies on it
            await self._saver.save(self.journal)
            await self._saver.save(self)
            self.head_saved(head)
        else:
            await self._saver.save(self, self.journal)

    def sync(self) -> None:
        """Save what was written, for `Saver.save`. Blocks; raises KodeError `Storage`."""
        self._messages.sync()
        self._sync_prefix()
        self._sync_meta()
        try:
            for folder in self._unsynced:
                sync_folder(folder)
        except OSError as error:
            raise not_saved(META_FILE, error) from None
        self._unsynced = ()

    def close(self) -> None:
        """Release the files; harmless when repeated.

        A waiting meta is written first: it must not appear later under the next writer.
        """
        self._messages.close()
        self.growth.clear()
        self.journal.close()
        self._saver.finish(self._path)
        self._lock.release()

    def _sync_prefix(self) -> None:
        prefix = self._prefix
        if prefix is not None and prefix is not self._prefix_saved:
            replace_file(self.folder / PREFIX_FILE, encode_json(prefix), durable=True)
            self._prefix_saved = prefix

    def _sync_meta(self) -> None:
        heads = self._heads
        if heads > self._heads_synced:
            self._replace_meta(self._meta)
            self._heads_synced = heads

    def _write_meta(self, meta: ConversationMeta) -> None:
        self._meta = meta

        def write() -> None:
            if self._saved is not meta:
                self._replace_meta(meta)

        self._saver.later(self._path, write)

    def _replace_meta(self, meta: ConversationMeta) -> None:
        # Always fsynced: otherwise a power cut could leave an empty file in its place.
        replace_file(self._path, encode_json(meta), durable=True)
        self._saved = meta
