"""What jobs and sessions need: the model, the user's skills and memory, tool servers.

It can be built on a thread, because nothing here touches the event loop until it is attached.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING

from kode_sidecar import __version__
from kode_sidecar.agent.context.budget import BudgetedModel
from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.event_log import LoggedModel
from kode_sidecar.agent.sessions import SessionFolders
from kode_sidecar.agent.turns import Budgets, FindHooks, Hooks, HookScope, NoHooks
from kode_sidecar.core.settings import (
    PROJECT_HOOK_FILES,
    PROJECT_SERVER_FILES,
    LiveSettings,
    LoadedSettings,
    describe,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.chat_client import ChatClient, DeferredClient
from kode_sidecar.infrastructure.providers.memory_http import HttpMemory, MemoryHost
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.rate_limiter import RetryPolicy
from kode_sidecar.infrastructure.records.host_models import KnownHosts, SavedRetiredModels
from kode_sidecar.infrastructure.records.json_log import JsonLog, LogFiles, Redaction
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.servers.boot.budget_setup import SpendingToday, day_only, user_budget
from kode_sidecar.servers.boot.http_library import open_hosts
from kode_sidecar.servers.boot.knowledge import Knowledge
from kode_sidecar.servers.boot.provider_setup import likely_prices, set_up_providers
from kode_sidecar.servers.boot.state_folder import session_folders
from kode_sidecar.servers.boot.system import Environment

if TYPE_CHECKING:
    from kode_sidecar.infrastructure.mcp.contracts import ServerConfig
    from kode_sidecar.jobs.run import RunServices, WireRuns
    from kode_sidecar.servers.boot.hook_setup import UserHooks
    from kode_sidecar.servers.boot.mcp_setup import McpServers


class JobAgent:
    """Holds all that a job needs to run: model, knowledge, tool servers. `Agent` adds sessions."""

    def __init__(
        self,
        live: LiveSettings,
        *,
        documents: Documents,
        environment: Environment,
        editor_name: str = "",
        servers: "Sequence[ServerConfig]" = (),
        servers_changed: Callable[[], None] = lambda: None,
    ) -> None:
        loaded, settings = live.loaded, live.loaded.settings
        self._live = live
        self.providers = set_up_providers(loaded)
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
        shown = {name: value for name, value, _ in describe(loaded)}
        self._log.write("info", "boot", "start", version=__version__, settings=shown)
        own_prompts = settings.storage_root / "prompts"
        self._prompts = PromptFiles(find_prompts(), settings.locale, own_prompts)
        self.workspace = Workspace(
            [],
            documents.position_encoding,
            documents=documents,
            file_encoding=settings.file_encoding,
            own_files=[settings.storage_root],
            counts_lone_cr=editor_name.startswith("Visual Studio Code"),
            several_projects=True,
        )
        self.knowledge = Knowledge(live, self._prompts, lambda: self.workspace.roots, environment)
        self._model = DeferredClient(self.providers.missing)
        self._budgeted = BudgetedModel(
            LoggedModel(self._model, self._log, clock),
            lambda name: likely_prices(self._models(name)),
            self._spent_today,
        )
        self._chat: ChatClient | None = None
        self._own_chat: ChatClient | None = None
        self._runs: WireRuns | None = None
        self._memories: dict[MemoryHost, HttpMemory] = {}
        self._retired = SavedRetiredModels(settings.storage_root)
        self._mcp: McpServers | None = None
        self._more_servers = servers
        self._servers_changed = servers_changed

    @property
    def _loaded(self) -> LoadedSettings:
        return self._live.loaded

    def open_model(self) -> ChatClient:
        """Import the HTTP library, build the client and its TLS context. Call it on a thread."""
        settings, environment = self._loaded.settings, self._environment
        chat = ChatClient(
            self.providers.registry,
            environment.hosts(open_hosts),
            retired=self._retired,
            hosts=KnownHosts(settings.storage_root) if environment.remembers_hosts else None,
            retry=RetryPolicy(environment.random, budget=settings.http_retry_budget),
            now=self._clock.monotonic,
        )
        with suppress(KodeError):  # reported with its reason when a turn asks
            chat.warm(settings.model)
        self._own_chat = chat
        return chat

    def attach_model(self, chat: ChatClient) -> None:
        """Let requests go out through `chat`, of this agent or another. Call it on the loop."""
        self._chat = chat
        self._model.attach(chat)

    def runs(self) -> "WireRuns":
        """Return the runs that the editor asks for. Raises KodeError `ConfigInvalid`."""
        from kode_sidecar.jobs.run import WireRuns  # noqa: PLC0415

        if self._runs is None:
            self._runs = WireRuns(self.run_services())
        return self._runs

    def run_services(self) -> "RunServices":
        """Return what headless runs need. Raises KodeError `ConfigInvalid` for bad settings."""
        # Imported late: only users who start a run pay for that package and PyYAML.
        from kode_sidecar.jobs.run import RunServices  # noqa: PLC0415

        self._loaded.require_valid()
        settings = self._loaded.settings
        spending = SpendingToday(settings.storage_root, self._clock)
        return RunServices(
            storage_root=settings.storage_root,
            clock=self._clock,
            new_id=self._environment.new_id,
            redaction=Redaction([*self._loaded.keys, *self.providers.keys()]),
            prompts=self._prompts,
            environ={**self._loaded.variables, **os.environ},
            ripgrep=Ripgrep(find_ripgrep()),
            model=LoggedModel(self._model, self._log, self._clock),
            open_sessions=self._open_run_sessions,
            budgets=Budgets(self._budgeted, day_only(user_budget(settings.budget)), spending.date),
            log=self._log,
            provider=self.providers.provider_of,
            target=lambda name: self.providers.registry.targets(name)[0],
            traits=self.traits,
            limit_instruction=self._prompts.read("tool_limit"),
            silence_seconds=settings.http_silence_told,
            open_memory=self._open_memory,
            report_bug=self._report_bug,
            file_encoding=settings.file_encoding,
            hooks=lambda workspace: self.hooks_of(workspace, lambda: False),
            open_servers=lambda names: self.mcp().for_run(names),
        )

    def hooks_of(self, workspace: Workspace, trusted: Callable[[], bool]) -> FindHooks:
        """Return what finds the hooks of sessions in these folders; theirs only if `trusted`."""
        made: list[UserHooks] = []

        def find(scope: HookScope) -> Hooks:
            roots = [root.path for root in workspace.roots] if trusted() else []
            if not self._loaded.settings.hooks and not _names_hooks(roots):
                return NoHooks()
            # Imported late: only who has hooks pays for them.
            from kode_sidecar.servers.boot.hook_setup import UserHooks  # noqa: PLC0415
            from kode_sidecar.servers.boot.project_hooks import ProjectHooks  # noqa: PLC0415

            if not made:
                environ = {**self._loaded.variables, **os.environ}
                written, found = self._loaded.settings.hooks, self._environment.found
                project = ProjectHooks(self._loaded.settings.storage_root)
                services = found, project, trusted
                made.append(UserHooks(written, workspace, environ, *services))
            return made[0].of_session(scope)

        return find

    def _open_run_sessions(self, saver: Saver) -> SessionFolders:
        return session_folders(self._loaded.settings, saver, self._environment, tuple)

    def _open_memory(self, host: MemoryHost) -> HttpMemory:
        """Return the memory of a service, shared by all runs; closed with this agent."""
        host = replace(host, proxy=self._loaded.settings.proxy)
        if host not in self._memories:
            self._memories[host] = HttpMemory(host, self.knowledge.open_http)
        return self._memories[host]

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

    def mcp(self) -> "McpServers":
        """Return the MCP servers of the user, the editor and the project."""
        # Imported late: only users who have servers pay for that package.
        from kode_sidecar.servers.boot.mcp_setup import McpServers  # noqa: PLC0415

        if self._mcp is None:
            more = self._environment, self._more_servers, self._servers_changed
            self._mcp = McpServers(self._live, self.workspace, PROJECT_SERVER_FILES, *more)
            if self._mcp.problem:
                self._log.write("error", "mcp", "config", message=self._mcp.problem)
        return self._mcp

    def traits(self, name: str) -> ModelTraits:
        """Return the traits of the model that `name` means now; the user's window takes precedence.

        Reasoning is returned if any model that may answer wants it; others get it left out.
        """
        models, window = self._models(name), self._loaded.settings.context_window
        return ModelTraits(
            window=models[0].context_window if window is None else window,
            returns_thinking=any(model.returns_thinking for model in models),
            late_tools=bool(models[0].late_tools),
            effort_in_prefix=models[0].dialect in ("kimi", "anthropic_messages"),
            sees=any(model.images for model in models),
            caches_for_an_hour=models[0].caches_for_an_hour,
        )

    def seeing_models(self) -> Sequence[str]:
        """Return the models that take pictures, of providers that have a key."""
        ready = [one for one in self.providers.registry.providers.values() if not one.missing()]
        models = ((one.name, model) for one in ready for model in one.profile.models)
        return [f"{name}/{model.id}" for name, model in models if model.images]

    def _models(self, name: str) -> Sequence[ModelProfile]:
        if self._chat is not None:
            return self._chat.models(name)
        return [target.model for target in self.providers.registry.targets(name)]

    async def _spent_today(self, currency: str) -> float:
        # Imported late: only users with a daily budget pay for the code that reads sessions.
        from kode_sidecar.servers.boot.budget_setup import SpendingToday  # noqa: PLC0415

        return await SpendingToday(self._loaded.settings.storage_root, self._clock)(currency)

    def _report_bug(self, where: str, error: BaseException) -> None:
        self._log.write("error", where, "bug", traceback="".join(format_exception(error)))


def _names_hooks(roots: Sequence[Path]) -> bool:
    """Return whether one of these folders may have hooks; opens nothing."""
    return any(os.path.isfile(root / file) for root in roots for file in PROJECT_HOOK_FILES)
