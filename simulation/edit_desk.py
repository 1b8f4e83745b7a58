"""The user's editor in the world of edits: one file, its buffer, and requests that wait."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.protocol.documents import TextDocumentRef
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.infrastructure.workspace.documents import Documents
from simulation.editors import Manners, answer_to_stale, is_stale
from simulation.story import Violation
from tests.support.edit_buffer import Buffer
from tests.support.edit_editor import wire_edits

MOST_UNDO_STEPS = 20


@dataclass(eq=False)
class Request:
    """An edit that the sidecar asks for; `answer` once the editor has dealt with it.

    `showing` counts how often the file had been opened: versions begin anew each time. `checkouts`
    counts how often somebody else had written it: of a closed file no version tells of that.
    """

    edit: DocumentEdit
    showing: int
    checkouts: int
    was_open: bool
    was_unknown: bool
    reply: "asyncio.Future[ApplyAnswer]"
    answer: ApplyAnswer | None = None


@dataclass(frozen=True)
class Done:
    """What an edit did to a text.

    `blind`: it was made for another text, and the editor could not know or did not look. `undo`:
    it takes hunks back, or puts them back.
    """

    before: str
    after: str
    blind: bool
    undo: bool


@dataclass
class Desk:
    """`EditorPort` over one buffer. `edited` hears of every edit of the sidecar that was done.

    `documents` is what the sidecar knows; only `report`, `open`, `save` and `close` notify it.
    A buffer that is not shown is one that an edit loaded: nobody is told of it. `unknown`: no
    process can know what it holds.
    """

    path: Path
    manners: Manners
    eol: str
    documents: Documents
    edited: Callable[[Done], None]
    buffer: Buffer | None = None
    hidden: Buffer | None = None
    reported: str = ""
    waiting: deque[Request] = field(default_factory=deque[Request])
    dealt_with: list[Request] = field(default_factory=list[Request])
    history: list[str] = field(default_factory=list[str])
    showing: int = 0
    checkouts: int = 0
    unknown: bool = False
    _writes: int = 0

    def __post_init__(self) -> None:
        self.uri = path_to_uri(self.path)
        self._bytes = self.path.read_bytes()
        self._age(self.path)

    @property
    def text(self) -> str:
        """What the user has of the file: the buffer, else what is on disk."""
        buffer = self.buffer or self.hidden
        return buffer.text if buffer else self._from_disk(self.disk)

    @property
    def disk(self) -> str:
        """The text of the file, as the user wrote it last; the sidecar never writes."""
        return self._bytes.decode()

    def check_disk(self) -> None:
        """Raises Violation where somebody else wrote the file."""
        if self.path.read_bytes() != self._bytes:
            raise Violation("somebody else wrote the file", f"not {self._bytes!r}")

    def write(self, text: str) -> None:
        """Write the file, as an editor or a checkout does: another file in its place."""
        if self.manners.syncs_lf:
            text = text.replace("\r\n", "\n").replace("\n", self.eol)
        beside, self._bytes = self.path.with_name("beside"), text.encode()
        beside.write_bytes(self._bytes)
        self._age(beside)
        os.replace(beside, self.path)

    def _age(self, path: Path) -> None:
        """Another old time for each write: a file as young as a clock's step is read each time."""
        self._writes += 1
        os.utime(path, (self._writes, self._writes))

    def _from_disk(self, text: str) -> str:
        return text.replace("\r\n", "\n") if self.manners.syncs_lf else text

    # ---- document sync -------------------------------------------------------------------------

    def open(self) -> None:
        """Show the file: what was loaded unseen, else what is on disk."""
        if self.buffer is not None:
            return
        text, self.hidden = self.text, None
        first = self.manners.first_version
        self.buffer = Buffer(self.uri, text, version=first, encoding=self.manners.encoding)
        self.history.clear()
        self.showing += 1
        self.reported = text
        self.documents.open(self.uri, "plaintext", first, text)

    def close(self) -> None:
        """Put the buffer away; what is not saved is gone."""
        if self.buffer is not None:
            self.buffer = None
            self.documents.close(self.uri)

    def save(self) -> None:
        """Write the buffer, also one that nobody sees; the sidecar is told of a shown one."""
        if self.buffer is not None:
            self.report()
            self.write(self.buffer.text)
            self.documents.save(self.uri, None)
        elif self.hidden is not None:
            self.write(self.hidden.text)
            self.hidden = None

    def report(self) -> None:
        """Send `didChange` with all that is untold."""
        if self.buffer is None:
            return
        params = self.buffer.take_did_change(self.manners.style)
        self.reported = self.buffer.text
        if params is not None:
            version = params["textDocument"]["version"]
            self.documents.change(self.uri, version, params["contentChanges"])

    def change(self, offset: int, delete: int, text: str) -> None:
        """A key of the user's, or a paste."""
        if self.buffer is not None:
            self._remember()
            self.buffer.type(offset, text, delete=delete)

    def take_back(self) -> None:
        """The editor's own undo."""
        if self.buffer is not None and self.history:
            self.buffer.set_text(self.history.pop())

    def reload(self, text: str) -> None:
        """The file has another text now; an editor shows that, unless its own is unsaved."""
        saved = self.buffer is not None and self.buffer.text == self._from_disk(self.disk)
        self.write(text)
        self.checkouts += 1
        self.hidden = None
        if saved and self.buffer is not None:
            self._remember()
            self.buffer.set_text(self._from_disk(text))
            self.report()

    def _remember(self) -> None:
        if self.buffer is not None:
            self.history.append(self.buffer.text)
            del self.history[:-MOST_UNDO_STEPS]

    # ---- edits of the sidecar ------------------------------------------------------------------

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """It arrives; what becomes of it later is a step of the story."""
        assert isinstance(edit, DocumentEdit)
        reply: asyncio.Future[ApplyAnswer] = asyncio.get_running_loop().create_future()
        is_open = self.buffer is not None
        unknown = not is_open and self.hidden is not None and self.unknown
        self.waiting.append(Request(edit, self.showing, self.checkouts, is_open, unknown, reply))
        return await reply

    def can_save(self) -> bool:
        """No: it saves when its user does."""
        return False

    async def save_documents(self, documents: Sequence[TextDocumentRef]) -> Sequence[str]:
        """Save nothing."""
        del documents
        return ()

    def deal_with_next(self) -> None:
        """Do the oldest edit that waits, or refuse it as this editor does."""
        if not self.waiting:
            return
        request = self.waiting.popleft()
        self.dealt_with.append(request)
        request.answer = self._do(request)

    def _do(self, request: Request) -> ApplyAnswer:
        edit, showing = request.edit, request.showing
        if self.buffer is None and self.hidden is None:
            text = self._from_disk(self.disk)
            self.hidden = Buffer(self.uri, text, version=0, encoding=self.manners.encoding)
            self.unknown = False
        buffer = self.buffer or self.hidden
        assert buffer is not None
        if self.buffer is not None and is_stale(self.manners, buffer, edit.version):
            return answer_to_stale(self.manners)
        before = buffer.text
        self._remember()
        known = edit.version == (buffer.version if self.buffer is not None else None)
        known = known or (edit.version is None and request.was_open)  # it could have told one
        another = not request.was_open and request.checkouts != self.checkouts
        another = another or request.was_unknown
        is_hidden = self.buffer is None
        blind = not known or another or showing != self.showing or (is_hidden and self.unknown)
        try:
            buffer.apply_edits(wire_edits(edit))
        except ValueError:
            return ApplyAnswer(False, "no such place")
        self.unknown = blind and is_hidden
        self.edited(Done(before, buffer.text, blind, edit.label.startswith("kode: undo")))
        return ApplyAnswer(True)

    def answer_next(self) -> None:
        """Answer the oldest edit that was dealt with."""
        if self.dealt_with:
            request = self.dealt_with.pop(0)
            if not request.reply.done():
                request.reply.set_result(request.answer or ApplyAnswer(False))

    def gone(self) -> None:
        """The sidecar has died: nobody waits for an answer any more."""
        self.waiting.clear()
        self.dealt_with.clear()

    # ---- the rest of the port ------------------------------------------------------------------

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """The world hears of events where they are emitted."""

    def publish_delta(self, delta: BlockDelta) -> None:
        """Nothing streams here."""

    async def flow(self) -> None:
        """There is always room."""

    def can_change_files(self, kind: str) -> bool:
        """Files as a whole are not part of this world."""
        return False

    async def open_document(self, uri: str) -> bool:
        """As the measured editors: they do not offer it."""
        return False

    async def refresh(self, uri: str) -> None:
        """Document sync has told it."""

    def warn(self, line: str) -> None:
        """Nobody reads it."""

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Nothing here is sensitive."""
        return None

    async def ask_choice(self, question: AskParams) -> AskResult:
        """The model asks nothing here."""
        return AskResult(())
