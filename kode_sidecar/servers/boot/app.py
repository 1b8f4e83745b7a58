"""The composition root, first half: what answers at once. `agent` is the second half.

Together they construct all parts and wire them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from msgspec import to_builtins

from kode_sidecar.agent.sessions import (
    FollowedSessions,
    SessionAttachments,
    SessionCatalog,
    SessionCopies,
    SessionRegistry,
    StoredMessages,
    UsageReport,
)
from kode_sidecar.core.protocol.documents import EditorContextParams, EncodingParams
from kode_sidecar.core.protocol.generated import SCHEMA_SHA256
from kode_sidecar.core.protocol.handshake import (
    DOCTOR_COMMAND,
    Handover,
    Object,
    as_object,
    editor_settings,
    is_plain,
    kode_options,
    unknown_members,
)
from kode_sidecar.core.protocol.process import (
    AuthStatusResult,
    Empty,
    SchemaGetResult,
    SettingsUpdateParams,
    SettingsUpdateResult,
    SetTrustParams,
)
from kode_sidecar.core.protocol.run import RunStartParams, RunStartResult
from kode_sidecar.core.protocol.session import SessionAttachParams
from kode_sidecar.core.settings import (
    LiveSettings,
    LoadedSettings,
    load_settings,
    with_editor,
)
from kode_sidecar.core.text.uris import uri_to_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.servers.boot.leftovers import remove_leftovers, remove_unpacked
from kode_sidecar.servers.boot.state_folder import session_folders
from kode_sidecar.servers.boot.system import Environment
from kode_sidecar.servers.boot.wire_files import SCHEMA_FILE, wire_file
from kode_sidecar.servers.lsp import (
    Application,
    ClientProfile,
    Connection,
    Features,
    FindingDiagnostics,
    FrameListener,
    Handler,
    LoadStep,
    LspEditor,
    MovedHunks,
    PublishedDiagnostics,
    SessionHandlers,
    ping,
    run,
    serve,
    serve_documents,
)

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.infrastructure.providers.chat_client import ChatClient
    from kode_sidecar.servers.boot.agent import Agent
    from kode_sidecar.servers.plain import PlainTier

T = TypeVar("T")

LoadAgent = Callable[[], "type[Agent]"]


def run_server(
    handover: Handover,
    load_agent: LoadAgent,
    environment: Environment,
    listener: FrameListener | None,
    env_file: str | None,
) -> NoReturn:
    """Serve the editor behind `handover`; ends the process.

    `load_agent` imports the agent; it is called on the loader's thread. `environment` and
    `listener` let a recording be made or played.
    """

    def build(connection: Connection, _: Handover) -> Application:
        return _App(connection, handover, load_agent, environment, env_file).start()

    run(handover, build, listener=listener, orphaned=remove_unpacked)


class _App:
    """Holds what exists from the start: editor, settings, documents, sessions."""

    def __init__(
        self,
        connection: Connection,
        handover: Handover,
        load_agent: LoadAgent,
        environment: Environment,
        env_file: str | None,
    ) -> None:
        params = handover.params
        self._load_agent = load_agent
        self._environment = environment
        self._log = connection.log
        self._roots = self._paths(_folder_uris(params)) or _root_path(params)
        self._client = ClientProfile(params)
        self._editor = _editor(connection, self._client, params)
        self._ask_editor, self._notify_editor = connection.request, connection.notify
        self._live = LiveSettings(
            environment.begin(
                _settings(params, env_file),
                self._roots,
                handover.handshake,
                lambda line: connection.log(line, None),
            )
        )
        self._saver = Saver()
        self._folders = folders = session_folders(
            self._live.loaded.settings, self._saver, environment, self._root_uris
        )
        capabilities = as_object(handover.result.get("capabilities"))
        self._documents = Documents(capabilities["positionEncoding"])  # type: ignore[arg-type]
        self._documents.report_fault = connection.report_fault
        for path in unknown_members(kode_options(params)):
            connection.report_fault(f"initialize: `{path}` is not known here, and ignored")
        self._sessions = SessionRegistry(folders)
        self._agent: Agent | None = None
        self._editor_context = EditorContextParams()
        published = PublishedDiagnostics(connection.notify)
        self._findings = FindingDiagnostics(self._sessions, self._documents, published)
        self._editor.on_review = self._findings.follow
        self._moved_hunks = None
        if self._client.moved_hunks:
            self._moved_hunks = MovedHunks(self._sessions, self._documents, connection.notify)
            self._editor.on_hunks = self._moved_hunks.decided
        catalog = SessionCatalog(self._sessions, folders, self._editor)
        self._plain = self._plain_tier(connection, catalog, published)
        sessions = SessionHandlers(
            sessions=self._sessions,
            catalog=catalog,
            messages=StoredMessages(folders.store, self._client.max_inline_bytes),
            attachments=SessionAttachments(
                self._sessions,
                folders,
                FollowedSessions(environment.grown, self._editor.show, self._editor.flow),
                self._client.max_inline_bytes,
            ),
            copies=SessionCopies(folders, environment.transcript, lambda: self._live.loaded.keys),
            usage=UsageReport(folders.store),
            editor=self._editor,
        )
        attach = self._attaching(sessions.by_method["kode/session/attach"])
        handlers = {**sessions.by_method, "kode/session/attach": attach}
        serve(connection, {**handlers, **self._process_handlers()})
        self._editor.notebooks = serve_documents(connection, self._documents)
        connection.on_broken_sync = self._broken_sync

    def start(self) -> Application:
        """Return what the process needs from this app: features, what to load, how to close."""
        features = Features(
            workspace_folders_changed=self._folders_changed,
            watched_files_changed=self._files_changed,
            progress_cancelled=self._progress_cancelled,
            commands={DOCTOR_COMMAND: self._by_agent(lambda agent, _: agent.doctor())},
        )
        if self._plain is not None:
            features = replace(
                features,
                commands={**features.commands, **self._plain.commands},
                requests=self._plain.requests,
                register=self._plain.register,
            )
        return Application(
            features=features,
            load=(
                LoadStep("the agent", self._build_agent, self._attach_agent),
                LoadStep("httpx", self._open_model, self._attach_model),
                LoadStep("leftovers", remove_leftovers, lambda _: None),
            ),
            close=self._close,
        )

    def _plain_tier(
        self, connection: Connection, catalog: SessionCatalog, published: PublishedDiagnostics
    ) -> "PlainTier | None":
        """Return what serves a client without a plugin; None for any other."""
        if type(self._editor) is LspEditor:
            return None
        # Imported late: only clients without a plugin pay for it.
        from kode_sidecar.servers.plain import PlainEditor, PlainTier, TrustedFolders  # noqa: PLC0415

        assert isinstance(self._editor, PlainEditor), "there are two kinds"
        if self._roots and self._live.loaded.settings.trusts(self._roots):
            self._live.trust(True)
        return PlainTier(
            connection,
            self._client,
            self._editor,
            self._sessions,
            catalog,
            self._documents,
            published,
            self._findings,
            self._live.loaded.settings.storage_root / "chats",
            self._live.loaded.settings.comment_word,
            lambda: self._live.loaded.settings.locale,
            TrustedFolders(lambda: self._roots, self._live.trusted, self._live.trust),
            partial(self._by_agent(lambda agent, _: agent.list_models()), None),
            partial(self._by_agent(lambda agent, _: agent.knowledge.all_verbs()), None),
        )

    def _build_agent(self) -> "Agent":
        """Build the agent; runs on the loader's thread."""
        self._agent = self._load_agent()(
            self._live,
            editor=self._editor,
            editor_name=self._client.name,
            documents=self._documents,
            editor_context=lambda: self._editor_context,
            environment=self._environment,
            servers_changed=lambda: self._notify_editor("kode/mcp/changed", Empty()),
            language=LanguageServers(self._client.editor_queries, self._ask_editor),
        )
        return self._agent

    def _open_model(self) -> "ChatClient":
        """Open the model client; runs on the loader's thread."""
        return self._loaded_agent().open_model()

    def _attach_model(self, chat: "ChatClient") -> None:
        self._loaded_agent().attach_model(chat)

    def _loaded_agent(self) -> "Agent":
        assert self._agent is not None, "the steps run in order"
        return self._agent

    def _attach_agent(self, agent: "Agent") -> None:
        agent.workspace.set_roots(self._roots)
        self._sessions.attach(agent.run_session, agent.repair_session, agent.providers.check_model)

    def _root_uris(self) -> list[str]:
        return [path.as_uri() for path in self._roots]

    def _process_handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of methods that concern the process, not a session."""
        by_agent = self._by_agent
        return {
            "kode/ping": ping,
            "kode/doctor": by_agent(lambda agent, _: agent.doctor()),
            "kode/schema/get": self._schema,
            "kode/auth/status": by_agent(self._auth_status),
            "kode/workspace/setTrust": self._set_trust,
            "kode/settings/update": self._update_settings,
            "kode/file/search": by_agent(lambda agent, asked: agent.search_files(asked)),
            "kode/models/list": by_agent(lambda agent, _: agent.list_models()),
            "kode/skills/list": by_agent(lambda agent, _: agent.knowledge.list_skills()),
            "kode/verbs/list": by_agent(lambda agent, _: agent.knowledge.list_verbs()),
            "kode/mcp/list": by_agent(lambda agent, _: agent.mcp().list()),
            "kode/mcp/decide": by_agent(lambda agent, asked: agent.mcp().decide(asked)),
            "kode/mcp/read": by_agent(lambda agent, asked: agent.mcp().read(asked)),
            "kode/mcp/prompt": by_agent(lambda agent, asked: agent.mcp().prompt(asked)),
            "kode/mcp/start": by_agent(lambda agent, asked: agent.mcp().start(asked)),
            "kode/memory/list": by_agent(lambda agent, asked: agent.knowledge.list_memory(asked)),
            "kode/memory/decide": by_agent(
                lambda agent, asked: agent.knowledge.decide_memory(asked)
            ),
            "kode/run/start": self._start_run,
            "kode/run/get": by_agent(lambda agent, asked: agent.runs().get(asked)),
            "kode/run/cancel": by_agent(lambda agent, asked: agent.runs().cancel(asked)),
            "kode/editor/didChangeContext": self._context_changed,
            "kode/editor/didChangeEncoding": self._encoding_changed,
            "kode/editor/didShow": lambda _: None,  # only recordings use it
        }

    def _by_agent(
        self, ask: Callable[["Agent", Any], Awaitable[T]]
    ) -> Callable[[Any], Awaitable[T]]:
        """Make a handler that waits until the agent is loaded, then calls `ask` with it."""

        async def handle(params: Any) -> T:
            await self._sessions.loaded()
            return await ask(self._loaded_agent(), params)

        return handle

    def _attaching(self, attach: Handler) -> Handler:
        """Make a handler that attaches, and shows what reviews of an earlier process found."""

        async def handle(params: SessionAttachParams) -> Any:
            reply = await attach(params)
            session = self._sessions.get_now(params.session_id)
            if session is not None and session.stream.history.findings:
                self._findings.follow(session.id)
            return reply

        return handle

    async def _start_run(self, params: RunStartParams) -> RunStartResult:
        if not self._environment.has_runs:
            raise KodeError("Denied", "This is a recording, which holds no run and starts none.")
        if not self._live.trusted():
            text = "A run needs a trusted workspace: the editor must say `trusted` in initialize."
            raise KodeError("Denied", text)
        await self._sessions.loaded()
        return await self._loaded_agent().runs().start(params)

    async def _auth_status(self, agent: "Agent", _: Empty) -> AuthStatusResult:
        return await agent.providers.auth_report(self._live.loaded.settings.model)

    def _set_trust(self, params: SetTrustParams) -> Empty:
        self._live.trust(params.trusted)
        return Empty()

    async def _update_settings(self, params: SettingsUpdateParams) -> SettingsUpdateResult:
        defaults = self._folders.defaults
        if params.model is not None:
            await self._sessions.check_model(params.model)
        if params.agent is not None:
            defaults.profile(params.agent)
        await self._sessions.loaded()
        self._live.update(
            {name: said for name, said in to_builtins(params).items() if said not in (None, "")}
        )
        settings = self._live.loaded.settings
        defaults.mode, defaults.agent = settings.mode, settings.agent
        defaults.model = settings.model
        self._loaded_agent().follow_settings()
        self._sessions.follow_defaults()
        return SettingsUpdateResult(
            mode=settings.mode,
            agent=settings.agent,
            model=settings.model,
            locale=settings.locale,
            file_encoding=settings.file_encoding,
            save_accepted=settings.save_accepted,
        )

    async def _schema(self, _params: Empty) -> SchemaGetResult:
        text = await asyncio.to_thread(wire_file, SCHEMA_FILE)
        return SchemaGetResult(schema=text.decode("utf-8"), sha256=SCHEMA_SHA256)

    def _context_changed(self, context: EditorContextParams) -> None:
        self._editor_context = context

    def _encoding_changed(self, said: EncodingParams) -> None:
        self._documents.report_encoding(said.uri, said.encoding)

    def _progress_cancelled(self, token: int | str) -> None:
        """Cancel the turn whose progress was cancelled: the token is the turn's id."""
        self._sessions.cancel_turn(str(token))

    def _broken_sync(self, uri: str | None) -> None:
        """Mark documents as unsynced after a sync message that could not be read.

        Their text is unknown and must not be used. Without `uri` all open documents are marked.
        """
        reason = "the editor sent a change that could not be read"
        for name in [uri] if uri else [document.uri for document in self._documents.all_open()]:
            self._documents.mark_unsynced(name, reason)

    def _folders_changed(self, added: Sequence[str], removed: Sequence[str]) -> None:
        gone = [uri_to_path(uri) for uri in removed]
        kept = [path for path in self._roots if path not in gone]
        self._roots = [*kept, *(path for path in self._paths(added) if path not in kept)]
        if self._agent is not None:
            self._agent.workspace.set_roots(self._roots)

    def _files_changed(self, changes: Sequence[tuple[str, int]]) -> None:
        """Report changed files to the sessions, for clients that watch files; others need not."""
        self._sessions.files_changed([uri for uri, _ in changes])

    def _paths(self, uris: Sequence[str]) -> list[Path]:
        """Return the folders of these URIs; those that are no file URIs are reported on stderr."""
        paths = {uri: uri_to_path(uri) for uri in uris}
        for uri, path in paths.items():
            if path is None:
                self._log(f"the folder {uri} is not opened: this is no file URI", None)
        return [path for path in paths.values() if path is not None]

    async def _close(self) -> None:
        await self._sessions.close()
        self._findings.close()
        if self._moved_hunks is not None:
            self._moved_hunks.close()
        if self._plain is not None:
            self._plain.close()
        if self._agent is not None:
            await self._agent.close()
        self._saver.close()
        self._environment.end()


def _editor(connection: Connection, client: ClientProfile, params: Object) -> LspEditor:
    """Return the editor; a client that says nothing of kode gets one that is plain LSP."""
    if not is_plain(params):
        return LspEditor(connection, client)
    # Imported late: only clients without a plugin pay for it.
    from kode_sidecar.servers.plain import PlainEditor  # noqa: PLC0415

    return PlainEditor(connection, client)


def _settings(params: Object, env_file: str | None) -> LoadedSettings:
    kode = kode_options(params)
    locale = kode.get("locale") or params.get("locale")
    return with_editor(
        load_settings(os.environ, env_file=env_file),
        editor_settings(params),
        locale=locale if isinstance(locale, str) else None,
        trusted=kode.get("trusted") is True,
    )


def _folder_uris(params: Object) -> list[str]:
    """Return the URIs of the open folders (LSP `workspaceFolders`, else `rootUri`)."""
    folders = params.get("workspaceFolders")
    uris: list[object] = [params.get("rootUri")]
    if isinstance(folders, list):
        uris = [as_object(folder).get("uri") for folder in cast(list[object], folders)]
    return [uri for uri in uris if isinstance(uri, str)]


def _root_path(params: Object) -> list[Path]:
    """Return the folder of a client that sends no URIs (LSP `rootPath`)."""
    path = params.get("rootPath")
    return [Path(path)] if isinstance(path, str) and Path(path).is_absolute() else []
