"""The composition root, second half: what turns need. Loaded on a thread after the process answers.

It can be built on that thread, because nothing here touches the event loop until it is attached.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kode_sidecar.agent.context.agents import (
    REVIEW_DOUBTER,
    REVIEW_READER,
    REVIEWER,
    SCOUT,
    AgentProfile,
)
from kode_sidecar.agent.context.compaction import compaction_texts
from kode_sidecar.agent.context.project_notes import REVIEW_FILE, NotesOnTheWay, ProjectNotes
from kode_sidecar.agent.context.reminders import editor_note, koding_note
from kode_sidecar.agent.context.surroundings import SystemPrompt, prompt_parts
from kode_sidecar.agent.context.system_prompt import Surroundings, system_prompt
from kode_sidecar.agent.edits import EditLocks
from kode_sidecar.agent.event_log import NewSession, OpenedSession
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions import Questions, UserQuestions
from kode_sidecar.agent.scouts.contracts import ScoutServices
from kode_sidecar.agent.sessions.repair import repair_session
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.agent.tools.run_command import TerminalRunner, no_terminal
from kode_sidecar.agent.turns import (
    Budgets,
    LearnedRates,
    RequestBody,
    SessionServices,
    ToolScope,
)
from kode_sidecar.agent.turns.toolset import CommandSetup, Toolbox, WebSetup
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Block, TextBlock
from kode_sidecar.core.kernel.contracts import ModelRequest, NewId, Sampling, Tool
from kode_sidecar.core.protocol.documents import (
    EditorContextParams,
    FileSearchParams,
    FileSearchResult,
)
from kode_sidecar.core.protocol.process import DoctorResult, ModelsListResult
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.settings import PROJECT_SERVER_FILES, LiveSettings, Settings
from kode_sidecar.core.settings.writing import config_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.git import GitProgram
from kode_sidecar.infrastructure.providers.models_report import models_report
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.file_search import search_files
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.servers.boot.budget_setup import SpendingToday, user_budget
from kode_sidecar.servers.boot.doctor import examine
from kode_sidecar.servers.boot.http_library import open_web_http
from kode_sidecar.servers.boot.job_agent import JobAgent
from kode_sidecar.servers.boot.system import Environment

if TYPE_CHECKING:
    from kode_sidecar.agent.verbs.calls import VerbCall
    from kode_sidecar.core.protocol.mcp import McpListResult
    from kode_sidecar.infrastructure.mcp.contracts import ServerConfig


class Agent(JobAgent):
    """Adds what a session needs to run to what a job needs."""

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
        in_terminal: TerminalRunner = no_terminal,
        locks: EditLocks | None = None,
    ) -> None:
        super().__init__(
            live,
            documents=documents,
            environment=environment,
            editor_name=editor_name,
            servers=servers,
            servers_changed=servers_changed,
        )
        settings = live.loaded.settings
        self._editor_name = editor_name
        self._editor_context = editor_context
        self.workspace.looked_at = lambda: editor_context().uri
        self._notes = ProjectNotes(self.workspace, live.trusted)
        self._review_notes = ProjectNotes(self.workspace, live.trusted, (REVIEW_FILE,))
        spending = SpendingToday(settings.storage_root, self._clock)
        self._budgets = Budgets(self._budgeted, user_budget(settings.budget), spending.date)
        self._with_servers: dict[str, bool] = {}
        self._language = language or LanguageServers()
        self.edit_locks = locks or EditLocks(self._language, settings.edit_timeout)
        self._commands = self._session_commands(in_terminal)
        self._services = self._build_services(settings, editor, environment.new_id)

    def follow_settings(self) -> None:
        """Apply process-wide settings that the editor has changed: locale and file encoding."""
        self._prompts.speak(self._loaded.settings.locale)
        self.workspace.decode_as(self._loaded.settings.file_encoding)

    def run_session(self, new: NewSession) -> Session:
        """Make a session that can run."""
        return Session(new, self._services)

    def repair_session(self, opened: OpenedSession) -> None:
        """Repair the files that an earlier process left; blocks. Raises KodeError `Storage`."""
        repair_session(opened, self._clock, self._services.new_id)

    async def search_files(self, params: FileSearchParams) -> FileSearchResult:
        """Answer `kode/file/search`."""
        return await search_files(self.workspace, params)

    async def doctor(self) -> DoctorResult:
        """Return the doctor's report."""
        return examine(
            self._loaded,
            position_encoding=self.workspace.position_encoding,
            roots=[str(root.path) for root in self.workspace.roots],
            servers=self.named_servers(),
            home=self._environment.home,
        )

    async def list_models(self) -> ModelsListResult:
        """Return the models to choose from. Raises KodeError `ConfigInvalid`."""
        if problems := self.providers.problems:
            raise KodeError("ConfigInvalid", "; ".join(problems))
        await self._model.loaded()
        assert self._chat is not None, "attached before the model is loaded"
        return await models_report(self._chat, self._retired, self._loaded.settings.model)

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
            sampling=self._sampling(),
            max_tokens=settings.max_tokens,
            questions=questions,
            silence_seconds=settings.http_silence_told,
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
            tools=self._toolbox(Questions(editor, new_id, questions), new_id).tools,
            call_verb=self._call_verb,
            hooks=self.hooks_of(self.workspace, self._live.trusted),
            log=self._log,
            provider=self.providers.provider_of,
            report_bug=self._report_bug,
            seeing_models=self.seeing_models,
            summary_model=settings.models.summaries,
            save_accepted=lambda: self._live.loaded.settings.save_accepted,
        )

    def _sampling(self) -> Sampling:
        loaded = self._loaded
        settings = loaded.settings
        return Sampling(settings.temperature, settings.top_p, chosen=loaded.chooses_sampling)

    async def _call_verb(self, blocks: Sequence[Block]) -> "VerbCall | None":
        """Return what a prompt calls; see `SessionServices.call_verb`."""
        first = next(iter(blocks), None)
        if not isinstance(first, TextBlock) or not first.text.startswith("/"):
            return None
        # Imported late: only who calls a verb pays for it.
        from kode_sidecar.agent.verbs.calls import EditorState, VerbCalls  # noqa: PLC0415

        state = EditorState(self.workspace, self._language, self._editor_context)
        knowledge = self.knowledge
        calls = VerbCalls(knowledge.verbs, knowledge.skills.catalog, self.workspace, state)
        return await calls.called(blocks)

    def _toolbox(self, questions: Questions, new_id: NewId) -> Toolbox:
        return Toolbox(
            workspace=self.workspace,
            ripgrep=Ripgrep(find_ripgrep()),
            skills=self.knowledge.skills,
            memory=self.knowledge.memory,
            memory_scope=self.knowledge.memory_scope,
            commands=self._commands,
            web=self._session_web(),
            servers=partial(self._server_tools, questions),
            around=self._notes_around,
            language=self._language,
            questions=questions,
            scouts=self._scouts(new_id, SCOUT),
            readers=self._scouts(new_id, REVIEW_READER),
            doubters=self._scouts(new_id, REVIEW_DOUBTER),
            git=GitProgram(os.environ, self._environment.found),
        )

    def _notes_around(self, scope: ToolScope) -> Callable[[Tool], Tool]:
        """Return what adds the notes of folders to the results of a session's tools."""
        return NotesOnTheWay(self._notes, self._prompts, lambda: scope.turn().shown).around

    def _scouts(self, new_id: NewId, agent: AgentProfile) -> ScoutServices:
        return ScoutServices(
            model=self._budgets.model,
            clock=self._clock,
            new_id=new_id,
            system_prompt=lambda: self._system_prompt(agent, "plan").text,
            report_bug=self._report_bug,
            traits=self.traits,
            sampling=self._sampling(),
            own_model=self._loaded.settings.models.scouts if agent is SCOUT else None,
        )

    def _session_commands(self, in_terminal: TerminalRunner) -> CommandSetup | None:
        """Return the command setup; None where commands are off or their settings are invalid.

        Invalid settings are logged here and reported by the doctor.
        """
        settings = self._loaded.settings
        if settings.commands.mode == "off":
            return None
        # Imported late: users who switched commands off do not pay for it.
        from kode_sidecar.servers.boot.command_setup import session_commands  # noqa: PLC0415

        environ = {**self._loaded.variables, **os.environ}
        try:
            outside = in_terminal, self._environment.found
            return session_commands(self._live, self.workspace, environ, *outside)
        except KodeError as error:
            self._log.write("error", "commands", "config", message=error.message)
            return None

    def _session_web(self) -> WebSetup | None:
        # Imported late: users who switched the web off do not pay for it.
        from kode_sidecar.servers.boot.web_setup import session_web  # noqa: PLC0415

        environ = {**self._loaded.variables, **os.environ}
        open_http = self._environment.hosts(lambda: open_web_http)
        return session_web(self._live, config_path(environ), open_http)

    def named_servers(self, *, watched: bool = False) -> "McpListResult | None":
        """Return the state of the MCP servers, None if none is named. `watched` as in `report`."""
        return self.mcp().report(watched=watched) if self._mcp_named() else None

    def _server_tools(self, questions: Questions, scope: ToolScope) -> Sequence[Tool]:
        """Return the tools of MCP servers. A session that began without servers never gets any:
        new tools would invalidate the host's cache.
        """
        named = self._with_servers.setdefault(scope.session_id, self._mcp_named())
        return self.mcp().tools(scope, questions) if named else ()

    def _mcp_named(self) -> bool:
        if self._loaded.settings.mcp or self._more_servers:
            return True
        roots = self.workspace.roots if self._live.trusted() else ()
        return any(
            os.path.isfile(root.path / file) for root in roots for file in PROJECT_SERVER_FILES
        )

    def _system_prompt(self, agent: AgentProfile, mode: Mode) -> SystemPrompt:
        reviews = agent.prompt_file in (REVIEWER.prompt_file, REVIEW_READER.prompt_file)
        surroundings = Surroundings(
            roots=[str(root.path) for root in self.workspace.roots],
            platform=self._environment.platform,
            editor=self._editor_name,
            date=self._budgets.date(),
            notes=(*self._notes.read(), *(self._review_notes.read() if reviews else ())),
            skills=self.knowledge.skills.catalog().for_models,
            language_servers=self._language.serves("definition"),
            commands=self._commands is not None,
            forbidden=self._loaded.settings.commands.mode == "off",
        )
        about = self._prompts, agent, mode, surroundings
        return SystemPrompt(system_prompt(*about), prompt_parts(*about))

    def missing_key(self) -> ErrorInfo | None:
        """Return why the configured model cannot be asked; None if it can."""
        return self._model.missing(self._loaded.settings.model)

    async def _encode(self, request: ModelRequest) -> RequestBody:
        await self._model.loaded()
        assert self._chat is not None, "attached before the model is loaded"
        return RequestBody(*self._chat.encode(request))
