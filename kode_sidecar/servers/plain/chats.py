"""The conversations of a client without a plugin: opened, prompted, shown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kode_sidecar.agent.sessions import SessionCatalog, SessionRegistry
from kode_sidecar.core.domain.agent_event import (
    BlockDelta,
    ChangeSetUpdated,
    Event,
    Notice,
    TurnCompleted,
)
from kode_sidecar.core.domain.message import PromptBlock
from kode_sidecar.core.protocol.session import SessionNewParams
from kode_sidecar.core.protocol.turn import TurnStartParams, TurnSteerParams
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.plain.actions import ChatState
from kode_sidecar.servers.plain.chat import Chat
from kode_sidecar.servers.plain.chat_document import ChatDocument
from kode_sidecar.servers.plain.editor import PlainEditor
from kode_sidecar.servers.plain.messages import Messages
from kode_sidecar.servers.plain.pending_hunks import PendingHunk, PendingHunks
from kode_sidecar.servers.plain.selections import text_block
from kode_sidecar.servers.plain.texts import Texts
from kode_sidecar.servers.plain.trust import TrustQuestion

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.sessions.session import Session
    from kode_sidecar.agent.verbs.calls import VerbCall

_MOST_NAMED_FILES = 4


class Chats:
    """The conversations of this process by session; one of them is the current one.

    A chat document lies in `folder` and is named after its session, so that a later process
    finds the session again.
    """

    def __init__(
        self,
        folder: Path,
        sessions: SessionRegistry,
        catalog: SessionCatalog,
        documents: Documents,
        editor: PlainEditor,
        hunks: PendingHunks,
        messages: Messages,
        texts: Texts,
        trust: TrustQuestion,
    ) -> None:
        self.catalog = catalog
        self._folder = folder
        self._sessions = sessions
        self._documents = documents
        self._editor = editor
        self._hunks = hunks
        self._messages = messages
        self._texts = texts
        self._trust = trust
        self._all: dict[str, Chat] = {}
        self._current: Chat | None = None
        self.changed: Callable[[], None] = lambda: None
        editor.on_events, editor.on_delta = self._events, self._delta
        editor.ask_in_chat = self._ask_in_chat

    def state_at(self, uri: str) -> ChatState:
        """Return what code actions need of the conversations."""
        return ChatState(self._session_of(uri) is not None, self._running() is not None)

    async def session(self) -> "Session":
        """Return the session of the current conversation, which may be a new one."""
        chat = self._current or await self.begin_new()
        return await self._sessions.get(chat.session_id)

    async def session_of(self, session_id: str) -> "Session":
        """Return a session whose conversation is now the current one. Raises KodeError, OSError."""
        await self.open(session_id)
        return await self.session()

    async def begin_new(self) -> Chat:
        """Begin a new conversation. Raises KodeError, OSError."""
        created = await self._sessions.create(SessionNewParams())
        chat = self._conversation(created.session_id)
        chat.create()
        return chat

    async def open(self, session_id: str) -> Chat:
        """Make the conversation of a session the current one. Raises KodeError, OSError."""
        if session_id in self._all:
            self._current = self._all[session_id]
            return self._current
        session = await self._sessions.open(session_id)
        chat = self._conversation(session_id)
        conversation = session.conversation
        chat.restore(list(conversation.path(conversation.head)))
        if session.stream.history.findings:
            self._editor.on_review(session_id)
        return chat

    async def send(self, uri: str | None) -> None:
        """Send what stands below the last heading of a chat document, or of the current one."""
        session_id = self._session_of(uri) if uri is not None else None
        chat = await self.open(session_id) if session_id is not None else self._current
        text = chat.document.prompt() if chat is not None else ""
        if not text:
            self._messages.info(self._texts("nothing_to_send"))
            return
        await self._start([text_block(text)], None)

    async def prompt(
        self, blocks: Sequence[PromptBlock], shown: str, call: "VerbCall | None" = None
    ) -> None:
        """Ask in the current conversation; `shown` stands for the prompt in its document.

        `call` is what goes with the prompt, where its text does not name it.
        """
        await self._start(blocks, shown, call)
        chat = self._current
        if chat is not None and not chat.document.is_open:
            await self._messages.show_document(chat.document.uri, focus=False)

    async def show_current(self) -> None:
        """Show the document of the current conversation; where that is impossible, its path."""
        chat = self._current or await self.begin_new()
        if not await self._messages.show_document(chat.document.uri, focus=True):
            self._messages.info(str(chat.document.path))

    async def show_hunk(self, one: PendingHunk) -> None:
        """Show what a hunk would change, as a diff document or a message."""
        change_sets = self._sessions.change_sets_of(one.change_set_id)
        diff = str(change_sets.get(one.change_set_id).diff or "")
        document = ChatDocument(
            self._folder / f"{one.hunk.hunk_id}.diff", self._documents, self._editor.apply_edit, ()
        )
        document.write(diff)
        document.close()
        if not await self._messages.show_document(document.uri, focus=True):
            self._messages.info(diff)

    def stop(self) -> bool:
        """Cancel the running turn; return whether there was one."""
        chat = self._running()
        return chat is not None and self._sessions.cancel_turn(chat.turn_id or "")

    def close(self) -> None:
        """Write what is missing in documents that no editor has open."""
        for chat in self._all.values():
            chat.document.close()

    async def _start(
        self, blocks: Sequence[PromptBlock], shown: str | None, call: "VerbCall | None" = None
    ) -> None:
        """Start a turn, or steer the one that runs."""
        await self._trust.ask_once()
        session = await self.session()
        chat = self._all[session.id]
        running = session.active_turn_id
        if running is not None:
            call = call or await session.called(blocks)
            reported = (*blocks, *([text_block(call.text)] if call is not None else ()))
            steer = TurnSteerParams(session_id=session.id, turn_id=running, input=reported)
            (await session.steer(steer))()
            return
        params = TurnStartParams(session_id=session.id, input=tuple(blocks))
        _, release = await session.start_turn(params, call)
        chat.begin(shown)
        release()
        self._hunks.include(session.id)
        self.changed()

    def _conversation(self, session_id: str) -> Chat:
        headings = [f"## {word}" for word in self._texts.all_of("you")]
        path = self._folder / f"{session_id}.md"
        document = ChatDocument(path, self._documents, self._editor.apply_edit, headings)
        chat = Chat(session_id, document, self._texts, self._ended)
        self._all[session_id] = self._current = chat
        self._editor.own.add(session_id)
        self._hunks.include(session_id)
        return chat

    def _session_of(self, uri: str) -> str | None:
        """Return the id of the session whose chat document this is."""
        for session_id, chat in self._all.items():
            if canonical_key(chat.document.uri) == canonical_key(uri):
                return session_id
        folder, _, name = uri.rpartition("/")
        if name.endswith(".md") and canonical_key(folder) == canonical_key(self._folder.as_uri()):
            return name.removesuffix(".md")
        return None

    def _running(self) -> Chat | None:
        return next((chat for chat in self._all.values() if chat.turn_id is not None), None)

    def _events(self, session_id: str, events: Sequence[Event]) -> None:
        chat = self._all[session_id]
        for event in events:
            chat.follow(event)
            if isinstance(event, ChangeSetUpdated):
                self._hunks.schedule()
            elif isinstance(event, Notice) and event.level != "info":
                self._messages.warn(event.message)

    def _delta(self, delta: BlockDelta) -> bool:
        for chat in self._all.values():
            if chat.owns(delta.block_id):
                chat.grow(delta)
                return True
        return False

    def _ended(self, chat: Chat, event: TurnCompleted, answer: str) -> None:
        self._hunks.refresh()
        if event.error is not None:
            self._messages.error(self._texts("failed", reason=event.error.message))
        elif answer and not self._messages.shows_documents and not chat.document.is_open:
            text = self._texts("see_chat", text=answer.strip(), path=chat.document.path)
            self._messages.info(text)
        waiting = self._hunks.all()
        if waiting:
            names = list(dict.fromkeys(one.file.path for one in waiting))
            files = ", ".join(names[:_MOST_NAMED_FILES])
            self._messages.info(self._texts("waiting", count=len(waiting), files=files))
        self.changed()

    async def _ask_in_chat(self, question: str, choices: Sequence[str]) -> str:
        """Ask by lines to tick, for a client without message requests."""
        chat = self._current or await self.begin_new()
        heading = self._texts("tick")
        if not await self._messages.show_document(chat.document.uri, focus=True):
            self._messages.info(f"{question}\n{heading} {chat.document.path}")
        return await chat.document.ask(question, choices)
