"""The files of one conversation: `meta.json`, artifacts, logs of scouts, and all of them open."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.domain.message import Blob, Message
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.events import artifact_ref
from kode_sidecar.records.disk import not_read, not_saved, replace_file, sync_folder
from kode_sidecar.records.journal import Journal
from kode_sidecar.records.json_record import DECODE_ERRORS, clean_text, encode_json
from kode_sidecar.records.jsonl import JsonlFile
from kode_sidecar.records.message_record import encode_message
from kode_sidecar.records.messages import MessageFile
from kode_sidecar.records.saver import Saver
from kode_sidecar.records.session_lock import SessionLock

META_FILE = "meta.json"

_USUAL_BYTES = 16 * 1024
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class HeadMark(Struct, frozen=True):
    """Where the head was moved to; None: before the first message.

    It holds until a message is written after `newest`: then that one is the head.
    """

    id: str | None
    newest: str | None


class ConversationMeta(Struct, frozen=True, kw_only=True):
    """What `meta.json` says; snake_case on disk.

    `agent_type` names an agent; times are RFC 3339 in UTC, `updated_at` that of the newest
    message. `meta` is the user's own and holds `projectRoot` and `roots`. `mode` and `model` are
    there when the user chose them for this session, `head` when it is not the newest message.
    """

    id: str
    title: str = ""
    agent_type: str = ""
    created_at: str = ""
    updated_at: str = ""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    mode: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    head: HeadMark | UnsetType = UNSET


_decode = msgspec.json.Decoder(ConversationMeta).decode

FileState = tuple[int, int, int]
"""What tells that a file was written or replaced: its number, time of change and size."""


def file_state(path: str | os.PathLike[str]) -> FileState | None:
    """The state of a file now; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_meta(folder: str | os.PathLike[str]) -> ConversationMeta | None:
    """The meta of a conversation; None when it is missing or damaged.

    Raises KodeError `Storage` when the disk fails.
    """
    try:
        # Without pathlib and buffers, which cost more than the rest: a list reads thousands.
        fd = os.open(os.path.join(folder, META_FILE), _READ)
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
        raise not_read(META_FILE, error) from None


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# An id of ours: too long for the name of a device, and no way out of the folder (W11).
_ARTIFACT_ID = re.compile(r"[a-z0-9]{6,64}")


class Artifacts:
    """The artifacts of one conversation; its folder appears with the first of them."""

    def __init__(self, conversation_folder: Path, new_id: Callable[[], str]) -> None:
        self._conversation = conversation_folder
        self._new_id = new_id

    def save(self, text: str) -> Blob:
        """Write a text; what reads it again. Raises KodeError `Storage`."""
        artifact_id = self._new_id()
        path = _artifact_path(self._conversation, artifact_id)
        data = clean_text(text).encode()
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(path, _NEW_FILE, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except OSError as error:
            raise not_saved(f"artifacts/{path.name}", error) from None
        return Blob(
            ref=artifact_ref(self._conversation.name, artifact_id),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )


def copy_artifact(conversation_folder: Path, artifact_id: str, other_folder: Path) -> bool:
    """Keep an artifact in another conversation's folder, too; False if there is none.

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
        return True  # two results of one path may name it
    except OSError as error:
        raise not_saved(f"artifacts/{copy.name}", error) from None
    return True


def read_artifact(
    conversation_folder: Path, artifact_id: str, offset: int, length: int
) -> tuple[int, bytes] | None:
    """The size of an artifact and some of its bytes; None if there is no such artifact.

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


class ScoutLog:
    """Messages as in `messages.jsonl`, in the order written."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)

    def append(self, message: Message) -> None:
        """Write one finished message; on disk when this returns. Raises KodeError `Storage`."""
        self._file.append(encode_message(message))

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def open_scout_log(conversation_folder: Path, scout_id: str) -> ScoutLog:
    """The record of a scout, whose id is one of ours; the folder appears with the first.

    Raises KodeError `Storage`.
    """
    folder = conversation_folder / SCOUTS_FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise not_saved(SCOUTS_FOLDER, error) from None
    return ScoutLog(folder / f"{scout_id}.jsonl")


def scout_logs(conversation_folder: Path) -> list[Path]:
    """The records of all scouts of a conversation, in the order of their names."""
    return sorted((conversation_folder / SCOUTS_FOLDER).glob("*.jsonl"))


class ConversationFiles:
    """One conversation open for writing; hand it to `Saver.save` to have its messages saved.

    A `new` conversation's meta and folder become durable with the first `sync`, and so does what
    `write_meta` wrote; otherwise `meta.json` is replaced without fsync, for `updated_at` can be
    had from the messages. `lock` and `journal` are released with the files.
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
        new: bool = False,
    ) -> None:
        self._lock = lock
        self._path = folder / META_FILE
        self._meta = meta
        self._saver = saver
        self._messages = messages
        self._new = self._meta_due = new
        self.journal = journal

    @property
    def folder(self) -> Path:
        """Where the journal and the artifacts lie, too."""
        return self._path.parent

    @property
    def meta(self) -> ConversationMeta:
        """As last written."""
        return self._meta

    def append(self, message: Message) -> None:
        """Write a message and bump `updated_at`; it is the head.

        Raises KodeError `Storage`.
        """
        self._messages.append(message)
        updated = max(self._meta.updated_at, message.created_at)
        self._write_meta(msgspec.structs.replace(self._meta, updated_at=updated, head=UNSET))

    def rename(self, title: str) -> None:
        """Give the conversation a title."""
        self._write_meta(msgspec.structs.replace(self._meta, title=title))

    def write_meta(self, meta: ConversationMeta) -> None:
        """Take another meta; it is saved with the next `sync`."""
        self._write_meta(meta)
        self._meta_due = True

    def sync(self) -> None:
        """Save what was written, for `Saver.save`. Blocks; raises KodeError `Storage`."""
        self._messages.sync()
        self._sync_meta()
        if not self._new:
            return
        try:
            sync_folder(self.folder.parent)
        except OSError as error:
            raise not_saved(META_FILE, error) from None
        self._new = False

    def close(self) -> None:
        """Release the files; harmless when repeated.

        A meta that waits to be written is written before: the next writer must not meet it later.
        """
        self._messages.close()
        self.journal.close()
        self._saver.finish(self._path)
        self._lock.release()

    def _sync_meta(self) -> None:
        # Taken down before the write: the loop may ask for another one meanwhile.
        due, self._meta_due = self._meta_due, False
        if not due:
            return
        try:
            data = encode_json(self._meta)
            replace_file(self._path, data, durable=True)
        except KodeError:
            self._meta_due = True
            raise

    def _write_meta(self, meta: ConversationMeta) -> None:
        self._meta = meta

        def write() -> None:
            replace_file(self._path, encode_json(meta), durable=False)

        self._saver.later(self._path, write)
