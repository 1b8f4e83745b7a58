"""Sets up the MCP servers of settings, editor and project. Loaded only if some are named."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import convert

from kode_sidecar.agent.permissions import AskUserParams, Questions
from kode_sidecar.agent.turns import ToolScope
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.kernel.contracts import Tool, ToolCall
from kode_sidecar.core.protocol import mcp as wire
from kode_sidecar.core.protocol.process import Empty
from kode_sidecar.core.settings import LiveSettings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.programs import (
    command_environment,
    find_program,
    search_folders,
)
from kode_sidecar.infrastructure.mcp import (
    Approvals,
    McpHost,
    ProjectServers,
    RememberedLists,
    Server,
    Servers,
    User,
    check_arguments,
    kept_login,
    log_in,
    mcp_tools,
    prompt_arguments,
    prompt_blocks,
    resource_blocks,
    user_servers,
)
from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    START,
    TOKENS,
    Access,
    McpPrompt,
    ServerConfig,
)
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.servers.boot.system import Environment

_ToolViews = tuple[wire.McpToolView, ...]


class McpServers:
    """Offers the servers of an agent to turns, and lists, starts and approves them for the wire.

    A server of the client replaces the user's of that name, the user's replaces a project's.
    `files` are the names of the project files; `outside` is where programs and hosts answer.
    Invalid settings do not raise: they become `problem`, to be reported.
    `changed` is called when a server has changed, once somebody has listed them.
    """

    def __init__(
        self,
        live: LiveSettings,
        workspace: Workspace,
        files: Sequence[str],
        outside: Environment,
        more: Sequence[ServerConfig] = (),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        loaded, trusted = live.loaded, live.trusted
        variables: Mapping[str, str] = {**os.environ, **loaded.variables}
        self._trusted = trusted
        self._project = ProjectServers(workspace, files, trusted, variables)
        wrong: list[str] = []
        own: dict[str, ServerConfig] = {}
        try:
            found_in = user_servers(loaded.settings.mcp, variables, problem=wrong.append)
            own = {one.name: one for one in found_in}
        except KodeError as error:
            wrong.append(error.message)
        self.problem = " ".join(wrong)
        path = os.environ.get("PATH", os.defpath)

        def roots() -> list[Path]:
            return [root.path for root in workspace.roots]

        def found(name: str) -> str:
            if os.path.isabs(name):
                return name
            return str(find_program(name, search_folders(path, roots()), roots()))

        def access(config: ServerConfig) -> Access:
            login = kept_login(config, folder / TOKENS)
            return outside.server_access(config.name, login) if config.url else NO_ACCESS

        folder = loaded.settings.storage_root / "mcp"

        self._folder, self._now = folder, outside.clock.monotonic
        self._changed = changed
        self._listed = False
        self._configs = own | {one.name: one for one in more}
        # Called once for all conversations, and once for each run.
        self._open = partial(
            Servers,
            host=McpHost(roots=lambda: [root.as_uri() for root in roots()]),
            remembered=RememberedLists(folder),
            environment=command_environment(os.environ, path, ""),
            find=lambda name: outside.found(name, lambda: found(name)),
            now=self._now,
            access=access,
        )
        self._servers = self._open(
            self._configs.values(),
            changed=self._report_change,
            project=self._project.read,
            approvals=Approvals(folder / "approved.json"),
            problems=self._problems,
        )

    def tools(self, scope: ToolScope, questions: Questions) -> Sequence[Tool]:
        """Return the tools offered to a turn; the session's own permissions ask the user.

        `questions` asks the user what a server wants to know in the middle of a call.
        """

        async def ask(call: ToolCall, operation: str, title: str, subject: str, said: str) -> bool:
            reason = "A tool of an MCP server may do anything its program can."
            if operation == START:
                reason = "A file of this project names it. A yes is kept for exactly this entry."
            return await scope.change_sets.permissions.ask(
                call, title, subject, operation=operation, reason=reason, diff=lambda: said
            )

        async def choose(
            call: ToolCall, question: str, choices: Sequence[str], several: bool
        ) -> Sequence[str] | None:
            params = AskUserParams(question, list(choices), several)
            answer = await questions.ask(params, call, scope.emit)
            return None if answer is None else answer.choices

        def notice(text: str) -> None:
            turn_id = scope.turn().turn_id
            scope.emit(Notice(turn_id=turn_id, code="ServerFailed", message=text, level="warning"))

        self._servers.refresh()
        return mcp_tools(self._servers, scope.session_id, User(ask, choose, notice))

    def for_run(self, names: Sequence[str]) -> tuple[Tool, Callable[[], Awaitable[None]]]:
        """Return the tool for a run's servers, and what closes them. The policy decides, no user.

        Raises KodeError `ConfigInvalid` for a name that the user's settings do not know.
        """
        unknown = [name for name in names if name not in self._configs]
        if unknown:
            known = ", ".join(self._configs) or "none"
            text = f"`tools.servers`: your settings have no MCP server {unknown[0]!r} ({known})."
            raise KodeError("ConfigInvalid", text, details={"field": "tools.servers"})
        servers = self._open([replace(self._configs[name], direct=False) for name in names])
        (tool,) = mcp_tools(servers, "", User(_yes, _nobody, lambda _: None))
        return tool, servers.close

    async def list(self) -> wire.McpListResult:
        """Answer `kode/mcp/list`."""
        return self.report(watched=True)

    def _report_change(self) -> None:
        if self._listed:
            self._changed()

    def report(self, *, watched: bool = False) -> wire.McpListResult:
        """Return the servers' state; starts none. `watched`: report changes from now on."""
        self._listed = self._listed or watched
        self._servers.refresh()
        return wire.McpListResult(
            servers=tuple(_view(server) for server in self._servers.all()),
            problems=self._problems(),
            project_trusted=self._trusted(),
        )

    def _problems(self) -> tuple[str, ...]:
        own = [self.problem] if self.problem else []
        return (*own, *self._project.problems)

    async def decide(self, params: wire.McpDecideParams) -> Empty:
        """Answer `kode/mcp/decide`. Raises KodeError `NotFound`, `StaleBase`, `Storage`."""
        self._servers.refresh()
        self._servers.decide(params.name, params.fingerprint, allowed=params.allowed)
        return Empty()

    async def start(self, params: wire.McpStartParams) -> wire.McpServerView:
        """Answer `kode/mcp/start`. Raises KodeError `NotFound`, `ToolFailed`."""
        self._servers.refresh()
        server = self._servers.get(params.name)
        await server.listing(again=True)
        return _view(server)

    async def read(self, params: wire.McpReadParams) -> wire.McpBlocks:
        """Answer `kode/mcp/read`. Raises KodeError `NotFound`, `ToolFailed`."""
        self._servers.refresh()
        answer = await self._servers.get(params.name).read_resource(params.uri)
        return wire.McpBlocks(resource_blocks(params.name, params.uri, answer))

    async def prompt(self, params: wire.McpPromptParams) -> wire.McpBlocks:
        """Answer `kode/mcp/prompt`. Raises KodeError `NotFound`, `InvalidParams`, `ToolFailed`."""
        self._servers.refresh()
        server = self._servers.get(params.name)
        known = server.known()
        if known is None or all(one.name != params.prompt for one in known.prompts):
            known = await server.listing(again=True)
        prompt = next((one for one in known.prompts if one.name == params.prompt), None)
        if prompt is None:
            text = f"The MCP server {params.name} has no prompt {params.prompt!r}."
            raise KodeError("NotFound", text)
        named = {name: str(value) for name, value in params.arguments.items()}
        given = {**prompt_arguments(prompt, params.words), **named}
        check_arguments(prompt, given)
        return wire.McpBlocks(prompt_blocks(params.name, await server.prompt(prompt.name, given)))

    async def log_in(self, name: str, show: Callable[[str], Awaitable[None]]) -> int:
        """Log in to a server of the user or the client; return how many tools it has.

        `show` has the user open an address. Raises KodeError `NotFound`, `ToolFailed`.
        """
        config = self._configs.get(name)
        if config is None or not config.url:
            text = f"No server of yours at an address is called {name}."
            raise KodeError("NotFound", text)
        return await log_in(config, self._folder / TOKENS, show, self._now)

    async def close(self) -> None:
        """End all servers."""
        await self._servers.close()


async def _yes(
    _call: ToolCall, _operation: str, _title: str, _subject: str, _reported: str
) -> bool:
    return True


async def _nobody(
    _call: ToolCall, _question: str, _choices: Sequence[str], _several: bool
) -> Sequence[str] | None:
    return None


def _view(server: Server) -> wire.McpServerView:
    config, known, report = server.config, server.known(), server.report()
    allowed = server.allowed()
    state = report.state if allowed else "unapproved" if allowed is None else "refused"
    return wire.McpServerView(
        name=config.name,
        source=config.source,
        state=state,
        fingerprint=config.fingerprint,
        tools=convert(known.tools if known else (), _ToolViews, from_attributes=True),
        command=() if config.url else config.shown or config.argv,
        url=config.where if config.url else "",
        folder=config.folder,
        variables=config.borrowed or tuple(sorted(config.environment)),
        version=report.version,
        last_error=report.last_error,
        stderr_tail=report.stderr_tail,
        resources=tuple(
            wire.McpResourceView(
                uri=one.uri, name=one.name, description=one.description, media_type=one.mime_type
            )
            for one in (known.resources if known else ())
        ),
        prompts=tuple(_prompt_view(one) for one in (known.prompts if known else ())),
        templates=tuple(
            wire.McpTemplateView(
                uri_template=one.uri_template,
                name=one.name,
                description=one.description,
                media_type=one.mime_type,
            )
            for one in (known.templates if known else ())
        ),
    )


def _prompt_view(prompt: McpPrompt) -> wire.McpPromptView:
    return wire.McpPromptView(
        name=prompt.name,
        description=prompt.description,
        arguments=tuple(
            wire.McpPromptArgument(
                name=str(one.get("name") or ""),
                description=str(one.get("description") or ""),
                required=one.get("required") is True,
            )
            for one in prompt.arguments
        ),
    )
