"""The composition root, first half: what answers at once. `agent` is the second.

With `agent` the one place that constructs the parts and wires them.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from kode_sidecar.boot.leftovers import remove_leftovers, remove_unpacked
from kode_sidecar.boot.system import Environment
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import SessionDefaults
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.protocol.handshake import (
    DOCTOR_COMMAND,
    Handover,
    Object,
    as_object,
    editor_settings,
    kode_options,
)
from kode_sidecar.protocol.process import (
    DoctorResult,
    MemoryDecideParams,
    MemoryListParams,
    MemoryListResult,
    ModelsListResult,
    SchemaGetResult,
    SkillsListResult,
)
from kode_sidecar.protocol.run import (
    RunCancelParams,
    RunCancelResult,
    RunGetParams,
    RunGetResult,
    RunStartParams,
    RunStartResult,
)
from kode_sidecar.records.conversation_store import FileConversationStore
from kode_sidecar.records.saver import Saver
from kode_sidecar.server import (
    Application,
    ClientProfile,
    Connection,
    Editor,
    Features,
    FrameListener,
    Handlers,
    Step,
    run,
)
from kode_sidecar.sessions import (
    SessionAttachments,
    SessionCatalog,
    SessionCopies,
    SessionFolders,
    SessionRegistry,
    StoredMessages,
    UsageReport,
)
from kode_sidecar.settings import LoadedSettings, load_settings, with_editor
from kode_sidecar.text.uris import uri_to_path
from kode_sidecar.workspace.documents import Documents

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.boot.agent import Agent
    from kode_sidecar.providers.chat_client import ChatClient

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
    `listener` are a recording, or one being made.
    """

    def build(connection: Connection, _: Handover) -> Application:
        return _App(connection, handover, load_agent, environment, env_file).start()

    run(handover, build, listener=listener, orphaned=remove_unpacked)


class _App:
    """What there is from the first moment on."""

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
        self._editor = Editor(connection, self._client)
        self._loaded = environment.begin(
            _settings(params, env_file),
            self._roots,
            handover.handshake,
            lambda line: connection.log(line, None),
        )
        self._clock = environment.clock
        self._new_id = environment.new_id
        self._saver = Saver()
        settings = self._loaded.settings
        self._store = FileConversationStore(
            settings.storage_root, self._saver, storage=settings.storage
        )
        self._folders = SessionFolders(
            self._store, self._saver, self._clock, self._new_id, self._root_uris
        )
        capabilities = as_object(handover.result.get("capabilities"))
        self._documents = Documents(capabilities["positionEncoding"])  # type: ignore[arg-type]
        self._sessions = SessionRegistry(
            self._defaults(),
            partial(self._new_id, "session"),
            self._folders.create,
            self._folders.open,
            self._store.exists,
        )
        self._agent: Agent | None = None
        self._editor_context = EditorContextParams()
        Handlers(
            sessions=self._sessions,
            catalog=self._catalog(),
            messages=StoredMessages(self._store, self._client.max_inline_bytes),
            attachments=SessionAttachments(
                self._sessions, self._store, self._defaults(), self._client.max_inline_bytes
            ),
            copies=SessionCopies(
                self._store, self._saver, self._clock, self._new_id, environment.transcript
            ),
            usage=UsageReport(self._store),
            documents=self._documents,
            services=self,
        ).register(connection)
        connection.on_broken_sync = self._broken_sync

    def start(self) -> Application:
        """What the process is told about this app."""
        return Application(
            features=Features(
                workspace_folders_changed=self._folders_changed,
                watched_files_changed=self._files_changed,
                progress_cancelled=self._progress_cancelled,
                commands={DOCTOR_COMMAND: self._doctor_command},
            ),
            load_first=(
                Step("the agent", self._build_agent, self._attach_agent),
                Step("httpx", self._open_model, self._attach_model),
            ),
            load_last=(Step("leftovers", remove_leftovers, lambda _: None),),
            close=self._close,
        )

    def _build_agent(self) -> "Agent":
        """On the loader's thread."""
        self._agent = self._load_agent()(
            self._loaded,
            editor=self._editor,
            editor_name=self._client.name,
            documents=self._documents,
            editor_context=lambda: self._editor_context,
            environment=self._environment,
        )
        return self._agent

    def _open_model(self) -> "ChatClient":
        """On the loader's thread."""
        return self._loaded_agent().open_model()

    def _attach_model(self, chat: "ChatClient") -> None:
        self._loaded_agent().attach_model(chat)

    def _loaded_agent(self) -> "Agent":
        assert self._agent is not None, "the steps run in order"
        return self._agent

    def _attach_agent(self, agent: "Agent") -> None:
        agent.workspace.set_roots(self._roots)
        self._sessions.attach(agent.run_session, agent.repair_session)

    def _defaults(self) -> SessionDefaults:
        settings = self._loaded.settings
        return SessionDefaults(
            agent=settings.agent,
            mode=settings.mode,
            model=settings.model,
            window_messages=settings.window_messages,
            agents=settings.agents,
        )

    def _catalog(self) -> SessionCatalog:
        return SessionCatalog(
            sessions=self._sessions,
            store=self._store,
            defaults=self._defaults(),
            open_session=self._folders.open,
            roots=self._root_uris,
            editor=self._editor,
            clock=self._clock,
        )

    def _root_uris(self) -> list[str]:
        return [path.as_uri() for path in self._roots]

    async def doctor(self) -> DoctorResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return self._loaded_agent().examine()

    async def list_models(self) -> ModelsListResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return await self._loaded_agent().list_models()

    async def list_skills(self) -> SkillsListResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return self._loaded_agent().knowledge.list_skills()

    async def list_memory(self, params: MemoryListParams) -> MemoryListResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return await self._loaded_agent().knowledge.list_memory(params)

    async def decide_memory(self, params: MemoryDecideParams) -> None:
        """See `server.Services`."""
        await self._sessions.loaded()
        await self._loaded_agent().knowledge.decide_memory(params)

    async def start_run(self, params: RunStartParams) -> RunStartResult:
        """See `server.Services`."""
        if not self._loaded.settings.trusted:
            text = "A run needs a trusted workspace: the editor must say `trusted` in initialize."
            raise KodeError("Denied", text)
        await self._sessions.loaded()
        return await self._loaded_agent().runs().start(params)

    async def get_run(self, params: RunGetParams) -> RunGetResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return await self._loaded_agent().runs().get(params)

    async def cancel_run(self, params: RunCancelParams) -> RunCancelResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return await self._loaded_agent().runs().cancel(params)

    async def schema(self) -> SchemaGetResult:
        """See `server.Services`."""
        await self._sessions.loaded()
        return await asyncio.to_thread(self._loaded_agent().schema)

    def context_changed(self, context: EditorContextParams) -> None:
        """See `server.Services`."""
        self._editor_context = context

    async def _doctor_command(self, _arguments: object) -> DoctorResult:
        return await self.doctor()

    def _progress_cancelled(self, token: int | str) -> None:
        """A turn's progress has the turn's id as its token."""
        self._sessions.cancel_turn(str(token))

    def _broken_sync(self, uri: str | None) -> None:
        """Document sync that could not be read: whose text is unknown must not be used."""
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
        """For clients that watch files; nobody else needs to."""
        self._sessions.files_changed([uri for uri, _ in changes])

    def _paths(self, uris: Sequence[str]) -> list[Path]:
        """The folders that these URIs name; what is left out is told on stderr."""
        paths = {uri: uri_to_path(uri) for uri in uris}
        for uri, path in paths.items():
            if path is None:
                self._log(f"the folder {uri} is not opened: this is no file URI", None)
        return [path for path in paths.values() if path is not None]

    async def _close(self) -> None:
        await self._sessions.close()
        if self._agent is not None:
            await self._agent.close()
        self._saver.close()
        self._environment.end()


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
    """The open folders (LSP `workspaceFolders`, else `rootUri`)."""
    folders = params.get("workspaceFolders")
    uris: list[object] = [params.get("rootUri")]
    if isinstance(folders, list):
        uris = [as_object(folder).get("uri") for folder in cast(list[object], folders)]
    return [uri for uri in uris if isinstance(uri, str)]


def _root_path(params: Object) -> list[Path]:
    """The folder of a client that knows no URIs (LSP `rootPath`)."""
    path = params.get("rootPath")
    return [Path(path)] if isinstance(path, str) and Path(path).is_absolute() else []
