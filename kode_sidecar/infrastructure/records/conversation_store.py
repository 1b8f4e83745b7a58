"""Stores conversations, a folder each: creates, opens, lists and removes them (A7)."""

import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message
from kode_sidecar.core.whole_files import make_private, sync_folder
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import (
    CONVERSATIONS_FOLDER,
    META_FILE,
    ConversationFiles,
    ConversationMeta,
    HeadMark,
    copy_artifact,
    is_session_id,
    make_way_for_meta,
    read_artifact,
    read_meta,
    scout_logs,
)
from kode_sidecar.infrastructure.records.disk import FileState, file_state, not_read, not_saved
from kode_sidecar.infrastructure.records.journal import (
    JOURNAL_FILE,
    Journal,
    JournalTail,
    StoredEvent,
    read_events,
)
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS
from kode_sidecar.infrastructure.records.jsonl import LineProblem, stream_lines
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message, says
from kode_sidecar.infrastructure.records.message_storage import messages_as, messages_in
from kode_sidecar.infrastructure.records.messages import (
    MESSAGE_FILES,
    LoadedMessages,
    MessageStorage,
    StorageName,
)
from kode_sidecar.infrastructure.records.rebuilding import (
    missing_parents,
    with_rebuilt,
    with_stand_ins,
)
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.session_lock import SessionLock
from kode_sidecar.infrastructure.records.session_prefix import SessionPrefix, read_prefix
from kode_sidecar.infrastructure.records.spending import Spent, read_spending

_GRAVE = ".deleted-"


@dataclass(frozen=True)
class StoredConversation:
    """A conversation as it was read: all intact messages in the order written, and the damage."""

    meta: ConversationMeta
    messages: Sequence[Message]
    problems: Sequence[LineProblem]

    def tree(self) -> Conversation:
        """Return the messages as a tree, with the saved head."""
        conversation = Conversation(self.messages)
        mark = self.meta.head
        if isinstance(mark, HeadMark) and mark.newest == conversation.newest:
            with suppress(KodeError):  # the line of that message was damaged
                conversation.set_head(mark.id)
        return conversation


@dataclass(frozen=True)
class OpenConversation:
    """A conversation open for writing, and its contents."""

    writer: ConversationFiles
    stored: StoredConversation


class ConversationStore:
    """Conversations by id: a folder each, under `storage_root`.

    Every method may raise KodeError `Storage`. An invalid id is never looked up on disk.
    `storage` is the storage for messages of new conversations; existing ones are not changed.
    """

    def __init__(
        self,
        storage_root: Path,
        saver: Saver,
        storage: StorageName = "jsonl",
    ) -> None:
        self._storage: StorageName = storage
        self._root = storage_root / CONVERSATIONS_FOLDER
        self._root_name = str(self._root)
        self._saver = saver
        self._written: dict[str, tuple[FileState | None, str]] = {}

    def create(self, meta: ConversationMeta) -> ConversationFiles:
        """Create an empty conversation and open it. It is saved with the writer's first `sync`."""
        folder, unsynced = self._path(meta.id), [self._root]
        try:
            if not self._root.is_dir():
                make_private(self._root)
                unsynced.append(self._root.parent)  # or a power cut loses the new root
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise not_saved("the session's folder", error) from None
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = SessionLock(folder)
            undo.callback(lock.release)
            messages = messages_as(self._storage).create(folder)
            undo.callback(messages.close)
            journal = Journal(folder / JOURNAL_FILE)  # in the folder before the folder is synced
            files = ConversationFiles(
                folder, meta, self._saver, lock, messages, journal, unsynced=unsynced
            )
            undo.pop_all()
        return files

    def open(self, conversation_id: str) -> OpenConversation:
        """Open a conversation for writing, as its only writer; blocks while it reads.

        Its lock is held until the writer is closed. Damaged records are quarantined; the lost
        messages are rebuilt from the journal and restored to their places, or replaced by a
        stand-in that says so.
        Raises KodeError `SessionNotFound`, `ReadOnly` when another process writes to it.
        """
        with ExitStack() as undo:
            lock = SessionLock(self._folder(conversation_id))
            undo.callback(lock.release)
            # Check again: it may have been deleted before we got the lock.
            folder = self._folder(conversation_id)
            storage = messages_in(folder)
            messages, kept = storage.open(folder)
            undo.callback(messages.close)
            journal = Journal(folder / JOURNAL_FILE)
            undo.callback(journal.close)
            lost = journal.completed - {one.id for one in kept.messages}
            if lost or missing_parents(kept.messages):
                rebuilt = _rebuilt(
                    kept.messages, read_events(folder / JOURNAL_FILE)[0], conversation_id
                )
                if len(rebuilt) > len(kept.messages):
                    messages.close()
                    restored = _restore(storage, folder, rebuilt)
                    messages, again = storage.open(folder)
                    undo.callback(messages.close)
                    whole = again.messages if restored else rebuilt
                    kept = replace(again, messages=whole, problems=kept.problems)
            written = read_meta(folder)
            if written is None:
                make_way_for_meta(folder)
            stored = _stored(conversation_id, written, kept)
            writer = ConversationFiles(folder, stored.meta, self._saver, lock, messages, journal)
            undo.pop_all()
        if written != stored.meta:
            writer.write_meta(stored.meta)
        return OpenConversation(writer, stored)

    def load(self, conversation_id: str) -> StoredConversation:
        """Return a conversation as far as it can be read, or rebuilt from damage.

        Times missing in the meta come from the messages. Blocks while it reads. Raises KodeError
        `SessionNotFound`.
        """
        folder = self._folder(conversation_id)
        kept = messages_in(folder).load(folder)
        if kept.problems or missing_parents(kept.messages):
            events = read_events(folder / JOURNAL_FILE)[0]
            whole = _rebuilt(kept.messages, events, conversation_id)
            kept = LoadedMessages(whole, kept.problems)
        return _stored(conversation_id, read_meta(folder), kept)

    def spending(self, conversation_id: str) -> Sequence[Spent]:
        """Return the usage of its answers and its scouts' answers, oldest first; blocks.

        Raises KodeError `SessionNotFound`.
        """
        folder = self._folder(conversation_id)
        spent = read_spending(messages_in(folder).records(folder))
        spent += self.scouts_spending(conversation_id)
        return sorted(spent, key=lambda one: one.created_at)

    def scouts_spending(self, conversation_id: str) -> Sequence[Spent]:
        """Return the usage of its scouts alone; blocks while it reads.

        Raises KodeError `SessionNotFound`.
        """
        logs = scout_logs(self._path(conversation_id))
        return read_spending(line for log in logs for _, line in stream_lines(log))

    def load_events(self, conversation_id: str) -> Sequence[StoredEvent]:
        """Return the readable events of its journal; blocks while it reads.

        Raises KodeError `SessionNotFound`.
        """
        return read_events(self._path(conversation_id) / JOURNAL_FILE)[0]

    def journal_tail(self, conversation_id: str) -> JournalTail:
        """Return a reader of new lines in its journal, from now on; blocks. Raises as `head`."""
        return JournalTail(self._folder(conversation_id))

    def read_artifact(
        self, conversation_id: str, artifact_id: str, offset: int, length: int
    ) -> tuple[int, bytes] | None:
        """Return the size of an artifact and the bytes from `offset` on; None if there is none.

        Blocks while it reads. Raises KodeError `SessionNotFound`.
        """
        return read_artifact(self._path(conversation_id), artifact_id, offset, length)

    def copy_artifact(self, conversation_id: str, artifact_id: str, folder: Path) -> bool:
        """Copy an artifact into another conversation's folder; False if there is none."""
        if not self.exists(conversation_id):
            return False
        return copy_artifact(self._path(conversation_id), artifact_id, folder)

    def prefix(self, conversation_id: str) -> SessionPrefix | None:
        """Return what the requests of a conversation begin with; None if that is not saved."""
        return read_prefix(self._path(conversation_id))

    def head(self, conversation_id: str) -> ConversationMeta:
        """Return the meta alone; reads the messages only if the meta is missing or damaged.

        Raises KodeError `SessionNotFound`.
        """
        if not is_session_id(conversation_id):
            raise _not_found(conversation_id)
        meta = read_meta(f"{self._root_name}{os.sep}{conversation_id}")
        if meta is None or not meta.updated_at:
            return self.load(conversation_id).meta
        if meta.id != conversation_id:
            meta = msgspec.structs.replace(meta, id=conversation_id)
        return meta

    def newest(self) -> list[tuple[str, str]]:
        """Return the time of the last change and the id of each conversation, newest first.

        The time is empty if nothing can be read. A meta is read again only if its file has
        changed, since each page of a list needs thousands. Blocks.
        """
        written: dict[str, tuple[FileState | None, str]] = {}
        for name in filter(is_session_id, self._names()):
            state = file_state(f"{self._root_name}{os.sep}{name}{os.sep}{META_FILE}")
            known = self._written.get(name)
            if known is None or state is None or known[0] != state:
                try:
                    known = state, self.head(name).updated_at
                except KodeError as error:
                    if error.code == "SessionNotFound":
                        continue
                    known = None, ""
            written[name] = known
        self._written = written
        return sorted(((when, name) for name, (_, when) in written.items()), reverse=True)

    def state(self, conversation_id: str) -> Sequence[FileState | None]:
        """Return a value that changes with messages and head. Raises as `head` does."""
        folder = self._folder(conversation_id)
        states = (file_state(folder / name) for name in (META_FILE, *MESSAGE_FILES))
        # Reading a database creates an empty log beside it, which is no change.
        return [state if state and state[2] else None for state in states]

    def says(self, conversation_id: str, query: str) -> bool:
        """Return whether a prompt or an answer contains the text, ignoring case. Blocks."""
        folder = self._path(conversation_id)
        try:
            return says(messages_in(folder).records(folder), query)
        except KodeError:
            return False  # an unreadable conversation cannot match

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation and its artifacts; it must not be open here. Blocks.

        Raises KodeError `SessionNotFound`, `ReadOnly` when another process has it open.
        """
        folder = self._folder(conversation_id)
        lock = SessionLock(folder)
        try:
            if sys.platform == "win32":
                lock.release()  # Windows moves no folder while a file in it is open
            self._bury(conversation_id, folder)
        finally:
            lock.release()
        # Files that another program holds open stay until the next deletion.
        for left in self._root.glob(f"{_GRAVE}*"):
            shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def locked(self, conversation_id: str) -> Generator[Path]:
        """Hold a conversation's lock, so that nobody else can write to it; yield its folder.

        Raises KodeError `SessionNotFound`, `ReadOnly`, `Storage`.
        """
        lock = SessionLock(self._folder(conversation_id))
        try:
            yield self._folder(conversation_id)
        finally:
            lock.release()

    def list_ids(self) -> list[str]:
        """Return the ids of all conversations, sorted."""
        return sorted(filter(self.exists, self._names()))

    def exists(self, conversation_id: str) -> bool:
        """Return whether there is such a conversation."""
        if not is_session_id(conversation_id):
            return False
        folder = f"{self._root_name}{os.sep}{conversation_id}"  # there may be thousands
        if os.path.isfile(f"{folder}{os.sep}{META_FILE}"):
            return True
        try:
            return os.path.isdir(folder) and any(messages_in(Path(folder)).records(Path(folder)))
        except KodeError:
            return True

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._root)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise not_read(CONVERSATIONS_FOLDER, error) from None

    def _bury(self, conversation_id: str, folder: Path) -> None:
        grave = self._root / f"{_GRAVE}{conversation_id}"
        try:
            shutil.rmtree(grave, ignore_errors=True)
            folder.rename(grave)
            sync_folder(self._root)
        except OSError as error:
            with suppress(OSError):  # a refused deletion must change nothing
                grave.rename(folder)
            raise not_saved("the deletion of the session", error) from None

    def _folder(self, conversation_id: str) -> Path:
        """Return the folder of an existing conversation. Raises KodeError `SessionNotFound`."""
        if not self.exists(conversation_id):
            raise _not_found(conversation_id)
        return self._path(conversation_id)

    def _path(self, conversation_id: str) -> Path:
        """Turn a valid id into a path; nothing else may. Raises KodeError `SessionNotFound`."""
        if not is_session_id(conversation_id):
            raise _not_found(conversation_id)
        return self._root / conversation_id


def _rebuilt(
    messages: Sequence[Message], events: Sequence[StoredEvent], conversation_id: str
) -> Sequence[Message]:
    """Return the messages with the damaged ones rebuilt, or replaced by stand-ins."""
    reported = with_rebuilt(messages, events, conversation_id)
    return with_stand_ins(reported, events, conversation_id)


def _restore(storage: MessageStorage, folder: Path, messages: Sequence[Message]) -> bool:
    """Rewrite the messages; existing ones keep their records byte for byte.

    Returns False if the disk refuses, or still holds damage: the next opening rebuilds them again.
    """
    there: dict[str, bytes] = {}
    try:
        for record in storage.records(folder):
            there.setdefault(decode_message(record).id, record)
        storage.replace(folder, [there.get(one.id) or encode_message(one) for one in messages])
    except (KodeError, *DECODE_ERRORS):
        return False
    return True


def _stored(
    conversation_id: str,
    meta: ConversationMeta | None,
    kept: LoadedMessages,
) -> StoredConversation:
    times = [message.created_at for message in kept.messages] or [""]
    meta = meta or ConversationMeta(id=conversation_id)
    meta = msgspec.structs.replace(
        meta,
        id=conversation_id,
        created_at=meta.created_at or times[0],
        updated_at=max(meta.updated_at, times[-1]),
    )
    return StoredConversation(meta, kept.messages, kept.problems)


def _not_found(conversation_id: str) -> KodeError:
    text = f"There is no session {conversation_id!r}: list the sessions, or begin a new one."
    return KodeError("SessionNotFound", text)
