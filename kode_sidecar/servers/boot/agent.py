"""The composition root, second half: what turns need. Loaded on a thread after the process answers.

It may be built on that thread: nothing here touches the event loop before it is attached.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING

from kode_sidecar.agent.context.agents import SCOUT, AgentProfile
from kode_sidecar.agent.context.budget import BudgetedModel
from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.context.compaction import compaction_texts
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.context.reminders import editor_note, koding_note
from kode_sidecar.agent.context.system_prompt import ProjectNotes, Surroundings, system_prompt
from kode_sidecar.agent.edits import EditLocks
from kode_sidecar.agent.event_log import NewSession, OpenedSession
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions import Questions, UserQuestions
from kode_sidecar.agent.scouts.contracts import ScoutServices
from kode_sidecar.agent.sessions.repair import repair_session
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.agent.tools.run_command import Elsewhere, nowhere_else
from kode_sidecar.agent.turns import (
    Budgets,
    EncodedRequest,
    LearnedRates,
    SessionServices,
    ToolScope,
)
from kode_sidecar.agent.turns.toolset import SessionCommands, Toolbox
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.kernel.contracts import ModelRequest, NewId, Tool
from kode_sidecar.core.protocol.documents import EditorContextParams
from kode_sidecar.core.protocol.process import DoctorResult, ModelsListResult
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.settings import PROJECT_SERVER_FILES, LiveSettings, LoadedSettings, Settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.chat_client import ChatClient, DeferredClient
from kode_sidecar.infrastructure.providers.endpoint import OpenHost
from kode_sidecar.infrastructure.providers.memory_http import HttpMemory, MemoryHost
from kode_sidecar.infrastructure.providers.models_report import models_report
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.rate_limiter import STALLED_SECONDS, RetryPolicy
from kode_sidecar.infrastructure.records.host_models import KnownHosts, SavedRetiredModels
from kode_sidecar.infrastructure.records.json_log import JsonLog, LogFiles, Redaction
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.servers.boot.budget_setup import SpendingToday, dearest, user_budget
from kode_sidecar.servers.boot.doctor import examine
from kode_sidecar.servers.boot.http_library import import_http_client
from kode_sidecar.servers.boot.knowledge import Knowledge
from kode_sidecar.servers.boot.provider_setup import set_up_providers
from kode_sidecar.servers.boot.system import Environment

if TYPE_CHECKING:
    from kode_sidecar.core.protocol.mcp import McpListResult
    from kode_sidecar.infrastructure.mcp.contracts import ServerConfig
    from kode_sidecar.jobs.run import RunServices, WireRuns
    from kode_sidecar.servers.boot.mcp_setup import McpServers


class Agent:
    """The model, the tools and everything else a session needs to run."""

    def __init__(
        self,
        live: LiveSettings,
        *,
        editor: EditorPort,
        editor_name: str,
        documents: Documents,
        editor_context: Callable[[], EditorContextParams],
        environment: Environment,
        servers: "Sequence[ServerConfig]" = (),
        servers_changed: Callable[[], None] = lambda: None,
        language: LanguageServers | None = None,
        elsewhere: Elsewhere = nowhere_else,
        locks: EditLocks | None = None,
    ) -> None:
        loaded, settings = live.loaded, live.loaded.settings
        self._live = live
        self.providers = set_up_providers(loaded)
        self._editor_name = editor_name
        self._editor_context = editor_context
        self._environment = environment
        self._clock = clock = environment.clock
        self._log = JsonLog(
            LogFiles(settings.log_dir),
            clock.timestamp,
            Redaction(
                [*loaded.keys, *self.providers.keys()],
                settings.log_redact_chars if settings.log_redact_content else None,
            ),
        )
        self._prompts = PromptFiles(find_prompts(), settings.locale)
        self.workspace = Workspace(
            [],
            documents.position_encoding,
            documents=documents,
            file_encoding=settings.file_encoding,
            own_files=[settings.storage_root],
            counts_lone_cr=editor_name.startswith("Visual Studio Code"),
        )
        self.knowledge = Knowledge(live, self._prompts, lambda: self.workspace.roots, environment)
        self._notes = ProjectNotes(self.workspace, live.trusted)
        self._model = DeferredClient(self.providers.missing)
        spending = SpendingToday(settings.storage_root, clock)
        self._budgets = Budgets(
            BudgetedModel(self._model, lambda name: dearest(self._models(name)), spending),
            user_budget(settings.budget),
            spending.date,
        )
        self._chat: ChatClient | None = None
        self._own_chat: ChatClient | None = None
        self._runs: WireRuns | None = None
        self._memories: dict[MemoryHost, HttpMemory] = {}
        self._retired = SavedRetiredModels(settings.storage_root)
        self._mcp: McpServers | None = None
        self._with_servers: dict[str, bool] = {}
        self._more_servers = servers
        self._servers_changed = servers_changed
        self._language = language or LanguageServers()
        self.edit_locks = locks or EditLocks(self._language, settings.edit_timeout)
        self._commands = self._session_commands(elsewhere)
        self._services = self._build_services(settings, editor, environment.new_id)

    @property
    def _loaded(self) -> LoadedSettings:
        return self._live.loaded

    def follow_settings(self) -> None:
        """The editor has changed settings that are no session's."""
        self._prompts.speak(self._loaded.settings.locale)
        self.workspace.decode_as(self._loaded.settings.file_encoding)

    def run_session(self, new: NewSession) -> Session:
        """Make a session that can run."""
        return Session(new, self._services)

    def repair_session(self, opened: OpenedSession) -> None:
        """Put the files of an earlier process in order; blocks. Raises KodeError `Storage`."""
        repair_session(opened, self._clock, self._services.new_id)

    def open_model(self) -> ChatClient:
        """Import the HTTP library, build the client and its TLS context. In a thread."""
        settings, environment = self._loaded.settings, self._environment
        chat = ChatClient(
            self.providers.registry,
            environment.hosts(_open_hosts),
            retired=self._retired,
            hosts=KnownHosts(settings.storage_root) if environment.remembers_hosts else None,
            retry=RetryPolicy(
                environment.random,
                budget=settings.http_retry_budget,
                stalled=max(
                    STALLED_SECONDS, settings.http_timeout_first_byte, settings.http_timeout_idle
                ),
            ),
            now=self._clock.monotonic,
        )
        with suppress(KodeError):  # told again, with the reason, when a turn asks
            chat.warm(settings.model)
        self._own_chat = chat
        return chat

    def attach_model(self, chat: ChatClient) -> None:
        """The model can be asked, by the client of this agent or of another; on the loop."""
        self._chat = chat
        self._model.attach(chat)

    def runs(self) -> "WireRuns":
        """The runs that the editor asks for. Raises KodeError `ConfigInvalid`."""
        from kode_sidecar.jobs.run import WireRuns  # noqa: PLC0415

        if self._runs is None:
            self._runs = WireRuns(self.run_services())
        return self._runs

    def run_services(self) -> "RunServices":
        """What headless runs need. Raises KodeError `ConfigInvalid` for settings that are wrong."""
        # Late: only who starts a run pays for that room and for PyYAML.
        from kode_sidecar.jobs.run import RunServices  # noqa: PLC0415

        self._loaded.require_valid()
        settings, services = self._loaded.settings, self._services
        return RunServices(
            storage_root=settings.storage_root,
            clock=self._clock,
            new_id=services.new_id,
            redaction=Redaction([*self._loaded.keys, *self.providers.keys()]),
            prompts=self._prompts,
            environ={**self._loaded.variables, **os.environ},
            ripgrep=Ripgrep(find_ripgrep()),
            model=self._model,
            budgeted=self._budgets.model.within,
            target=lambda name: self.providers.registry.targets(name)[0],
            traits=self.traits,
            limit_instruction=services.limit_instruction(),
            silence_told=settings.http_silence_told,
            open_memory=self._open_memory,
            report_bug=self._report_bug,
            file_encoding=settings.file_encoding,
            open_servers=lambda names: self.mcp().for_run(names),
        )

    def _open_memory(self, host: MemoryHost) -> HttpMemory:
        """The memory of a service, one for all runs that use it; closed with this agent."""
        host = replace(host, proxy=self._loaded.settings.proxy)
        if host not in self._memories:
            self._memories[host] = HttpMemory(host, self.knowledge.open_http)
        return self._memories[host]

    async def doctor(self) -> DoctorResult:
        """Return the doctor's report."""
        return examine(
            self._loaded,
            position_encoding=self.workspace.position_encoding,
            roots=[str(root.path) for root in self.workspace.roots],
            servers=self.named_servers(),
        )

    async def list_models(self) -> ModelsListResult:
        """What may be chosen as model. Raises KodeError `ConfigInvalid`."""
        if problems := self.providers.problems:
            raise KodeError("ConfigInvalid", "; ".join(problems))
        await self._model.loaded()
        assert self._chat is not None, "attached before the model is loaded"
        return await models_report(self._chat, self._retired, self._loaded.settings.model)

    async def close(self) -> None:
        """End runs, close connections and the log."""
        if self._runs is not None:
            await self._runs.close()
        for memory in self._memories.values():
            await memory.aclose()
        if self._mcp is not None:
            await self._mcp.close()
        if self._own_chat is not None:
            await self._own_chat.aclose()
        await self.knowledge.close()
        self._log.close()

    def _build_services(
        self, settings: Settings, editor: EditorPort, new_id: NewId
    ) -> SessionServices:
        questions = UserQuestions(settings.permission_timeout)
        return SessionServices(
            model=self._budgets.model,
            budgets=self._budgets,
            editor=editor,
            workspace=self.workspace,
            clock=self._clock,
            new_id=new_id,
            temperature=settings.temperature,
            top_p=settings.top_p,
            sampling_chosen=self._loaded.chooses_sampling,
            max_tokens=settings.max_tokens,
            questions=questions,
            silence_told=settings.http_silence_told,
            editor_note=lambda: editor_note(self._editor_context(), self.workspace),
            system_prompt=self._system_prompt,
            koding_note=partial(koding_note, self._prompts),
            recall=self.knowledge.recall,
            compaction_texts=partial(compaction_texts, self._prompts),
            traits=self.traits,
            rates=LearnedRates(),
            encode=self._encode,
            limit_instruction=partial(self._prompts.read, "tool_limit"),
            edit_locks=self.edit_locks,
            tools=self._toolbox(settings, Questions(editor, new_id, questions), new_id).tools,
            log=self._log,
            provider=self.providers.provider_of,
            report_bug=self._report_bug,
        )

    def _toolbox(self, settings: Settings, questions: Questions, new_id: NewId) -> Toolbox:
        return Toolbox(
            workspace=self.workspace,
            ripgrep=Ripgrep(find_ripgrep()),
            skills=self.knowledge.skills,
            memory=self.knowledge.memory,
            memory_scope=self.knowledge.memory_scope,
            commands=self._commands,
            servers=partial(self._server_tools, questions),
            language=self._language,
            questions=questions,
            scouts=ScoutServices(
                model=self._budgets.model,
                clock=self._clock,
                new_id=new_id,
                system_prompt=lambda: self._system_prompt(SCOUT, "plan"),
                report_bug=self._report_bug,
                traits=self.traits,
                temperature=settings.temperature,
                top_p=settings.top_p,
                sampling_chosen=self._loaded.chooses_sampling,
            ),
        )

    def _session_commands(self, elsewhere: Elsewhere) -> SessionCommands | None:
        """What runs commands, where the user wants that; wrong settings are told by the doctor."""
        settings = self._loaded.settings
        if settings.commands.mode == "off":
            return None
        # Late: only who switched them on pays for it.
        from kode_sidecar.servers.boot.command_setup import session_commands  # noqa: PLC0415

        environ = {**self._loaded.variables, **os.environ}
        try:
            trusted = self._live.trusted
            outside = elsewhere, self._environment.found
            return session_commands(settings, self.workspace, environ, trusted, *outside)
        except KodeError as error:
            self._log.write("error", "commands", "config", message=error.message)
            return None

    def mcp(self) -> "McpServers":
        """The MCP servers of the user, the editor and the project."""
        # Late: only who has servers pays for that room.
        from kode_sidecar.servers.boot.mcp_setup import McpServers  # noqa: PLC0415

        if self._mcp is None:
            more = self._environment, self._more_servers, self._servers_changed
            self._mcp = McpServers(self._live, self.workspace, PROJECT_SERVER_FILES, *more)
            if self._mcp.problem:
                self._log.write("error", "mcp", "config", message=self._mcp.problem)
        return self._mcp

    def named_servers(self, *, watched: bool = False) -> "McpListResult | None":
        """The MCP servers as they are, None where nobody names one. `watched` as in `report`."""
        return self.mcp().report(watched=watched) if self._mcp_named() else None

    def _server_tools(self, questions: Questions, scope: ToolScope) -> Sequence[Tool]:
        """The tools of MCP servers. A session that began without any stays so: hosts cache."""
        named = self._with_servers.setdefault(scope.session_id, self._mcp_named())
        return self.mcp().tools(scope, questions) if named else ()

    def _mcp_named(self) -> bool:
        if self._loaded.settings.mcp or self._more_servers:
            return True
        roots = self.workspace.roots if self._live.trusted() else ()
        return any((root.path / file).is_file() for root in roots for file in PROJECT_SERVER_FILES)

    def _system_prompt(self, agent: AgentProfile, mode: Mode) -> str:
        surroundings = Surroundings(
            roots=[str(root.path) for root in self.workspace.roots],
            platform=self._environment.platform,
            editor=self._editor_name,
            date=self._clock.timestamp()[:10],
            notes=self._notes.read(),
            skills=self.knowledge.skills.catalog().skills,
            language_servers=self._language.serves("definition"),
            commands=self._commands is not None and self._commands.trusted(),
        )
        return system_prompt(self._prompts, agent, mode, surroundings)

    def missing_key(self) -> ErrorInfo | None:
        """What keeps the model of the settings from being asked at all; None if it can be."""
        return self._model.missing(self._loaded.settings.model)

    def traits(self, name: str) -> ModelTraits:
        """The traits of the model that a name stands for now; the user's own window comes first.

        Reasoning goes back if any that may answer wants it; for others it is left out.
        """
        models, window = self._models(name), self._loaded.settings.context_window
        return ModelTraits(
            window=models[0].context_window if window is None else window,
            returns_thinking=any(model.returns_thinking for model in models),
        )

    def _models(self, name: str) -> Sequence[ModelProfile]:
        if self._chat is not None:
            return self._chat.models(name)
        return [target.model for target in self.providers.registry.targets(name)]

    async def _encode(self, request: ModelRequest) -> EncodedRequest:
        await self._model.loaded()
        assert self._chat is not None, "attached before the model is loaded"
        return EncodedRequest(*self._chat.encode(request))

    def _report_bug(self, where: str, error: BaseException) -> None:
        self._log.write("error", where, "bug", traceback="".join(format_exception(error)))


def _open_hosts() -> OpenHost:
    """What opens connections, all with one TLS context."""
    http = import_http_client()
    return partial(http.HttpClient, tls=http.system_tls())
