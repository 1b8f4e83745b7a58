"""The sessions of this connection, and the methods that create, open, prompt and close them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kode_sidecar.agent.event_log import NewSession, OpenedSession
from kode_sidecar.agent.sessions import SessionCatalog, SessionCopies, SessionRegistry
from kode_sidecar.core.domain.agent_event import TurnCompleted
from kode_sidecar.core.protocol.session import (
    SessionForkParams,
    SessionListParams,
    SessionNewParams,
    SessionUpdateParams,
    SessionView,
)
from kode_sidecar.core.protocol.turn import TurnStartParams, TurnSteerParams
from kode_sidecar.core.text.uris import path_to_uri, uri_to_path
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.commands import AcpCommands, parse_command
from kode_sidecar.servers.acp.dialect import full_message_id, short_message_id
from kode_sidecar.servers.acp.editor import AcpEditor, LogIn
from kode_sidecar.servers.acp.findings import (
    FindingCommand,
    decide_finding,
    finding_question,
    parse_finding_command,
)
from kode_sidecar.servers.acp.options import chosen_option, config_options, known_mode, mode_state
from kode_sidecar.servers.acp.prompts import prompt_input, replayed
from kode_sidecar.servers.acp.server_offers import ServerOffers
from kode_sidecar.servers.acp.tool_cards import Json
from kode_sidecar.servers.acp.types import (
    CancelNotification,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    McpServer,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SetSessionConfigOptionRequest,
    SetSessionModeRequest,
    StopReason,
    TextContent,
)
from kode_sidecar.servers.lsp import Connection, HandlerReply

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.sessions.session import Session
    from kode_sidecar.servers.acp.client_files import ClientFiles

_PAGE = 50
_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "max_tool_rounds": "max_turn_requests",
    "budget": "max_turn_requests",
    "refusal": "refusal",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}


@dataclass(frozen=True)
class SessionPlace:
    """Where a session works: its folder, additional folders, and the client's MCP servers."""

    folder: Path
    others: tuple[Path, ...] = ()
    servers: tuple[McpServer, ...] = ()

    @property
    def roots(self) -> tuple[Path, ...]:
        """All folders, its own first."""
        return (self.folder, *self.others)


@dataclass(frozen=True)
class SessionAgent:
    """What one session needs to run, made for its place by `boot`.

    It is made on a thread; `begin` is then called on the loop. `models` are the names to choose
    from, `window` returns the size of a model's context window, None if unknown.
    """

    files: "ClientFiles"
    run: Callable[[NewSession], "Session"]
    repair: Callable[[OpenedSession], None]
    models: Sequence[str]
    window: Callable[[str], int | None]
    offers: ServerOffers
    log_in: LogIn
    begin: Callable[[], None]
    close: Callable[[], Awaitable[None]]


MakeAgent = Callable[[str, SessionPlace, AcpEditor], SessionAgent]


@dataclass
class _Open:
    """A session that is open on this connection."""

    place: SessionPlace
    editor: AcpEditor
    agent: SessionAgent
    cancelled: bool = False
    starting: int = 0
    session: "Session | None" = None


class AcpSessions:
    """Answers `session/*`. Each session has its own agent, because each has its own folders."""

    def __init__(
        self,
        connection: Connection,
        client: ClientAbilities,
        registry: SessionRegistry,
        catalog: SessionCatalog,
        copies: SessionCopies,
        make_agent: MakeAgent,
        check_signed_in: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._client = client
        self._registry = registry
        self._catalog = catalog
        self._copies = copies
        self._make_agent = make_agent
        self._check_signed_in = check_signed_in
        self._open: dict[str, _Open] = {}

    def run_session(self, new: NewSession) -> "Session":
        """Make a session that can run, with the agent of its place."""
        opened = self._open[new.id]
        session = opened.agent.run(new)
        opened.session = session
        opened.editor.change_sets = session.change_sets
        return session

    def repair_session(self, opened: OpenedSession) -> None:
        """Repair the session files that an earlier process left; blocks."""
        self._open[opened.records.meta.id].agent.repair(opened)

    async def new(self, params: NewSessionRequest) -> HandlerReply:
        """Answer `session/new`."""
        place = _place(params.cwd, params.additional_directories, params.mcp_servers)
        await self._registry.loaded()
        self._check_signed_in()
        roots = [path_to_uri(root) for root in place.roots]
        meta = {"roots": roots, "projectRoot": roots[0]}
        created = await self._registry.create(SessionNewParams(meta=meta))
        await self._enter(created.session_id, place)
        session = await self._registry.get(created.session_id)
        return self._begun(session, {"sessionId": session.id})

    async def load(self, params: LoadSessionRequest) -> HandlerReply:
        """Answer `session/load`, after sending the whole conversation again."""
        place = _place(params.cwd, params.additional_directories, params.mcp_servers)
        session = await self._opened(params.session_id, place)
        conversation, change_sets = session.conversation, session.change_sets
        messages = conversation.path(conversation.head)
        opened = self._open[session.id]
        for update in replayed(messages, change_sets.all_views(), place.folder):
            opened.editor.notify(update)
            await self._connection.flow()
        return self._begun(session, {})

    async def resume(self, params: ResumeSessionRequest) -> HandlerReply:
        """Answer `session/resume`; the client has the conversation already."""
        place = _place(params.cwd, params.additional_directories, params.mcp_servers)
        return self._begun(await self._opened(params.session_id, place), {})

    async def fork(self, params: ForkSessionRequest) -> HandlerReply:
        """Answer `session/fork`: copy the path to a message into a new session, and open it."""
        place = _place(params.cwd, params.additional_directories, params.mcp_servers)
        message_id = _kode(params.meta).get("messageId")
        if message_id is not None and not isinstance(message_id, str):
            raise KodeError("InvalidParams", "Expected a string at `$._meta.kode.messageId`")
        place_in_tree = message_id and full_message_id(message_id)
        forked = await self._copies.fork(
            SessionForkParams(session_id=params.session_id, message_id=place_in_tree)
        )
        session = await self._opened(forked.session_id, place)
        return self._begun(session, {"sessionId": session.id})

    async def listed(self, params: ListSessionsRequest) -> Json:
        """Answer `session/list`: newest first, only those of one folder if `cwd` is given."""
        folder = None if params.cwd is None else _folder(params.cwd, "$.cwd")
        found: list[Json] = []
        cursor = params.cursor
        while True:
            page = await self._catalog.list(SessionListParams(cursor=cursor, limit=_PAGE, all=True))
            # Sessions of a `kind` can only be read, and a client cannot open one for that.
            infos = [_info(view) for view in page.sessions if view.kind is None]
            found += [one for one in infos if folder is None or one["cwd"] == str(folder)]
            cursor = page.next_cursor
            if cursor is None or found:
                return {"sessions": found, **({} if cursor is None else {"nextCursor": cursor})}

    async def close(self, params: CloseSessionRequest) -> Json:
        """Answer `session/close`: cancel what runs, and let other processes open the session."""
        self._known(params.session_id)
        await self._leave(params.session_id)
        return {}

    async def delete(self, params: DeleteSessionRequest) -> Json:
        """Answer `session/delete`."""
        await self._leave(params.session_id)
        await self._catalog.delete(params.session_id)
        return {}

    async def set_mode(self, params: SetSessionModeRequest) -> HandlerReply:
        """Answer `session/set_mode`."""
        mode = known_mode(params.mode_id)
        return await self._change(SessionUpdateParams(session_id=params.session_id, mode=mode), {})

    async def set_option(self, params: SetSessionConfigOptionRequest) -> HandlerReply:
        """Answer `session/set_config_option`."""
        change = chosen_option(params.session_id, params.config_id, params.value)
        reply = await self._change(change, {})
        session = self._known(params.session_id)
        return HandlerReply({"configOptions": self._options(session)}, after=reply.after)

    async def prompt(self, params: PromptRequest) -> Json:
        """Answer `session/prompt`: run a command, start a turn, or steer the running turn."""
        session = self._known(params.session_id)
        self._check_signed_in()
        opened = self._open[session.id]
        opened.agent.offers.announce()
        texts = [block.text for block in params.prompt if isinstance(block, TextContent)]
        text = texts[0].strip() if len(params.prompt) == 1 and texts else ""
        finding = parse_finding_command(text)
        answer = self._command(session, text, finding)
        if answer is not None:
            try:
                opened.editor.updates.say(await answer)
            except KodeError as error:
                if error.code != "Cancelled":
                    raise
                return {"stopReason": "cancelled"}
            return {"stopReason": "end_turn"}
        opened.starting += 1
        opened.cancelled = False
        try:
            turn_id, prompt_id, release = await self._start(session, params, finding)
            ended = opened.editor.turn_end(turn_id)
            release()
            if opened.cancelled:
                session.cancel(turn_id)
        finally:
            opened.starting -= 1
        try:
            end = await asyncio.shield(ended)
        except asyncio.CancelledError:
            session.cancel(turn_id)
            raise
        return _answer(end, prompt_id)

    def cancel(self, params: CancelNotification) -> None:
        """Handle `session/cancel`, also for a prompt whose turn has not started yet."""
        opened = self._open.get(params.session_id)
        if opened is not None and opened.session is not None:
            opened.cancelled = opened.starting > 0
            opened.session.cancel(None)
            opened.editor.stop_log_in()

    async def end(self) -> None:
        """Close all sessions; the connection has ended."""
        await asyncio.gather(*map(self._leave, tuple(self._open)))

    def _command(
        self, session: "Session", text: str, finding: FindingCommand | None
    ) -> Awaitable[str] | None:
        """Return what a prompt is answered with that needs no turn; None for all others."""
        if finding is not None and finding.decides:
            return decide_finding(session, finding)
        command = parse_command(text)
        if command is None:
            return None
        opened = self._open[session.id]
        log_in = partial(opened.editor.log_in, opened.agent.log_in)
        return AcpCommands(session, self._copies, log_in).run(*command)

    async def _start(
        self, session: "Session", params: PromptRequest, finding: FindingCommand | None
    ) -> tuple[str, str, Callable[[], None]]:
        """Start or steer a turn; return its id, the prompt's id, and what releases its events."""
        offers = self._open[session.id].agent.offers
        blocks = await offers.expanded(prompt_input(params.prompt))
        kode = _kode(params.meta)
        running = session.active_turn_id
        if running is not None and not kode:
            steer = TurnSteerParams(session_id=session.id, turn_id=running, input=blocks)
            return running, "", await session.steer(steer)
        parent: dict[str, Any] = {}
        if "parentId" in kode:
            given = kode["parentId"]
            parent["parent_id"] = full_message_id(given) if isinstance(given, str) else given
        elif isinstance(kode.get("replaces"), str):
            replaced = session.conversation.get(full_message_id(kode["replaces"]))
            parent["parent_id"] = replaced.parent_id
        mode = known_mode("ask") if self._mode(session) == "review" else None
        call = None
        if finding is not None:
            blocks, call = finding_question(session, finding)
        start = TurnStartParams(session_id=session.id, input=blocks, mode=mode, **parent)
        result, release = await session.start_turn(start, call)
        return result.turn_id, result.message_id, release

    async def _opened(self, session_id: str, place: SessionPlace) -> "Session":
        """Open a session for this place; close it first if it is open for another place."""
        await self._registry.loaded()
        self._check_signed_in()
        if session_id in self._open:
            if self._open[session_id].place == place:
                return self._known(session_id)
            await self._leave(session_id)
        await self._enter(session_id, place)
        try:
            return await self._registry.open(session_id)
        except BaseException:
            await self._open.pop(session_id).agent.close()
            raise

    async def _enter(self, session_id: str, place: SessionPlace) -> None:
        editor = AcpEditor(
            self._connection,
            self._client,
            session_id,
            place.folder,
            window=lambda: self._window(session_id),
            config=lambda: self._options(self._known(session_id)),
        )
        agent = await asyncio.to_thread(self._make_agent, session_id, place, editor)
        agent.begin()
        editor.files = agent.files
        self._open[session_id] = _Open(place, editor, agent)

    async def _leave(self, session_id: str) -> None:
        opened = self._open.get(session_id)
        if opened is None:
            return
        await self._registry.remove(session_id)
        await opened.editor.close()
        await opened.agent.close()
        self._open.pop(session_id, None)

    async def _change(self, params: SessionUpdateParams, result: Json) -> HandlerReply:
        session = self._known(params.session_id)
        return HandlerReply(result, after=await session.update(params))

    def _begun(self, session: "Session", head: Json) -> HandlerReply:
        """Return the answer of a method that begins a session; its commands are sent after it."""
        opened = self._open[session.id]
        modes = mode_state(self._mode(session))
        result = {**head, "modes": modes, "configOptions": self._options(session)}
        return HandlerReply(result, after=lambda: opened.agent.offers.announce(again=True))

    def _options(self, session: "Session") -> list[Json]:
        view = self._catalog.view(session.meta)
        return config_options(view.mode, view.model, self._open[session.id].agent.models)

    def _mode(self, session: "Session") -> str:
        return self._catalog.view(session.meta).mode

    def _window(self, session_id: str) -> int | None:
        view = self._catalog.view(self._known(session_id).meta)
        return self._open[session_id].agent.window(view.model)

    def _known(self, session_id: str) -> "Session":
        """Return an open session. Raises KodeError `SessionNotFound`."""
        opened = self._open.get(session_id)
        if opened is None or opened.session is None:
            text = (
                f"The session {session_id!r} is not open: begin with session/new or session/load."
            )
            raise KodeError("SessionNotFound", text)
        return opened.session


def _answer(end: TurnCompleted, prompt_id: str) -> Json:
    """Return the answer to a prompt. Raises KodeError for a turn that failed."""
    if end.error is not None:
        raise KodeError(end.error.code, end.error.message, details=end.error.details)
    answer: Json = {"stopReason": _REASONS.get(end.stop_reason, "end_turn")}
    return (
        {**answer, "_meta": {"kode": {"messageId": short_message_id(prompt_id)}}}
        if prompt_id
        else answer
    )


def _place(cwd: str, others: Sequence[str], servers: Sequence[McpServer]) -> SessionPlace:
    folders = [_folder(one, f"$.additionalDirectories[{n}]") for n, one in enumerate(others)]
    return SessionPlace(_folder(cwd, "$.cwd"), tuple(folders), tuple(servers))


def _folder(path: str, where: str) -> Path:
    if not Path(path).is_absolute() or "\0" in path:
        text = f"Expected an absolute path at `{where}`"
        raise KodeError("InvalidParams", text, details={"path": where})
    return Path(path)


def _kode(meta: dict[str, Any] | None) -> dict[str, Any]:
    kode: object = (meta or {}).get("kode")
    return cast(dict[str, Any], kode) if isinstance(kode, dict) else {}


def _info(view: SessionView) -> Json:
    listed: object = view.meta.get("roots")
    roots = cast(list[object], listed) if isinstance(listed, list) else []
    paths = [path for root in roots if (path := uri_to_path(str(root))) is not None]
    folder, *others = paths or [Path.home()]
    info: Json = {"sessionId": view.session_id, "cwd": str(folder), "updatedAt": view.updated_at}
    if view.title:
        info["title"] = view.title
    return {**info, "additionalDirectories": [str(one) for one in others]} if others else info
