"""Conversations without an editor, for programs that import the package (A17).

Sessions, turns, tools and files are the same as with an editor. But no user decides: edits stay
proposals, and whatever needs the user's permission is refused.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, TypedDict, TypeVar, get_args

import msgspec

from kode_sidecar.agent.event_log.editor_port import (
    ApplyAnswer,
    DocumentEdit,
    FileEdit,
    WithoutDocuments,
)
from kode_sidecar.agent.sessions import SessionRegistry
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.core.domain.agent_event import BlockDelta, BlockStarted, Event, TurnCompleted
from kode_sidecar.core.domain.message import Message, TextBlock, texts_of
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.core.protocol.change_set import ChangeSetView
from kode_sidecar.core.protocol.documents import EditorContextParams
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.core.protocol.session import Mode, SessionNewParams
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.core.settings import LiveSettings, LoadedSettings, load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.model_answer import ModelAnswer, send_message
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.boot.agent import Agent
from kode_sidecar.servers.boot.job_agent import JobAgent
from kode_sidecar.servers.boot.state_folder import session_folders
from kode_sidecar.servers.boot.system import System

_AGENT = "ide-helper"
T = TypeVar("T")


class NoEditor(WithoutDocuments):
    """`event_log.editor_port.EditorPort` without an editor; it only waits for ends of turns.

    `on_text` gets the text of answers as it grows, `on_event` the events of the session as they
    are on the wire.
    """

    def __init__(
        self,
        on_text: Callable[[str], None] | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._ended: dict[str, asyncio.Future[TurnCompleted]] = {}
        self._on_text = on_text
        self._on_event = on_event
        self._texts: set[str] = set()
        self._raised: Exception | None = None  # by a function of the caller

    def turn_end(self, turn_id: str) -> "asyncio.Future[TurnCompleted]":
        """Return a future: done when the turn has ended and is saved, or failed by the caller."""
        end = self._ended.setdefault(turn_id, asyncio.get_running_loop().create_future())
        if self._raised is not None and not end.done():
            end.set_exception(self._raised)
        return end

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """See `EditorPort.publish`."""
        del session_id
        for event in events:
            if self._on_event is not None:
                self._call(self._on_event, msgspec.to_builtins(event))
            if isinstance(event, BlockStarted) and isinstance(event.block, TextBlock):
                self._texts.add(event.block_id)
            if isinstance(event, TurnCompleted) and not self.turn_end(event.turn_id).done():
                self.turn_end(event.turn_id).set_result(event)

    def publish_delta(self, delta: BlockDelta) -> None:
        """See `EditorPort.publish_delta`."""
        if self._on_text is not None and delta.block_id in self._texts:
            self._call(self._on_text, delta.add)

    def _call(self, function: Callable[[T], None], value: T) -> None:
        """Call a function of the caller's; what it raises reaches the caller, not the turn."""
        try:
            function(value)
        except Exception as error:
            self._on_text, self._on_event, self._raised = None, None, error
            for turn_id in tuple(self._ended):
                self.turn_end(turn_id)

    async def flow(self) -> None:
        """Return at once: no client can be slow."""

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Refuse: see `EditorPort.apply_edit`."""
        del edit
        return ApplyAnswer(applied=False, reason="there is no editor")

    async def refresh(self, uri: str) -> None:
        """Do nothing: the only texts are those on disk."""
        del uri

    def warn(self, line: str) -> None:
        """Do nothing: there is no editor whose developer could read it."""

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Return no choice: there is no user."""
        del question
        return AskResult(())

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Return no answer: there is no user."""
        del question
        return None


class Conversations:
    """The sessions of this process, without an editor. Create it on the event loop; close it."""

    def __init__(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path] = (),
        editor: NoEditor | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        self.editor = editor or NoEditor()
        environment = System()
        self._saver = Saver()
        uris = [root.as_uri() for root in roots]
        self.sessions = SessionRegistry(
            session_folders(loaded.settings, self._saver, environment, lambda: uris, _AGENT)
        )
        live = LiveSettings(loaded)
        if trusted:
            live.trust(True)
        self._agent = Agent(
            live,
            editor=self.editor,
            editor_name="",
            documents=Documents("utf-16"),
            editor_context=EditorContextParams,
            environment=environment,
        )
        self._agent.workspace.set_roots(roots)
        self._agent.attach_model(self._agent.open_model())
        self.sessions.attach(self._agent.run_session, self._agent.repair_session)

    def check_verb(self, name: str) -> None:
        """Raise KodeError `InvalidParams`, which lists all verbs, if there is none of this name."""
        names = [verb.name for verb in self._agent.knowledge.verbs_now().verbs]
        if name not in names:
            text = f"There is no verb {name!r}; there are: {', '.join(names)}."
            raise KodeError("InvalidParams", text)

    async def close(self) -> None:
        """End everything; other processes can then open the sessions."""
        for session_id in self.sessions.open_ids:
            await self.sessions.remove(session_id)
        await self._agent.close()
        self._saver.close()


@dataclass(frozen=True)
class Prompt:
    """A prompt and its options: see `kode_sidecar.run_ide_chat`.

    `trusted`: the user trusts the project's own files.
    """

    user_input: str
    conversation_id: str | None = None
    focus_message_id: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    agent: str | None = None
    mode: Mode | None = None
    verb: str | None = None
    trusted: bool = False
    on_text: Callable[[str], None] | None = None
    on_event: Callable[[dict[str, Any]], None] | None = None


class ChatMessage(TypedDict):
    """A message by its id, and its text."""

    id: str
    content: str


class ChatEdit(TypedDict):
    """What is proposed for one file: hunks as on the wire, and the diff of the change set."""

    path: str
    uri: str
    hunks: list[dict[str, Any]]
    change_set_id: str
    diff: str


class ChatResult(TypedDict):
    """What a call returns; `usage` and `cost` as on the wire."""

    conversation_id: str
    user_message: ChatMessage
    assistant_message: ChatMessage
    stop_reason: str
    usage: dict[str, int]
    cost: dict[str, Any] | None
    proposed_edits: list[ChatEdit]


async def converse(prompt: Prompt) -> ChatResult:
    """Send the prompt and wait for the answer. Raises KodeError."""
    _require_mode(prompt.mode)
    prompt = replace(prompt, meta={name: _plain(value) for name, value in prompt.meta.items()})
    loaded = load_settings(os.environ)
    loaded.require_valid()
    root = prompt.meta.get("projectRoot")
    roots = [Path(root).absolute()] if isinstance(root, str) else []
    editor = NoEditor(prompt.on_text, prompt.on_event)
    conversations = Conversations(loaded, roots, editor, trusted=prompt.trusted)
    try:
        if prompt.verb is not None:
            conversations.check_verb(prompt.verb)
        session = await _session(conversations, prompt)
        messages = session.conversation.messages
        started, release = await session.start_turn(
            TurnStartParams(
                session_id=session.id,
                input=(TextBlock(text=prompt.user_input),),
                parent_id=prompt.focus_message_id or (messages[-1].id if messages else None),
                model=prompt.model,
                # In `ask` the turn would wait for somebody who decides.
                mode=prompt.mode or ("review" if session.mode == "ask" else None),
                meta=dict(prompt.meta),
            )
        )
        release()
        end = await conversations.editor.turn_end(started.turn_id)
        said = session.conversation.path(session.conversation.head)
        changes = [
            view for view in session.change_sets.all_views() if view.turn_id == started.turn_id
        ]
    finally:
        await conversations.close()
    if end.error is not None:
        raise KodeError(end.error.code, end.error.message, details=end.error.details)
    answer = next((one for one in reversed(said) if one.role == "assistant"), None)
    return {
        "conversation_id": session.id,
        "user_message": {"id": started.message_id, "content": prompt.user_input},
        "assistant_message": {
            "id": answer.id if answer else "",
            "content": "".join(texts_of(answer.content)) if answer else "",
        },
        "stop_reason": end.stop_reason,
        "usage": msgspec.to_builtins(end.usage),
        "cost": None if end.cost is None else msgspec.to_builtins(end.cost),
        "proposed_edits": [edit for change_set in changes for edit in _edits(change_set)],
    }


def converse_blocking(prompt: Prompt) -> ChatResult:
    """Run `converse`, for callers without an event loop. Raises RuntimeError if one runs."""
    _require_no_loop("run_ide_chat")
    return asyncio.run(converse(prompt))


def _require_no_loop(function: str) -> None:
    """Raise RuntimeError where the function, which blocks, would stop a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    text = f"{function} would block the running event loop: await {function}_async instead"
    raise RuntimeError(text)


def _require_mode(mode: str | None) -> None:
    modes = [one for one in get_args(Mode) if one != "ask"]
    if mode == "ask":
        text = f"Mode `ask` waits for somebody who decides, and nobody is there: use {_or(modes)}."
        raise KodeError("InvalidParams", text)
    if mode is not None and mode not in modes:
        raise KodeError("InvalidParams", f"There is no mode `{mode}`: use {_or(modes)}.")


def _or(names: Sequence[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} or {last}"


def _plain(value: object) -> object:
    return str(value) if isinstance(value, PurePath) else value


async def ask_model(text: str, *, model: str | None, system: str) -> ModelAnswer:
    """Send one message to a model, without a conversation or tools. Raises KodeError."""
    loaded = load_settings(os.environ)
    loaded.require_valid()
    agent = JobAgent(LiveSettings(loaded), documents=Documents("utf-16"), environment=System())
    try:
        chat = agent.open_model()
        prompt = Message(id="m1", session_id="", role="user", content=(TextBlock(text=text),))
        asked = ModelRequest(model or loaded.settings.model, system, [prompt])
        answer = await send_message(chat, asked)
    finally:
        await agent.close()
    if answer.error is not None:
        raise KodeError(answer.error.code, answer.error.message, details=answer.error.details)
    return answer


def ask_model_blocking(text: str, *, model: str | None, system: str) -> ModelAnswer:
    """Run `ask_model`, for callers without an event loop. Raises RuntimeError if one runs."""
    _require_no_loop("send_message")
    return asyncio.run(ask_model(text, model=model, system=system))


async def _session(conversations: Conversations, prompt: Prompt) -> Session:
    sessions = conversations.sessions
    session_id = prompt.conversation_id
    if session_id is None:
        new = SessionNewParams(
            agent=prompt.agent or _AGENT,
            model=prompt.model,
            mode=prompt.mode,
            meta=dict(prompt.meta),
        )
        session_id = (await sessions.create(new)).session_id
    try:
        return await sessions.open(session_id)
    except KodeError as error:
        if error.code != "ReadOnly":
            raise
        text = (
            f"The conversation {session_id} is in use, by another call of this program or by "
            "another process: wait for its end, or begin a new one without `conversation_id`."
        )
        raise KodeError("ReadOnly", text) from None


def _edits(change_set: ChangeSetView) -> list[ChatEdit]:
    """Return the proposed edits file by file, as people and `git apply` read them."""
    diff = change_set.diff if isinstance(change_set.diff, str) else ""
    return [
        {
            "path": file.path,
            "uri": file.uri,
            "hunks": [msgspec.to_builtins(hunk) for hunk in file.hunks],
            "change_set_id": change_set.change_set_id,
            "diff": diff,
        }
        for file in change_set.files
    ]
