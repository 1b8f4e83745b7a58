"""The composition root of `kode-sidecar acp`: the same parts as in `app`, served over ACP.

An agent is made for each session, because in ACP each has folders and MCP servers of its own; all
of them share the model's client, the state folder and the records of sessions.
"""

import asyncio
import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.sessions import SessionCatalog, SessionCopies, SessionRegistry
from kode_sidecar.core.protocol.acp_handshake import SETTINGS, SETUP
from kode_sidecar.core.protocol.documents import EditorContextParams
from kode_sidecar.core.protocol.handshake import Handover
from kode_sidecar.core.settings import (
    LiveSettings,
    LoadedSettings,
    client_agent,
    load_settings,
    with_editor,
)
from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.acp import (
    ACP,
    AcpEditor,
    AcpSessions,
    AuthenticateRequest,
    ClientAbilities,
    McpServer,
    ServerOffers,
    SessionAgent,
    SessionPlace,
    serve_acp,
)
from kode_sidecar.servers.boot.app import LoadAgent
from kode_sidecar.servers.boot.leftovers import remove_leftovers, remove_unpacked
from kode_sidecar.servers.boot.state_folder import session_folders
from kode_sidecar.servers.boot.system import Environment
from kode_sidecar.servers.lsp import Application, Connection, LoadStep, run

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.infrastructure.mcp.contracts import ServerConfig
    from kode_sidecar.infrastructure.providers.chat_client import ChatClient
    from kode_sidecar.servers.boot.agent import Agent

_NAME_CHARS = 64


def run_acp(
    handover: Handover,
    load_agent: LoadAgent,
    environment: Environment,
    env_file: str | None,
    *,
    trusted: bool,
) -> NoReturn:
    """Serve the client behind `handover`; ends the process. `trusted`: the user trusts folders."""

    def build(connection: Connection, _: Handover) -> Application:
        app = AcpApp(
            connection, handover.params, load_agent, environment, env_file, trusted=trusted
        )
        return app.start()

    run(handover, build, orphaned=remove_unpacked, dialect=ACP)


class AcpApp:
    """Holds what all sessions share. The first agent serves none: it opens the model client."""

    def __init__(
        self,
        connection: Connection,
        params: dict[str, object],
        load_agent: LoadAgent,
        environment: Environment,
        env_file: str | None,
        *,
        trusted: bool,
    ) -> None:
        self._connection = connection
        self._load_agent = load_agent
        self._environment = environment
        self._env_file = env_file
        self._client = client = ClientAbilities(params)
        self._trusted = trusted or client.trusted
        self._loaded = self._load_settings()
        self._signed_out = False
        self._bases: list[Agent] = []
        self._agents: list[Agent] = []
        self._chat: ChatClient | None = None
        self._saver = Saver()
        agent = client_agent(self._loaded)
        folders = session_folders(self._loaded.settings, self._saver, environment, tuple, agent)
        self._registry = SessionRegistry(folders)
        self._nobody = AcpEditor(connection, client, "", Path(), window=lambda: None, config=tuple)
        self._sessions = AcpSessions(
            connection,
            client,
            self._registry,
            SessionCatalog(self._registry, folders, self._nobody),
            SessionCopies(folders, environment.transcript, lambda: self._loaded.keys),
            self._make_agent,
            self._check_signed_in,
        )
        serve_acp(connection, self._sessions, self._authenticate, self._logout)

    def start(self) -> Application:
        """Return what the process needs from this app: what to load, and how to close."""
        return Application(
            load=(
                LoadStep("the agent", self._build_base, self._attach),
                LoadStep("httpx", self._open_model, self._attach_model),
                LoadStep("leftovers", remove_leftovers, lambda _: None),
            ),
            close=self._close,
        )

    def _load_settings(self) -> LoadedSettings:
        loaded = load_settings(os.environ, env_file=self._env_file)
        return with_editor(loaded, {}, trusted=self._trusted)

    def _build_base(self) -> "Agent":
        """Build the agent that serves no session; runs on the loader's thread."""
        agent = self._new_agent(self._nobody)
        self._bases.append(agent)
        return agent

    def _attach(self, _: "Agent") -> None:
        self._registry.attach(self._sessions.run_session, self._sessions.repair_session)

    def _open_model(self) -> "ChatClient":
        """Open the model client; runs on the loader's thread."""
        return self._bases[-1].open_model()

    def _attach_model(self, chat: "ChatClient") -> None:
        """Give the model client to the agents that wait for it, and to all agents made later."""
        self._chat = chat
        for agent in (*self._bases, *self._agents):
            agent.attach_model(chat)

    def _new_agent(self, editor: EditorPort, **own: Any) -> "Agent":
        """Make an agent; `own` holds the arguments of `Agent` that sessions do not share."""
        return self._load_agent()(
            LiveSettings(self._loaded),
            editor=editor,
            editor_name=self._client.name,
            documents=Documents("utf-16"),
            editor_context=EditorContextParams,
            environment=self._environment,
            **own,
        )

    def _make_agent(self, session_id: str, place: SessionPlace, editor: AcpEditor) -> SessionAgent:
        """Make the agent of one session; runs on a thread, after the agent's code is loaded."""
        # Imported late: the code for files and commands is loaded together with the agent.
        from kode_sidecar.servers.acp.client_files import ClientFiles  # noqa: PLC0415
        from kode_sidecar.servers.acp.terminals import ClientTerminals  # noqa: PLC0415

        connection, client = self._connection, self._client
        terminals = ClientTerminals(connection, client, session_id, editor.updates)
        servers = _server_configs(place.servers) if place.servers else ()
        agent = self._new_agent(
            editor,
            servers=servers,
            in_terminal=terminals.run,
            servers_changed=lambda: offers.announce(),
            # Sessions here share files but no workspace: each is notified of the others' edits.
            locks=self._bases[0].edit_locks,
        )
        agent.workspace.set_roots(place.roots)
        offers = ServerOffers(
            partial(agent.named_servers, watched=True),
            lambda params: agent.mcp().prompt(params),
            lambda params: agent.mcp().read(params),
            editor.notify,
            lambda: agent.knowledge.verbs_now().verbs,
        )
        agent.knowledge.verbs_now()  # reads the files here, where nobody waits for them
        agent.named_servers()  # loads the server code here, where nobody waits for it

        def begin() -> None:
            self._agents.append(agent)
            if self._chat is not None:
                agent.attach_model(self._chat)

        async def close() -> None:
            self._agents.remove(agent)
            await agent.close()

        return SessionAgent(
            files=ClientFiles(connection, client, session_id, agent.workspace),
            run=agent.run_session,
            repair=agent.repair_session,
            models=agent.providers.model_names,
            window=lambda model: agent.traits(model).window,
            offers=offers,
            log_in=lambda server, show: agent.mcp().log_in(server, show),
            begin=begin,
            close=close,
        )

    def _check_signed_in(self) -> None:
        """Raises KodeError `AuthRequired`. Call only after the agent is loaded."""
        if self._signed_out:
            text = "You are signed out here: authenticate, or start this agent again."
            raise KodeError("AuthRequired", text)
        missing = self._bases[-1].missing_key()
        if missing is not None:
            raise KodeError(missing.code, missing.message, details=missing.details)

    async def _authenticate(self, params: AuthenticateRequest) -> dict[str, Any]:
        """Read the settings again: `setup` or the user may have set the key since."""
        if params.method_id not in (SETUP, SETTINGS):
            text = f"There is no way {params.method_id!r} to sign in; use {SETUP} or {SETTINGS}."
            raise KodeError("InvalidParams", text, details={"path": "$.methodId"})
        await self._registry.loaded()
        self._signed_out = False
        if self._bases[-1].missing_key() is not None:
            self._loaded = self._load_settings()
            await asyncio.to_thread(self._build_base)
            self._attach_model(await asyncio.to_thread(self._open_model))
        self._check_signed_in()
        return {}

    def _logout(self, _params: dict[str, Any]) -> dict[str, Any]:
        """Require a new sign-in. The stored key belongs to the user and is not removed."""
        self._signed_out = True
        return {}

    async def _close(self) -> None:
        await self._sessions.end()
        for agent in self._bases:
            await agent.close()
        self._saver.close()
        self._environment.end()


def _server_configs(servers: Sequence[McpServer]) -> "tuple[ServerConfig, ...]":
    """Convert the client's MCP servers, each under a name of its own.

    One that cannot be used stays in the list and says why: it must not cost the session.
    """
    from kode_sidecar.infrastructure.mcp.contracts import ServerConfig  # noqa: PLC0415

    found: dict[str, ServerConfig] = {}
    for server in servers:
        why = ""
        if server.type == "sse" or not (server.url or server.command):
            why = (
                f"The MCP server {one_line(server.name)} cannot be used: its client gives neither "
                "a command nor a url of the type http (the transport `sse` is not spoken here)."
            )
        name = _free_name(server.name, found)
        found[name] = ServerConfig(
            name,
            (server.command, *server.args) if server.command else (),
            server.url or "",
            {one.name: one.value for one in server.env},
            {one.name: one.value for one in server.headers},
            source="editor",
            unusable=why,
        )
    return tuple(found.values())


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """Return the client's name of a server on one line, numbered if another has it already."""
    plain = one_line(without_controls(wanted)).strip() or "server"
    name = cut_line(plain, _NAME_CHARS)
    count = 1
    while name in taken:
        count += 1
        name = f"{cut_line(plain, _NAME_CHARS - 5)} ({count})"
    return name
