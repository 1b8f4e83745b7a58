"""Where conversations are kept (A7)."""

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from kode_sidecar.domain.agent_event import Event
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.records.artifacts import read_artifact
from kode_sidecar.records.conversation_files import JOURNAL_FILE, MESSAGES_FILE, ConversationFiles
from kode_sidecar.records.conversation_meta import META_FILE, ConversationMeta, HeadMark, read_meta
from kode_sidecar.records.journal import read_events
from kode_sidecar.records.jsonl import DiskCounter, LineProblem, read_records
from kode_sidecar.records.message_record import decode_message
from kode_sidecar.records.saver import Saver, Syncable
from kode_sidecar.records.scout_log import scout_logs
from kode_sidecar.records.spending import Spent, read_spending
from kode_sidecar.records.storage_error import not_read, not_saved
from kode_sidecar.records.whole_file import sync_folder

_GRAVE = ".deleted-"
# A name that Windows takes for a device is no folder there.
_ID = re.compile(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)$)[a-z0-9-]{1,64}")


@dataclass(frozen=True)
class StoredConversation:
    """A conversation as read: all whole messages in the order written, and the damaged lines."""

    meta: ConversationMeta
    messages: Sequence[Message]
    problems: Sequence[LineProblem] = ()

    def tree(self) -> Conversation:
        """The messages as a tree, its head where it was left."""
        conversation = Conversation(self.messages)
        mark = self.meta.head
        if isinstance(mark, HeadMark) and mark.newest == conversation.newest:
            with suppress(KodeError):  # the line of that message was damaged
                conversation.set_head(mark.id)
        return conversation


class ConversationWriter(Syncable, Protocol):
    """One conversation open for writing; hand it to `Saver.save` to have it saved."""

    @property
    def meta(self) -> ConversationMeta: ...

    @property
    def folder(self) -> Path:
        """The folder for the artifacts."""
        ...

    @property
    def journal_path(self) -> Path:
        """Where `records.journal.Journal` belongs."""
        ...

    def append(self, message: Message) -> None:
        """Write a message and bump `updated_at`; on disk when this returns.

        Raises KodeError `Storage`.
        """
        ...

    def rename(self, title: str) -> None:
        """Give the conversation a title."""
        ...

    def write_meta(self, meta: ConversationMeta) -> None:
        """Take another meta; it is saved with the next `sync`."""
        ...

    def close(self) -> None:
        """Release what is open; harmless when repeated."""
        ...


class ConversationStore(Protocol):
    """Conversations by id. Every method may raise KodeError `Storage`.

    An id that could not be one is never looked for on disk.
    """

    def create(self, meta: ConversationMeta) -> ConversationWriter:
        """Make an empty conversation and open it. It is saved with the writer's first `sync`."""
        ...

    def open(self, conversation_id: str) -> ConversationWriter:
        """Open a conversation for writing. Raises KodeError `SessionNotFound`."""
        ...

    def load(self, conversation_id: str) -> StoredConversation:
        """Everything readable of a conversation; blocks while it reads.

        Raises KodeError `SessionNotFound`.
        """
        ...

    def spending(self, conversation_id: str) -> Sequence[Spent]:
        """What its answers used, those of its scouts too, oldest first; blocks while it reads.

        Raises KodeError `SessionNotFound`.
        """
        ...

    def load_events(self, conversation_id: str) -> Sequence[Event]:
        """The readable events of its journal; blocks while it reads.

        Raises KodeError `SessionNotFound`.
        """
        ...

    def read_artifact(
        self, conversation_id: str, artifact_id: str, offset: int, length: int
    ) -> tuple[int, bytes] | None:
        """The size of an artifact and the bytes from `offset` on; None if there is none.

        Blocks while it reads. Raises KodeError `SessionNotFound`.
        """
        ...

    def head(self, conversation_id: str) -> ConversationMeta:
        """The meta alone; of the messages nothing is read unless it is missing or damaged.

        Raises KodeError `SessionNotFound`.
        """
        ...

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation and its artifacts; it must not be open. Blocks.

        Raises KodeError `SessionNotFound`.
        """
        ...

    def list_ids(self) -> list[str]:
        """The ids of all conversations, sorted."""
        ...

    def exists(self, conversation_id: str) -> bool:
        """Is there such a conversation?"""
        ...


class FileConversationStore:
    """The store as plain files: one folder a conversation, under `storage_root`."""

    def __init__(
        self, storage_root: Path, saver: Saver, counter: DiskCounter | None = None
    ) -> None:
        self._root = storage_root / "conversations"
        self._saver = saver
        self._counter = counter or DiskCounter()

    def create(self, meta: ConversationMeta) -> ConversationFiles:
        """As `ConversationStore.create` says."""
        folder = self._path(meta.id)
        try:
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise not_saved("the session's folder", error) from None
        try:
            return ConversationFiles(folder, meta, self._saver, self._counter, new=True)
        except KodeError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def open(self, conversation_id: str) -> ConversationFiles:
        """As `ConversationStore.open` says."""
        meta = self.load(conversation_id).meta
        return ConversationFiles(self._path(conversation_id), meta, self._saver, self._counter)

    def load(self, conversation_id: str) -> StoredConversation:
        """As `ConversationStore.load` says; times missing in the meta come from the messages."""
        if not self.exists(conversation_id):
            raise _not_found(conversation_id)
        folder = self._path(conversation_id)
        messages, problems = read_records(folder / MESSAGES_FILE, decode_message)
        meta = read_meta(folder) or ConversationMeta(id=conversation_id)
        times = [message.created_at for message in messages] or [""]
        meta = msgspec.structs.replace(
            meta,
            id=conversation_id,
            created_at=meta.created_at or times[0],
            updated_at=max(meta.updated_at, times[-1]),
        )
        return StoredConversation(meta, messages, problems)

    def spending(self, conversation_id: str) -> Sequence[Spent]:
        """As `ConversationStore.spending` says."""
        if not self.exists(conversation_id):
            raise _not_found(conversation_id)
        folder = self._path(conversation_id)
        files = [folder / MESSAGES_FILE, *scout_logs(folder)]
        found = [spent for file in files for spent in read_spending(file)]
        return sorted(found, key=lambda spent: spent.created_at)

    def load_events(self, conversation_id: str) -> Sequence[Event]:
        """As `ConversationStore.load_events` says."""
        return read_events(self._path(conversation_id) / JOURNAL_FILE)[0]

    def read_artifact(
        self, conversation_id: str, artifact_id: str, offset: int, length: int
    ) -> tuple[int, bytes] | None:
        """As `ConversationStore.read_artifact` says."""
        return read_artifact(self._path(conversation_id), artifact_id, offset, length)

    def head(self, conversation_id: str) -> ConversationMeta:
        """As `ConversationStore.head` says."""
        if not self.exists(conversation_id):
            raise _not_found(conversation_id)
        meta = read_meta(self._path(conversation_id))
        if meta is None or not meta.updated_at:
            return self.load(conversation_id).meta
        return msgspec.structs.replace(meta, id=conversation_id)

    def delete(self, conversation_id: str) -> None:
        """As `ConversationStore.delete` says; it is gone at once, whole or not at all."""
        if not self.exists(conversation_id):
            raise _not_found(conversation_id)
        grave = self._root / f"{_GRAVE}{conversation_id}"
        try:
            shutil.rmtree(grave, ignore_errors=True)
            self._path(conversation_id).rename(grave)
            sync_folder(self._root, self._counter)
        except OSError as error:
            raise not_saved("the deletion of the session", error) from None
        # What another program holds open is left for the next deletion.
        for left in self._root.glob(f"{_GRAVE}*"):
            shutil.rmtree(left, ignore_errors=True)

    def list_ids(self) -> list[str]:
        """As `ConversationStore.list_ids` says."""
        try:
            names = [entry.name for entry in self._root.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise not_read("conversations", error) from None
        return sorted(name for name in names if self.exists(name))

    def exists(self, conversation_id: str) -> bool:
        """As `ConversationStore.exists` says."""
        if not _ID.fullmatch(conversation_id):
            return False
        folder = self._root / conversation_id
        return any((folder / name).is_file() for name in (META_FILE, MESSAGES_FILE))

    def _path(self, conversation_id: str) -> Path:
        """The only way from an id to a path. Raises KodeError `SessionNotFound`."""
        if not _ID.fullmatch(conversation_id):
            raise _not_found(conversation_id)
        return self._root / conversation_id


def _not_found(conversation_id: str) -> KodeError:
    text = f"There is no session {conversation_id!r}; start one with kode/session/new."
    return KodeError("SessionNotFound", text)
