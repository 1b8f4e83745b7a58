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

from kode_sidecar.boot.doctor import examine
from kode_sidecar.boot.knowledge import Knowledge, open_memory_http
from kode_sidecar.boot.provider_setup import set_up_providers
from kode_sidecar.boot.system import Environment
from kode_sidecar.context.agents import SCOUT, AgentProfile
from kode_sidecar.context.compaction import compaction_texts
from kode_sidecar.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.context.reminders import EditorNote, editor_note, koding_note
from kode_sidecar.context.system_prompt import ProjectNotes, Surroundings, system_prompt
from kode_sidecar.edits import EditLocks
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import NewSession, OpenedSession
from kode_sidecar.event_log.editor_port import EditorPort
from kode_sidecar.kernel.contracts import ModelRequest, NewId
from kode_sidecar.permissions import Questions, UserQuestions
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.protocol.process import DoctorResult, ModelsListResult
from kode_sidecar.protocol.session import Mode
from kode_sidecar.providers.chat_client import ChatClient, DeferredClient
from kode_sidecar.providers.endpoint import OpenHost
from kode_sidecar.providers.memory_http import HttpMemory, MemoryHost
from kode_sidecar.providers.models_report import models_report
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.rate_limiter import RetryPolicy
from kode_sidecar.records.json_log import JsonLog, LogFiles, Redaction
from kode_sidecar.records.retired_models import RetiredModels
from kode_sidecar.scouts.contracts import ScoutServices
from kode_sidecar.server import import_http_client
from kode_sidecar.sessions.repair import repair_session
from kode_sidecar.sessions.session import Session
from kode_sidecar.settings import LoadedSettings, Settings
from kode_sidecar.turns import EncodedRequest, LearnedRates, SessionServices
from kode_sidecar.turns.toolset import Toolbox
from kode_sidecar.workspace.documents import Documents
from kode_sidecar.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.workspace.workspace import Workspace

if TYPE_CHECKING:
    from kode_sidecar.headless_run import RunServices, WireRuns


class Agent:
    """The model, the tools and everything else a session needs to run."""

    def __init__(
        self,
        loaded: LoadedSettings,
        *,
        editor: EditorPort,
        editor_name: str,
        documents: Documents,
        editor_context: Callable[[], EditorContextParams],
        environment: Environment,
    ) -> None:
        settings = loaded.settings
        self._loaded = loaded
        self._providers = set_up_providers(loaded)
        self._editor_name = editor_name
        self._editor_context = editor_context
        self._environment = environment
        self._clock = clock = environment.clock
        self._log = JsonLog(
            LogFiles(settings.log_dir),
            clock.timestamp,
            Redaction(
                [settings.api_key, settings.memory_key, *self._providers.keys()],
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
        self.knowledge = Knowledge(
            settings, self._prompts, lambda: self.workspace.roots, clock, environment.new_id
        )
        self._notes = ProjectNotes(self.workspace, lambda: settings.trusted)
        self._model = DeferredClient(self._providers.missing)
        self._chat: ChatClient | None = None
        self._runs: WireRuns | None = None
        self._memories: dict[MemoryHost, HttpMemory] = {}
        self._retired = RetiredModels(settings.storage_root)
        self._services = self._build_services(settings, editor, environment.new_id)

    def run_session(self, new: NewSession) -> Session:
        """Make a session that can run."""
        return Session(new, self._services)

    def repair_session(self, opened: OpenedSession) -> None:
        """Put the files of an earlier process in order; blocks. Raises KodeError `Storage`."""
        repair_session(opened, self._clock, self._services.new_id)

    def open_model(self) -> ChatClient:
        """Import the HTTP library, build the client and its TLS context. In a thread."""
        settings = self._loaded.settings
        environment = self._environment
        chat = ChatClient(
            self._providers.registry,
            environment.hosts(_open_hosts),
            retired=self._retired,
            retry=RetryPolicy(environment.random, budget=settings.http_retry_budget),
            now=environment.clock.monotonic,
        )
        with suppress(KodeError):  # told again, with the reason, when a turn asks
            chat.warm(settings.model)
        return chat

    def attach_model(self, chat: ChatClient) -> None:
        """The model can be asked; on the loop."""
        self._chat = chat
        self._model.attach(chat)

    def runs(self) -> "WireRuns":
        """The runs that the editor asks for. Raises KodeError `ConfigInvalid`."""
        from kode_sidecar.headless_run import WireRuns  # noqa: PLC0415

        if self._runs is None:
            self._runs = WireRuns(self.run_services())
        return self._runs

    def run_services(self) -> "RunServices":
        """What headless runs need. Raises KodeError `ConfigInvalid` for settings that are wrong."""
        # Late: only who starts a run pays for that room and for PyYAML.
        from kode_sidecar.headless_run import RunServices  # noqa: PLC0415

        self._loaded.require_valid()
        settings, services = self._loaded.settings, self._services
        return RunServices(
            storage_root=settings.storage_root,
            clock=self._clock,
            new_id=services.new_id,
            redaction=Redaction([settings.api_key, settings.memory_key, *self._providers.keys()]),
            prompts=self._prompts,
            environ={**self._loaded.variables, **os.environ},
            ripgrep=Ripgrep(find_ripgrep()),
            model=self._model,
            target=lambda name: self._providers.registry.targets(name)[0],
            window=self._context_window,
            returns_thinking=self._returns_thinking,
            limit_instruction=services.limit_instruction,
            silence_told=settings.http_silence_told,
            open_memory=self._open_memory,
            report_bug=self._report_bug,
            file_encoding=settings.file_encoding,
        )

    def _open_memory(self, host: MemoryHost) -> HttpMemory:
        """The memory of a service, one for all runs that use it; closed with this agent."""
        host = replace(host, proxy=self._loaded.settings.proxy)
        if host not in self._memories:
            self._memories[host] = HttpMemory(host, open_memory_http)
        return self._memories[host]

    async def doctor(self) -> DoctorResult:
        """Return the doctor's report."""
        return examine(
            self._loaded,
            position_encoding=self.workspace.position_encoding,
            roots=[str(root.path) for root in self.workspace.roots],
        )

    async def list_models(self) -> ModelsListResult:
        """What may be chosen as model. Raises KodeError `ConfigInvalid`."""
        if problems := self._providers.problems:
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
        if self._chat is not None:
            await self._chat.aclose()
        await self.knowledge.close()
        self._log.close()

    def _build_services(
        self, settings: Settings, editor: EditorPort, new_id: NewId
    ) -> SessionServices:
        questions = UserQuestions(settings.permission_timeout)
        return SessionServices(
            model=self._model,
            editor=editor,
            workspace=self.workspace,
            clock=self._clock,
            new_id=new_id,
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            questions=questions,
            silence_told=settings.http_silence_told,
            editor_note=self._editor_note,
            system_prompt=self._system_prompt,
            koding_note=partial(koding_note, self._prompts),
            recall=self.knowledge.recall,
            compaction_texts=partial(compaction_texts, self._prompts),
            context_window=self._context_window,
            returns_thinking=self._returns_thinking,
            rates=LearnedRates(),
            encode=self._encode,
            limit_instruction=self._prompts.read("tool_limit"),
            edit_locks=EditLocks(),
            toolset=self._toolbox(settings, Questions(editor, new_id, questions), new_id).tools,
            log=self._log,
            provider=self._provider,
            report_bug=self._report_bug,
        )

    def _toolbox(self, settings: Settings, questions: Questions, new_id: NewId) -> Toolbox:
        return Toolbox(
            workspace=self.workspace,
            ripgrep=Ripgrep(find_ripgrep()),
            skills=self.knowledge.skills.catalog,
            memory=self.knowledge.memory,
            memory_scope=self.knowledge.memory_scope,
            questions=questions,
            scouts=ScoutServices(
                model=self._model,
                clock=self._clock,
                new_id=new_id,
                system_prompt=lambda: self._system_prompt(SCOUT, "plan"),
                report_bug=self._report_bug,
                window=self._context_window,
                returns_thinking=self._returns_thinking,
                temperature=settings.temperature,
                top_p=settings.top_p,
            ),
        )

    def _system_prompt(self, agent: AgentProfile, mode: Mode) -> str:
        surroundings = Surroundings(
            roots=[str(root.path) for root in self.workspace.roots],
            platform=self._environment.platform,
            editor=self._editor_name,
            date=self._clock.timestamp()[:10],
            notes=self._notes.read(),
            skills=self.knowledge.skills.catalog().skills,
        )
        return system_prompt(self._prompts, agent, mode, surroundings)

    def _context_window(self, model: str) -> int | None:
        """The window of the model that a name stands for now; the user's own word comes first."""
        given = self._loaded.settings.context_window
        return self._models(model)[0].context_window if given is None else given

    def _returns_thinking(self, model: str) -> bool:
        """Of any that may answer: what one of them has no use for is left out for that one."""
        return any(one.returns_thinking for one in self._models(model))

    def _provider(self, model: str) -> str:
        return self._providers.registry.targets(model)[0].config.name

    def _models(self, name: str) -> Sequence[ModelProfile]:
        if self._chat is not None:
            return self._chat.models(name)
        return [target.model for target in self._providers.registry.targets(name)]

    async def _encode(self, request: ModelRequest) -> EncodedRequest:
        await self._model.loaded()
        assert self._chat is not None, "attached before the model is loaded"
        return EncodedRequest(*self._chat.encode(request))

    def _editor_note(self) -> EditorNote | None:
        return editor_note(self._editor_context(), self.workspace)

    def _report_bug(self, where: str, error: BaseException) -> None:
        self._log.write("error", where, "bug", traceback="".join(format_exception(error)))


def _open_hosts() -> OpenHost:
    """What opens connections, all with one TLS context."""
    http = import_http_client()
    return partial(http.HttpClient, tls=http.system_tls())
