"""One chat document: on disk while no editor has it open, else by versioned edits of its buffer."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.core.text.text_lines import LineIndex
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.core.whole_files import make_private, move_over, write_beside
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.documents import DocumentChange, Documents
from kode_sidecar.servers.plain.chat_text import AnswerText, Insertion, answers_in, prompt_of

_PAUSE_SECONDS = 0.3
_SHOWN_SECONDS = 5.0
_MOST_REFUSALS = 20

Apply = Callable[[DocumentEdit], Awaitable[ApplyAnswer]]


class ChatDocument:
    """Holds one conversation as Markdown. The user writes in it at any time, so we only insert.

    An edit is sent for the version that was read, and counts as done once the text shows it: the
    editor's answer is no proof. One that was dropped is made again in the text as it is then.
    """

    def __init__(
        self, path: Path, documents: Documents, apply: Apply, headings: Sequence[str]
    ) -> None:
        self.path = path
        self.uri = path_to_uri(path)
        self._documents = documents
        self._apply = apply
        self._headings = headings
        self._answer: AnswerText | None = None
        self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._waiting: tuple[str, Sequence[str], asyncio.Future[str]] | None = None
        self._unsubscribe = documents.subscribe(self._document_changed)

    @property
    def is_open(self) -> bool:
        """Whether the editor has the document open."""
        return self._open() is not None

    def text(self) -> str:
        """Return the document as the user sees it."""
        document = self._open()
        if document is not None:
            return document.text
        try:
            return self.path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def prompt(self) -> str:
        """Return what the user has written below the last heading."""
        return prompt_of(self.text(), self._headings)

    def write(self, text: str) -> None:
        """Create the file, if it is missing, with this text. Raises OSError."""
        make_private(self.path.parent)
        if not self.path.exists():
            self._save(text)

    def begin(self, opening: str) -> None:
        """Begin an answer below everything else; `opening` is a prompt that is not there yet."""
        self._answer = AnswerText(answers_in(self.text()) + 1, opening)
        self._ended = False
        self._wake()

    def add(self, text: str) -> None:
        """Let the answer grow."""
        if self._answer is not None:
            self._answer.text += text
            self._wake()

    def end(self, text: str) -> None:
        """Let the answer grow for the last time; the document is the user's alone afterwards."""
        self._ended = True
        self.add(text)

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask by lines to tick; return the choice. Waits without a limit."""
        if self._answer is None:
            self.begin("")
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting = question, choices, answer
        lines = "".join(f"- [ ] {choice}\n" for choice in choices)
        self.add(f"\n\n{question}\n\n{lines}\n")
        try:
            return await answer
        finally:
            self._waiting = None

    async def written(self) -> None:
        """Wait until nothing is left to write."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def close(self) -> None:
        """Stop writing; what is missing goes to the file if the editor does not have it open."""
        self._unsubscribe()
        if self._task is not None:
            self._task.cancel()
        if self._answer is not None and not self.is_open:
            self._insert_on_disk(self._next())

    def _open(self) -> Document | None:
        document = self._documents.get(self.uri)
        return document if document is not None and document.synced else None

    def _document_changed(self, change: DocumentChange) -> None:
        if self._documents.get(self.uri) is not change.document and change.kind != "closed":
            return
        self._changed.set()
        if self._answer is not None and change.kind in ("opened", "closed"):
            self._answer.seen = 0  # another text, which may be older than the one written to
        if self._answer is not None and self._waiting is not None:
            question, choices, answer = self._waiting
            chosen = self._answer.ticked(self.text(), question, choices)
            if chosen is not None and not answer.done():
                answer.set_result(chosen)
        self._wake()

    def _wake(self) -> None:
        if self._answer is not None and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._write_all(), name=f"chat {self.path.name}")

    async def _write_all(self) -> None:
        """Write until nothing is missing, a few times a second."""
        refusals = 0
        while (found := self._next()).text and refusals < _MOST_REFUSALS:
            document = self._open()
            if document is None:
                self._insert_on_disk(found)
            else:
                shown = await self._insert_in_editor(document, found)
                refusals = 0 if shown else refusals + 1
            await asyncio.sleep(_PAUSE_SECONDS)
        if self._ended:
            self._answer = None

    def _next(self) -> Insertion:
        """Return what is to be inserted now; where the user changed an answer, the rest below."""
        assert self._answer is not None, "something was begun"
        text = self.text()
        found = self._answer.missing(text)
        if found is None:
            self._answer = self._answer.begin_again(answers_in(text) + 1)
            found = self._answer.missing(text) or Insertion(len(text), "")
        return found

    async def _insert_in_editor(self, document: Document, found: Insertion) -> bool:
        """Send one edit; return whether the text showed it within some seconds."""
        index = LineIndex(document.text, self._documents.position_encoding)
        at = Position(**index.position(found.at))
        before = self._seen()
        edit = EditorTextEdit(range=Range(at, at), new_text=found.text)
        self._changed.clear()
        answer = await self._apply(DocumentEdit("kode", self.uri, document.version, (edit,)))
        if not answer.applied:
            return False
        try:
            async with asyncio.timeout(_SHOWN_SECONDS):
                while self._seen() <= before:
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            return False
        return True

    def _seen(self) -> int:
        """Return how much of the answer the text has shown; a new answer counts as all."""
        answer = self._answer
        if answer is None or answer.missing(self.text()) is None:
            return sys.maxsize
        return answer.seen

    def _insert_on_disk(self, found: Insertion) -> None:
        text = self.text()
        self._save(text[: found.at] + found.text + text[found.at :])

    def _save(self, text: str) -> None:
        move_over(write_beside(self.path, text.encode("utf-8"), durable=False), self.path)
