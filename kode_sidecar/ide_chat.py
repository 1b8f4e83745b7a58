"""The conversation without an editor, for programs that import the package (A17).

The same sessions, turns, tools and files as behind the editor. Nobody is there to decide: edits
stay proposals, and what would need the user's yes is refused.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.boot.agent import Agent
from kode_sidecar.boot.system import System
from kode_sidecar.domain.agent_event import BlockDelta, Event, TurnCompleted
from kode_sidecar.domain.message import Message, TextBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import SessionDefaults
from kode_sidecar.event_log.editor_port import (
    ApplyAnswer,
    ChoiceQuestion,
    DocumentEdit,
    FileEdit,
    PermissionQuestion,
)
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.protocol.session import SessionNewParams
from kode_sidecar.protocol.turn import TurnStartParams
from kode_sidecar.records.conversation_store import ConversationStore
from kode_sidecar.records.saver import Saver
from kode_sidecar.sessions import SessionFolders, SessionRegistry
from kode_sidecar.settings import LoadedSettings, load_settings
from kode_sidecar.workspace.documents import Documents
from kode_sidecar.workspace.file_changes import FileChangeKind

_AGENT = "ide-helper"


class NoEditor:
    """`event_log.editor_port.EditorPort` where there is none; it only waits for ends of turns."""

    def __init__(self) -> None:
        self._ended: dict[str, asyncio.Future[TurnCompleted]] = {}

    def turn_end(self, turn_id: str) -> "asyncio.Future[TurnCompleted]":
        """Done when the turn is over, and saved."""
        return self._ended.setdefault(turn_id, asyncio.get_running_loop().create_future())

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """As `EditorPort.publish` says."""
        del session_id
        for event in events:
            if isinstance(event, TurnCompleted) and not self.turn_end(event.turn_id).done():
                self.turn_end(event.turn_id).set_result(event)

    def publish_delta(self, delta: BlockDelta) -> None:
        """Nobody watches."""

    async def flow(self) -> None:
        """There is always room."""

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """As `EditorPort.apply_edit` says."""
        del edit
        return ApplyAnswer(applied=False, reason="there is no editor")

    def can_change_files(self, kind: FileChangeKind) -> bool:
        """Files can be proposed, to be looked at."""
        del kind
        return True

    async def open_document(self, uri: str) -> bool:
        """Nobody can open a file."""
        del uri
        return False

    def warn(self, line: str) -> None:
        """Nobody develops an editor here."""

    async def ask_choice(self, question: ChoiceQuestion) -> Sequence[str]:
        """Nobody is there to choose."""
        del question
        return ()

    async def ask_permission(self, question: PermissionQuestion) -> str | None:
        """Nobody is there to ask."""
        del question
        return None


class Conversations:
    """Sessions of this process without an editor. Make it on the event loop; close it."""

    def __init__(self, loaded: LoadedSettings, roots: Sequence[Path] = ()) -> None:
        settings = loaded.settings
        self.editor = NoEditor()
        outside = System()
        clock, new_id = outside.clock, outside.new_id
        self._saver = Saver()
        store = ConversationStore(settings.storage_root, self._saver, storage=settings.storage)
        uris = [root.as_uri() for root in roots]
        defaults = SessionDefaults(
            _AGENT, settings.mode, settings.model, settings.window_messages, settings.agents
        )
        folders = SessionFolders(
            store, self._saver, clock, new_id, outside.work, defaults, lambda: uris
        )
        self.sessions = SessionRegistry(folders)
        self._agent = Agent(
            loaded,
            editor=self.editor,
            editor_name="",
            documents=Documents("utf-16"),
            editor_context=EditorContextParams,
            outside=outside,
        )
        self._agent.workspace.set_roots(roots)
        self._agent.attach_model(self._agent.open_model())
        self.sessions.attach(self._agent.run_session, self._agent.repair_session)

    async def close(self) -> None:
        """End everything; sessions are free for others then."""
        for session_id in self.sessions.open_ids:
            await self.sessions.remove(session_id)
        await self._agent.close()
        self._saver.close()


def run_ide_chat(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """See `kode_sidecar.run_ide_chat`."""
    return asyncio.run(_chat(user_input, conversation_id, focus_message_id, dict(meta or {})))


async def _chat(
    user_input: str, conversation_id: str | None, focus_message_id: str | None, meta: dict[str, Any]
) -> dict[str, Any]:
    loaded = load_settings(os.environ)
    loaded.require_valid()
    root = meta.get("projectRoot")
    roots = [Path(root).absolute()] if isinstance(root, str) else []
    conversations = Conversations(loaded, roots)
    try:
        sessions = conversations.sessions
        if conversation_id is None:
            created = await sessions.create(SessionNewParams(agent=_AGENT, meta=meta))
            conversation_id = created.session_id
        session = await sessions.open(conversation_id)
        messages = session.conversation.messages
        leaf = messages[-1].id if messages else None
        started, release = await session.start_turn(
            TurnStartParams(
                session_id=conversation_id,
                input=(TextBlock(text=user_input),),
                parent_id=focus_message_id or leaf,
                meta=meta,
            )
        )
        release()
        end = await conversations.editor.turn_end(started.turn_id)
        said = session.conversation.path(session.conversation.head)
    finally:
        await conversations.close()
    if end.error is not None:
        raise KodeError(end.error.code, end.error.message, details=end.error.details)
    answer = next((one for one in reversed(said) if one.role == "assistant"), None)
    return {
        "conversation_id": conversation_id,
        "user_message": {"id": started.message_id, "content": user_input},
        "assistant_message": {
            "id": answer.id if answer else "",
            "content": _text(answer) if answer else "",
        },
    }


def _text(message: Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))
