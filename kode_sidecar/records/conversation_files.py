"""The files of one conversation, open for writing."""

from pathlib import Path

import msgspec
from msgspec import UNSET

from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.records.conversation_meta import META_FILE, ConversationMeta
from kode_sidecar.records.json_text import encode_json
from kode_sidecar.records.jsonl import DiskCounter, JsonlFile
from kode_sidecar.records.message_storage import MessageFile
from kode_sidecar.records.saver import Saver
from kode_sidecar.records.session_lock import SessionLock
from kode_sidecar.records.storage_error import not_saved
from kode_sidecar.records.whole_file import replace_file, sync_folder

JOURNAL_FILE = "journal.jsonl"


class ConversationFiles:
    """`records.conversation_store.ConversationWriter` over `meta.json` and the file of messages.

    A `new` conversation's meta and folder become durable with the first `sync`, and so does what
    `write_meta` wrote; otherwise `meta.json` is replaced without fsync, for `updated_at` can be
    had from the messages. `lock` is released with the files.
    """

    def __init__(
        self,
        folder: Path,
        meta: ConversationMeta,
        saver: Saver,
        counter: DiskCounter,
        lock: SessionLock,
        messages: MessageFile,
        *,
        new: bool = False,
    ) -> None:
        self._lock = lock
        self._path = folder / META_FILE
        self._meta = meta
        self._saver = saver
        self._counter = counter
        self._messages = messages
        self._new = self._meta_due = new
        if new:
            # Its name must be in the folder before the folder is synced.
            JsonlFile(folder / JOURNAL_FILE).close()

    @property
    def folder(self) -> Path:
        """Where the journal and the artifacts lie, too."""
        return self._path.parent

    @property
    def journal_path(self) -> Path:
        """Where `records.journal.Journal` belongs."""
        return self.folder / JOURNAL_FILE

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
            sync_folder(self.folder.parent, self._counter)
        except OSError as error:
            raise not_saved(META_FILE, error) from None
        self._new = False

    def close(self) -> None:
        """Release the files; harmless when repeated."""
        self._messages.close()
        self._lock.release()

    def _sync_meta(self) -> None:
        # Taken down before the write: the loop may ask for another one meanwhile.
        due, self._meta_due = self._meta_due, False
        if not due:
            return
        try:
            data = encode_json(self._meta)
            replace_file(self._path, data, durable=True, counter=self._counter)
        except KodeError:
            self._meta_due = True
            raise

    def _write_meta(self, meta: ConversationMeta) -> None:
        self._meta = meta

        def write() -> None:
            replace_file(self._path, encode_json(meta), durable=False, counter=self._counter)

        self._saver.later(self._path, write)
