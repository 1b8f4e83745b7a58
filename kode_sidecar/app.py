"""The composition root: the one place that constructs the parts and wires them."""

import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.context.system_prompt import Surroundings, system_prompt
from kode_sidecar.doctor import examine
from kode_sidecar.domain.error_info import ErrorInfo, error_info
from kode_sidecar.errors import KodeError
from kode_sidecar.front_door import Handover
from kode_sidecar.main_session import (
    EditLocks,
    SessionDefaults,
    SessionRecords,
    SessionRegistry,
    SessionServices,
    Toolbox,
)
from kode_sidecar.protocol.handshake import (
    DOCTOR_COMMAND,
    Object,
    as_object,
    editor_settings,
    kode_options,
)
from kode_sidecar.protocol.session import DoctorResult, Mode
from kode_sidecar.providers.chat_client import ChatClient
from kode_sidecar.providers.late_client import LateClient
from kode_sidecar.providers.provider_config import HttpTimeouts, ProviderConfig
from kode_sidecar.records.artifacts import Artifacts
from kode_sidecar.records.conversation_meta import ConversationMeta
from kode_sidecar.records.conversation_store import FileConversationStore
from kode_sidecar.records.journal import Journal
from kode_sidecar.records.json_log import JsonLog, LogFiles
from kode_sidecar.records.log_redaction import Redaction
from kode_sidecar.records.retired_models import RetiredModels
from kode_sidecar.records.saver import Saver
from kode_sidecar.server import (
    Application,
    ClientProfile,
    Connection,
    Editor,
    Features,
    Handlers,
    Step,
    import_http_client,
    run,
)
from kode_sidecar.settings import LoadedSettings, Settings, load_settings, with_editor
from kode_sidecar.system import RandomIds, SystemClock
from kode_sidecar.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.workspace.uris import uri_to_path
from kode_sidecar.workspace.workspace import Workspace


def run_server(handover: Handover, env_file: str | None) -> NoReturn:
    """Serve the editor behind `handover`; ends the process."""
    run(handover, lambda connection, _: _App(connection, handover, env_file).application())


class _App:
    """Everything with the lifetime of the process."""

    def __init__(self, connection: Connection, handover: Handover, env_file: str | None) -> None:
        params = handover.params
        self._client = ClientProfile(params)
        self._loaded = _settings(params, env_file)
        settings = self._loaded.settings
        self._clock = SystemClock()
        self._new_id = RandomIds()
        self._log = JsonLog(
            LogFiles(settings.log_dir),
            self._clock.timestamp,
            Redaction(
                [settings.api_key],
                settings.log_redact_chars if settings.log_redact_content else None,
            ),
        )
        self._saver = Saver()
        self._store = FileConversationStore(settings.storage_root, self._saver)
        self._prompts = PromptFiles(find_prompts(), settings.locale)
        capabilities = as_object(handover.result.get("capabilities"))
        self._workspace = Workspace(
            _roots(params),
            capabilities["positionEncoding"],  # type: ignore[arg-type]
            file_encoding=settings.file_encoding,
            own_files=[settings.storage_root],
        )
        self._model = LateClient(self._missing)
        self._chat: ChatClient | None = None
        self._sessions = SessionRegistry(self._services(connection), self._create_records)
        Handlers(self._sessions, self._workspace.documents, self._doctor).register(connection)
        connection.on_broken_sync = self._broken_sync

    def application(self) -> Application:
        """What the process is told about this app."""
        return Application(
            features=Features(
                workspace_folders_changed=self._folders_changed,
                commands={DOCTOR_COMMAND: self._doctor_command},
            ),
            load_first=(Step("httpx", self._open_chat, self._model.attach),),
            close=self._close,
        )

    def _services(self, connection: Connection) -> SessionServices:
        settings = self._loaded.settings
        return SessionServices(
            model=self._model,
            editor=Editor(connection, self._client),
            workspace=self._workspace,
            clock=self._clock,
            new_id=self._new_id,
            defaults=SessionDefaults(
                agent=settings.agent,
                mode=settings.mode,
                model=settings.model,
                temperature=settings.temperature,
                top_p=settings.top_p,
                max_tokens=settings.max_tokens,
                permission_timeout=settings.permission_timeout,
            ),
            system_prompt=self._system_prompt,
            limit_instruction=self._prompts.read("tool_limit"),
            edit_locks=EditLocks(),
            toolset=Toolbox(self._workspace, Ripgrep(find_ripgrep())).tools,
            log=self._log,
            provider=urlsplit(settings.base_url).hostname or "",
            report_bug=self._report_bug,
        )

    def _missing(self) -> ErrorInfo | None:
        """What keeps the model from being asked; settings that are wrong may mean another host."""
        try:
            self._loaded.require_valid()
        except KodeError as error:
            return error_info(error)
        return _provider_config(self._loaded.settings).missing()

    def _open_chat(self) -> ChatClient:
        """On the loader's thread: import the HTTP library, build the client and its TLS context."""
        settings = self._loaded.settings
        chat = self._chat = ChatClient(
            _provider_config(settings),
            import_http_client().HttpClient,
            retired=RetiredModels(settings.storage_root),
        )
        with suppress(KodeError):  # told again, with the reason, when a turn asks
            chat.warm()
        return chat

    def _system_prompt(self, agent: AgentProfile, mode: Mode) -> str:
        surroundings = Surroundings(
            roots=[str(root.path) for root in self._workspace.roots],
            platform=platform.system(),
            editor=self._client.name,
            date=self._clock.timestamp()[:10],
        )
        return system_prompt(self._prompts, agent, mode, surroundings)

    async def _create_records(
        self, session_id: str, title: str, agent: str, meta: dict[str, Any]
    ) -> SessionRecords:
        now = self._clock.timestamp()
        roots = [root.path.as_uri() for root in self._workspace.roots]
        places: dict[str, Any] = {"roots": roots}
        if roots:
            places["projectRoot"] = roots[0]
        writer = self._store.create(
            ConversationMeta(
                id=session_id,
                title=title,
                agent_type=agent,
                created_at=now,
                updated_at=now,
                meta={**places, **meta},
            )
        )
        journal = Journal(writer.journal_path)

        async def save() -> None:
            await self._saver.save(writer, journal)

        await save()
        artifacts = Artifacts(writer.folder, partial(self._new_id, "artifact"))
        return SessionRecords(writer, journal, save, artifacts.save)

    def _doctor(self) -> DoctorResult:
        return examine(
            self._loaded,
            position_encoding=self._workspace.position_encoding,
            roots=[str(root.path) for root in self._workspace.roots],
        )

    async def _doctor_command(self, _arguments: object) -> DoctorResult:
        return self._doctor()

    def _broken_sync(self, uri: str | None) -> None:
        """Document sync that could not be read: whose text is unknown must not be used."""
        reason = "the editor sent a change that could not be read"
        documents = self._workspace.documents
        for name in [uri] if uri else [document.uri for document in documents.all_open()]:
            documents.mark_unsynced(name, reason)

    def _folders_changed(self, added: Sequence[str], removed: Sequence[str]) -> None:
        gone = [uri_to_path(uri) for uri in removed]
        kept = [root.path for root in self._workspace.roots if root.path not in gone]
        new = [path for uri in added if (path := uri_to_path(uri)) and path not in kept]
        self._workspace.set_roots([*kept, *new])

    def _report_bug(self, where: str, error: BaseException) -> None:
        self._log.write("error", where, "bug", traceback="".join(format_exception(error)))

    async def _close(self) -> None:
        await self._sessions.close()
        if self._chat is not None:
            await self._chat.aclose()
        self._saver.close()
        self._log.close()


def _provider_config(settings: Settings) -> ProviderConfig:
    return ProviderConfig(
        base_url=settings.base_url,
        api_key=settings.api_key,
        proxy=settings.proxy,
        timeouts=HttpTimeouts(
            connect=settings.http_timeout_connect,
            first_byte=settings.http_timeout_first_byte,
            idle=settings.http_timeout_idle,
            write=settings.http_timeout_write,
        ),
    )


def _settings(params: Object, env_file: str | None) -> LoadedSettings:
    kode = kode_options(params)
    locale = kode.get("locale") or params.get("locale")
    return with_editor(
        load_settings(os.environ, env_file=env_file),
        editor_settings(params),
        locale=locale if isinstance(locale, str) else None,
        trusted=kode.get("trusted") is True,
    )


def _roots(params: Object) -> list[Path]:
    """The open folders (LSP `workspaceFolders`, else `rootUri`, else `rootPath`)."""
    folders = params.get("workspaceFolders")
    uris: list[object] = [params.get("rootUri")]
    if isinstance(folders, list):
        uris = [as_object(folder).get("uri") for folder in cast(list[object], folders)]
    found = [uri_to_path(uri) for uri in uris if isinstance(uri, str)]
    root_path = params.get("rootPath")
    if not found and isinstance(root_path, str) and Path(root_path).is_absolute():
        found = [Path(root_path)]
    return [path for path in found if path is not None]
