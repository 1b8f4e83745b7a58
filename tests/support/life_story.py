"""A session's whole life in one process: turns, edits, undo, steer, fork, title, head, deletion.

What is tried, acknowledged and refused is told at once, to be compared with what a later process
finds. The editor outlives the process, as editors do: each text it shows is told, too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.agent.sessions import SessionCatalog, SessionCopies
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision, UndoParams
from kode_sidecar.core.protocol.session import (
    SessionForkParams,
    SessionListParams,
    SessionNewParams,
    SessionUpdateParams,
    TreeSetHeadParams,
)
from kode_sidecar.core.protocol.turn import TurnStartParams, TurnSteerParams
from kode_sidecar.errors import KodeError
from kode_sidecar.ide_chat import Conversations
from tests.support.edit_editor import Editor
from tests.support.model_script import answer, text, tool_call

Json = dict[str, Any]
Tell = Callable[[Json], None]

FILE = "story.txt"
BEFORE = "".join(f"line {number}\n" for number in range(12))
OLD, NEW = "line 1\n", "line one\n"
STEER = "steered"
TRIES = 8


def respond(body: Json) -> Any:
    """Proposes two hunks at `edit`, reads at `steer me`, else says what it was asked."""
    said = [m["content"] for m in body["messages"] if m["role"] == "user"]
    asked = next(one for one in reversed(said) if not one.startswith(("<", STEER)))
    if body["messages"][-1]["role"] == "user" and STEER not in said[-1]:
        if asked == "edit":
            edits = [{"old": OLD, "new": NEW}, {"old": "line 9\n", "new": "line nine\n"}]
            return answer(tool_call("propose_edit", {"path": FILE, "edits": edits}))
        if asked == "steer me":
            return answer(text("reading"), tool_call("read_file", {"path": FILE}))
    return answer(text(f"answer to {asked}"))


class Life:
    """One process of a session's life."""

    def __init__(self, conversations: Conversations, project: Path, report: Tell) -> None:
        self._conversations = conversations
        self._sessions = conversations.sessions
        self._report = report
        self._file = project / FILE
        workspace = vars(conversations)["_agent"].workspace
        folders = vars(conversations.sessions)["_folders"]
        self._editor = Editor(workspace)
        conversations.editor.apply_edit = self._apply  # type: ignore[method-assign]
        self._catalog = SessionCatalog(self._sessions, folders, conversations.editor)
        self._copies = SessionCopies(folders, lambda: None, list)

    def show(self, content: str) -> None:
        """Open the file with what its buffer holds."""
        self._editor.open(self._file, content)

    async def _apply(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        done = await self._editor.apply_edit(edit)
        self._report({"text": next(iter(self._editor.buffers.values())).text})
        return done

    async def attempt(self, name: str, value: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        """Tell what is tried and what came of it; None where it was refused."""
        self._report({"try": name, "value": value})
        try:
            done = await work()
        except KodeError as error:
            self._report({"refused": name, "value": value, "code": error.code})
            return None
        self._report({"did": name, "value": value, "got": done if isinstance(done, str) else None})
        return done or True

    async def live(self) -> None:
        """All of it; a step that was refused does not keep the next from being tried."""
        session_id = await self._created("created")
        if session_id is None or (session := await self._opened(session_id)) is None:
            return
        self.show(BEFORE)
        await self.say(session, "hello")
        await self._update(session_id, "first title")
        await self.say(session, "edit")
        views = session.change_sets.all_views()
        hunks = [hunk for view in views for file in view.files for hunk in file.hunks]
        if len(hunks) == 2:
            await self._decide(session, views[0].change_set_id, hunks[0].hunk_id, "accept")
            await self._decide(session, views[0].change_set_id, hunks[1].hunk_id, "reject")
            await self._undo(session, hunks[0].hunk_id)
        await self.say(session, "steer me", steer=STEER)
        first = session.conversation.messages[0].id if session.conversation.messages else None
        params = TreeSetHeadParams(session_id=session_id, message_id=first)
        await self.attempt("head", first, lambda: self._released(self._catalog.set_head(params)))
        await self._update(session_id, "second title")
        length = len(session.conversation.path(first))
        await self.attempt("fork", length, lambda: self._fork(first, session_id))
        other = await self._created("other")
        if other is not None:
            await self.attempt("deleted", other, lambda: self._catalog.delete(other))

    async def look(self, session_id: str, content: str) -> None:
        """What this process finds, before it has opened anything and after."""
        self.show(content)
        listed = await self._catalog.list(SessionListParams(all=True))
        titles = {one.session_id: one.title for one in listed.sessions}
        self._report({"listed": titles})
        session = await self._sessions.open(session_id)
        views = session.change_sets.all_views()
        states = [hunk.state for view in views for file in view.files for hunk in file.hunks]
        self._report({"hunks": states, "head_now": session.conversation.head})
        for one in titles:
            if one != session_id:
                copy = await self._sessions.open(one)
                self._report({"copy": one, "length": len(copy.conversation)})

    async def say(self, session: Any, prompt: str, steer: str = "") -> None:
        """A turn to its end, or as far as it comes."""
        self._report({"try": "prompt", "value": prompt})
        params = TurnStartParams(session_id=session.id, input=(TextBlock(text=prompt),))
        try:
            started, release = await session.start_turn(params)
        except KodeError as error:
            self._report({"refused": "prompt", "value": prompt, "code": error.code})
            while session.active_turn_id is not None:  # noqa: ASYNC110
                await asyncio.sleep(0)  # it was cancelled and ends by itself
            return
        self._report({"did": "prompt", "value": prompt})
        release()
        if steer:
            word = TurnSteerParams(
                session_id=session.id, turn_id=started.turn_id, input=(TextBlock(text=steer),)
            )
            await self.attempt("steer", steer, lambda: self._released(session.steer(word)))
        end = await self._conversations.editor.turn_end(started.turn_id)
        self._report(
            {"ended": prompt, "reason": end.stop_reason, "head": session.conversation.head}
        )

    async def _created(self, name: str) -> str | None:
        for _ in range(2):  # the fault may be over
            made = await self.attempt(name, None, self._create)
            if made is not None:
                return made
        return None

    async def _create(self) -> str:
        return (await self._sessions.create(SessionNewParams())).session_id

    async def _opened(self, session_id: str) -> Any:
        for _ in range(TRIES):
            try:
                return await self._sessions.open(session_id)
            except KodeError:
                continue
        return None

    async def _update(self, session_id: str, title: str) -> None:
        params = SessionUpdateParams(session_id=session_id, title=title)
        await self.attempt("title", title, lambda: self._released(self._catalog.update(params)))

    async def _decide(self, session: Any, change_set_id: str, hunk_id: str, action: Any) -> None:
        params = DecideParams(
            change_set_id=change_set_id,
            decisions=(HunkDecision(hunk_id=hunk_id, action=action),),
        )
        await self.attempt(action, hunk_id, lambda: session.change_sets.decide(params))

    async def _undo(self, session: Any, hunk_id: str) -> None:
        params = UndoParams(hunk_id=hunk_id)
        await self.attempt("undo", hunk_id, lambda: session.change_sets.undo(hunk_id, params))

    async def _fork(self, message_id: str | None, session_id: str) -> str:
        params = SessionForkParams(session_id=session_id, message_id=message_id)
        return (await self._copies.fork(params)).session_id

    async def _released(self, work: Awaitable[Callable[[], None]]) -> None:
        (await work)()
