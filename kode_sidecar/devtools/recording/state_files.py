"""The files of the state folder in a recording: retired models, and sessions of earlier processes.

A session is recorded when the client asks for it, as it is then: its head alone where sessions are
listed, else all of it. What this process writes itself is no input, and follows from the rest.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.text.uris import folder_key
from kode_sidecar.devtools.recording.folders import laid_out, place_below
from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.devtools.recording.recorded_lines import StateFile, StateLock
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import (
    CONVERSATIONS_FOLDER,
    META_FILE,
    is_session_id,
    read_meta,
)
from kode_sidecar.infrastructure.records.disk import FileState, file_state
from kode_sidecar.infrastructure.records.host_models import MODELS_FILE
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, unsealed
from kode_sidecar.infrastructure.records.message_storage import messages_in
from kode_sidecar.infrastructure.records.messages import DATABASE_FILE, MESSAGE_FILES, MESSAGES_FILE
from kode_sidecar.infrastructure.records.session_lock import LOCK_FILE, SessionLock, is_held

MAX_BYTES = 20_000_000

_LIST, _USAGE, _ATTACH = "kode/session/list", "kode/usage/get", "kode/session/attach"
_READING = {
    *(_LIST, _USAGE, "kode/session/get", "kode/session/export", "kode/session/fork"),
    *("kode/message/list", "kode/tree/get", "kode/blob/read"),
}
SERVERS_FOLDER = "mcp"
_LIST_FILE = re.compile(rf"{SERVERS_FOLDER}/(?:[0-9a-f]{{32}}|approved)\.json")
_NOT_RECORDED = {LOCK_FILE, *MESSAGE_FILES, f"{DATABASE_FILE}-shm"}


class StateReader:
    """Reads what changed since the last time, up to 20 MB in all. Blocking.

    `roots` are the open folders: a list of sessions has none of those held in others, and
    neither does the recording, unless the client asks for all.
    """

    def __init__(self, storage_root: Path, roots: Sequence[Path]) -> None:
        self._home = storage_root
        self._roots = {folder_key(root.as_uri()) for root in roots}
        self._own: set[str] = set()
        self._states: dict[str, Sequence[FileState | None]] = {}
        self._held: set[str] = set()
        self._bytes = 0

    def models(self) -> Iterator[StateFile]:
        """Yield which models their hosts have retired, if any."""
        yield from self._file(MODELS_FILE, _text_of(self._home / MODELS_FILE))

    def servers(self) -> Iterator[StateFile]:
        """Yield what MCP servers offered the last time, never a log-in."""
        folder = self._home / SERVERS_FOLDER
        for path in sorted(folder.glob("*.json")):
            if _LIST_FILE.fullmatch(f"{SERVERS_FOLDER}/{path.name}"):
                name = f"{SERVERS_FOLDER}/{path.name}"
                yield from self._file(name, _text_of(path))

    def write_here(self, session_id: str) -> None:
        """This process writes to a session from now on: it is recorded no longer."""
        self._own.add(session_id)

    def asked_for(self, body: bytes) -> Iterator[StateFile | StateLock]:
        """Yield what a message of the client is about, before it is handled."""
        if b'"kode/' not in body:
            return
        frame = read_frame(body)
        method, params = str(frame.get("method")), as_object(frame.get("params"))
        named = params.get("sessionId") or str(params.get("ref", "")).partition(".")[0]
        if isinstance(named, str) and is_session_id(named):
            yield from self._session(named)
            reads = method in _READING or (method, params.get("access")) == (_ATTACH, "read")
            if not reads and named not in self._held:
                self.write_here(named)
        elif method in (_LIST, _USAGE):
            whole = method == _USAGE or bool(params.get("query"))
            for session_id in self._all():
                if params.get("all") or method == _USAGE or self._is_listed(session_id):
                    yield from self._session(session_id, whole=whole)

    def _all(self) -> Sequence[str]:
        """Return every session, and those that have been recorded and are gone."""
        try:
            names = {*os.listdir(self._home / CONVERSATIONS_FOLDER)}
        except OSError:
            names = set[str]()
        return sorted({*filter(is_session_id, names), *self._known()})

    def _known(self) -> Iterator[str]:
        of_sessions = (path for path in self._states if path.startswith(CONVERSATIONS_FOLDER))
        return (Path(path).parts[1] for path in of_sessions)

    def _is_listed(self, session_id: str) -> bool:
        try:
            meta = read_meta(self._home / CONVERSATIONS_FOLDER / session_id)
        except KodeError:
            return True
        return meta is None or not meta.folders or not meta.folders.isdisjoint(self._roots)

    def _session(self, session_id: str, *, whole: bool = True) -> Iterator[StateFile | StateLock]:
        if session_id in self._own:
            return
        folder = self._home / CONVERSATIONS_FOLDER / session_id
        place = f"{CONVERSATIONS_FOLDER}/{session_id}"
        if not folder.is_dir():
            if session_id in self._known():
                self._states = {at: of for at, of in self._states.items() if place not in at}
                yield StateFile(path=place)
            return
        yield from self._file(f"{place}/{META_FILE}", _text_of(folder / META_FILE))
        if whole or not (folder / META_FILE).exists():
            yield from self._content(folder, place)
        try:
            held = is_held(folder)
        except KodeError:
            held = False
        if held != (session_id in self._held):
            self._held ^= {session_id}
            yield StateLock(session_id=session_id, held=held)

    def _content(self, folder: Path, place: str) -> Iterator[StateFile]:
        """Messages are lines in a recording, whatever keeps them."""

        def messages() -> str:
            return _lines(messages_in(folder).records(folder))

        of_messages = [folder / name for name in MESSAGE_FILES]
        yield from self._file(f"{place}/{MESSAGES_FILE}", messages, of_messages)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in _NOT_RECORDED and path.suffix != ".bad":
                name = path.relative_to(self._home).as_posix()
                yield from self._file(name, _text_of(path))

    def _file(
        self, name: str, read: Callable[[], str | None], files: Sequence[Path] = ()
    ) -> Iterator[StateFile]:
        """Yield a file if one of `files`, by default its own, has changed."""
        state = [file_state(path) for path in files or [self._home / name]]
        if self._states.get(name, [None] * len(state)) == state:
            return
        try:
            text = read()
        except KodeError:
            return
        if text is None or self._bytes + len(text) > MAX_BYTES:
            return
        self._states[name] = state
        self._bytes += len(text)
        yield StateFile(path=name, text=text)


class StateCopies:
    """The state folder of a process to which a recording is played.

    `here` replaces the recorded folders in a JSON value by those of this machine.
    """

    def __init__(self, home: Path, here: Callable[[Any], Any]) -> None:
        self._home = home
        self._here = here
        self._locks: dict[str, SessionLock] = {}

    def write(self, line: StateFile | StateLock) -> None:
        """Make, replace or remove a file; take or release a lock.

        Raises KodeError `Storage` for a place outside, and for one where no file can be.
        """
        if isinstance(line, StateLock):
            with laid_out(line.session_id):
                self._lock(line)
            return
        path = place_below(self._home, line.path)
        if not _is_kept(line.path):  # settings, above all
            text = f"The recording names a file that no recording has: {line.path}"
            raise KodeError("Storage", text)
        if line.text is None:
            shutil.rmtree(path, ignore_errors=True)
            return
        with laid_out(line.path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(in_lines(line.text, self._here).encode())

    def close(self) -> None:
        """Release all locks."""
        while self._locks:
            self._locks.popitem()[1].release()

    def _lock(self, line: StateLock) -> None:
        if not line.held:
            lock = self._locks.pop(line.session_id, None)
            if lock is not None:
                lock.release()
        elif line.session_id not in self._locks and is_session_id(line.session_id):
            folder = self._home / CONVERSATIONS_FOLDER / line.session_id
            self._locks[line.session_id] = SessionLock(folder)


def _is_kept(name: str) -> bool:
    folder, _, rest = name.partition("/")
    if folder == CONVERSATIONS_FOLDER:
        return is_session_id(rest.partition("/")[0])
    return name == MODELS_FILE or _LIST_FILE.fullmatch(name) is not None


def in_lines(text: str, change: Callable[[Any], Any]) -> str:
    """Return a text with the JSON values of its lines changed; another line stays as it is."""
    return "\n".join(_in_line(line, change) for line in text.split("\n"))


def _in_line(line: str, change: Callable[[Any], Any]) -> str:
    try:
        value = msgspec.json.decode(line)
    except DECODE_ERRORS:
        return line
    changed = change(value)
    return line if changed == value else msgspec.json.encode(changed).decode()


def _text_of(path: Path) -> Callable[[], str | None]:
    """Return what reads a file, records without their checksums: folders in them are replaced."""

    def read() -> str | None:
        try:
            return _lines(path.read_bytes().split(b"\n")).removesuffix("\n")
        except OSError:
            return None

    return read


def _lines(records: Iterable[bytes]) -> str:
    texts = (unsealed(record).decode("utf-8", "replace") for record in records)
    return "".join(f"{text}\n" for text in texts)
