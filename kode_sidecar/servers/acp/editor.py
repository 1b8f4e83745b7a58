"""The editor of one session over ACP: sends it updates and questions, applies granted edits."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kode_sidecar.agent.event_log.editor_port import (
    ApplyAnswer,
    DocumentEdit,
    FileEdit,
    WithoutDocuments,
)
from kode_sidecar.core.domain.agent_event import (
    BlockDelta,
    ChangeSetUpdated,
    Event,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.core.domain.change_set import FileView
from kode_sidecar.core.domain.permission import EDIT_TOOLS
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.core.text.uris import uri_to_path
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.questions import REJECT_ALWAYS, AcpQuestions
from kode_sidecar.servers.acp.tool_cards import Json
from kode_sidecar.servers.acp.updates import Card, SessionUpdates
from kode_sidecar.servers.lsp import Connection

if TYPE_CHECKING:
    from kode_sidecar.agent.edits import ChangeSets
    from kode_sidecar.servers.acp.client_files import ClientFiles

_ASKING_MODE = "ask"

LogIn = Callable[[str, Callable[[str], Awaitable[None]]], Awaitable[int]]
"""`(server, show)`: log in to an MCP server; `show` has the user open an address."""


class AcpEditor(WithoutDocuments):
    """`event_log.editor_port.EditorPort` of one session.

    `files` and `change_sets` are set once the session runs. In the mode `ask` a call waits until
    its hunks are decided: the client is asked once per call, after the card shows the hunks.
    """

    files: "ClientFiles"
    change_sets: "ChangeSets"

    def __init__(
        self,
        connection: Connection,
        client: ClientAbilities,
        session_id: str,
        folder: Path,
        *,
        window: Callable[[], int | None],
        config: Callable[[], Sequence[Json]],
    ) -> None:
        self._connection = connection
        self._client = client
        self._session_id = session_id
        self._logging_in: asyncio.Future[int] | None = None
        self.updates = SessionUpdates(
            session_id, folder, client, self.notify, connection.notify_delta, window, config
        )
        self._questions = AcpQuestions(connection, client, session_id)
        self._ends: dict[str, asyncio.Future[TurnCompleted]] = {}
        self._mode = ""
        self._granted: set[str] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.flow = connection.flow

    def notify(self, update: Json) -> None:
        """Send one update of the session."""
        params = {"sessionId": self._session_id, "update": update}
        self._connection.notify("session/update", params)

    def turn_end(self, turn_id: str) -> "asyncio.Future[TurnCompleted]":
        """Return a future that is done when the turn has ended and all its updates were sent."""
        return self._ends.setdefault(turn_id, asyncio.get_running_loop().create_future())

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """See `EditorPort`."""
        del session_id
        for event in events:
            self.updates.send(event)
            match event:
                case TurnStarted():
                    self._mode = event.mode
                    self._granted.clear()
                case ChangeSetUpdated():
                    self._ask_about(event)
                case TurnCompleted():
                    self._stop_asking()
                    end = self._ends.pop(event.turn_id, None)
                    if end is not None and not end.done():
                        end.set_result(event)
                case _:
                    pass

    def publish_delta(self, delta: BlockDelta) -> None:
        """See `EditorPort`."""
        self.updates.delta(delta)

    async def apply_edit(self, edit: DocumentEdit | FileEdit) -> ApplyAnswer:
        """Apply a granted edit to the client's text, or on disk."""
        if isinstance(edit, FileEdit):
            return await self.files.change(edit)
        return await self.files.apply(edit)

    async def refresh(self, uri: str) -> None:
        """Ask the client for its text of a file."""
        await self.files.refresh(uri)

    def warn(self, line: str) -> None:
        """Write a line to stderr."""
        self._connection.log(line, None)

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Ask for permission; offer a lasting no if the session's rules can hold it."""
        card = self.updates.cards.get(question.tool_use_id)
        tool = card.block.name if card is not None else ""
        lasting = tool in EDIT_TOOLS
        try:
            answer = await self._questions.permission(question, card, lasting_no=lasting)
        except KodeError:
            return None
        kinds = {option.option_id: option.kind for option in question.options}
        if answer == REJECT_ALWAYS and lasting:
            self._rule(tool, question.subject, "deny")
            answer = next(one for one, kind in kinds.items() if kind == "reject")
        if card is not None and answer is not None and kinds.get(answer, "reject") != "reject":
            self._granted.add(card.id)
        return None if answer is None else PermissionRequestResult(option_id=answer)

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Ask with a form, or with a permission request that has the choices as its options."""
        card = self.updates.cards.get(question.tool_use_id)
        return AskResult(tuple(await self._questions.choice(question, card)))

    async def log_in(self, log_in: LogIn, server: str) -> int:
        """Log in to an MCP server in the user's browser; return how many tools it has.

        A client that opens no addresses gets the address in the answer. Raises KodeError.
        """
        visits: list[str] = []

        async def show(address: str) -> None:
            why = f"Log in to {server}"
            if self._client.opens_addresses:
                visits.append(await self._questions.visit(address, why))
            else:
                self.updates.say(f"{why} in your browser:\n\n{address}\n\n")

        self._logging_in = asyncio.ensure_future(log_in(server, show))
        try:
            return await self._logging_in
        except asyncio.CancelledError:
            if self._logging_in.cancelled():
                raise KodeError("Cancelled", "The log-in was cancelled.") from None
            self._logging_in.cancel()
            raise
        finally:
            self._logging_in = None
            for visit in visits:
                self._questions.visited(visit)

    def stop_log_in(self) -> None:
        """Cancel a running log-in, because the user has cancelled."""
        if self._logging_in is not None:
            self._logging_in.cancel()

    async def close(self) -> None:
        """Cancel open questions, and give decisions in progress one second to end."""
        self._stop_asking()
        self.stop_log_in()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    def _ask_about(self, event: ChangeSetUpdated) -> None:
        """Ask about new hunks of a turn that waits for decisions."""
        files = [file for file in event.files if _new_hunks(file)]
        card = self.updates.editing()
        if self._mode == _ASKING_MODE and files and card is not None:
            task = self._spawn(self._decide(event.change_set_id, files, card))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _decide(self, change_set_id: str, files: Sequence[FileView], card: Card) -> None:
        """Decide all hunks of a call at once. No answer, for instance after a cancel, means no."""
        kind = None
        try:
            kind = await self._answer(files, card)
        finally:
            action = "accept" if kind in ("allow_once", "allow_always") else "reject"
            card.refused = action == "reject"
            hunks = [hunk_id for file in files for hunk_id in _new_hunks(file)]
            decisions = tuple(HunkDecision(hunk_id=one, action=action) for one in hunks)
            params = DecideParams(change_set_id=change_set_id, decisions=decisions)
            self._spawn(self._carry_out(params))

    async def _answer(self, files: Sequence[FileView], card: Card) -> str | None:
        if card.id in self._granted:  # the user has already allowed it, as sensitive
            return "allow_once"
        tool, gate = card.block.name, self.change_sets.permissions
        standing = {gate.standing(tool, file.path, sensitive=_sensitive(file)) for file in files}
        if standing == {"allow"}:
            return "allow_once"
        locations = [{"path": str(uri_to_path(file.uri) or file.path)} for file in files]
        try:
            kind = await self._questions.edit(card, locations)
        except KodeError:
            return None
        if kind in ("allow_always", "reject_always"):
            for file in files:
                self._rule(tool, file.path, "allow" if kind == "allow_always" else "deny")
        return kind

    async def _carry_out(self, params: DecideParams) -> None:
        try:
            await self.change_sets.decide(params)
        except KodeError as error:
            self.updates.notice("error", error.message)

    def _rule(self, tool: str, subject: str, effect: Any) -> None:
        with suppress(KodeError):  # the name is no valid pattern: the answer holds once
            self.change_sets.permissions.set_rule(tool, subject, effect)

    def _stop_asking(self) -> None:
        for task in self._asking:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _new_hunks(file: FileView) -> list[str]:
    return [h.hunk_id for h in file.hunks if h.kind is not None and h.state == "proposed"]


def _sensitive(file: FileView) -> bool:
    return any("sensitive" in hunk.flags for hunk in file.hunks)
