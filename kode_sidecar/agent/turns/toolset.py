"""The tools on offer to the main agent, and `explore`, which sends out scouts."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.memory import Memory
from kode_sidecar.agent.context.skills import SkillLibrary
from kode_sidecar.agent.permissions import (
    CommandPermission,
    Questions,
    UserCommands,
    UserWeb,
    WebPermission,
    ask_user_tool,
)
from kode_sidecar.agent.scouts import MAX_TASKS, Dispatch, as_json
from kode_sidecar.agent.scouts.contracts import (
    ExploreReport,
    ExploreRequest,
    ExploreTask,
    ScoutServices,
)
from kode_sidecar.agent.tools.background import (
    command_output_tool,
    command_stop_tool,
    command_wait_tool,
)
from kode_sidecar.agent.tools.changed_files import ChangeReader
from kode_sidecar.agent.tools.changes import ChangesView, changes_tool
from kode_sidecar.agent.tools.editor_lookup import EditorLookup, editor_lookup_tool
from kode_sidecar.agent.tools.knowledge import About, load_skill_tool, write_memory_tool
from kode_sidecar.agent.tools.list_files import list_files_tool
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.propose_file import propose_file_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.agent.tools.rename_symbol import rename_symbol_tool
from kode_sidecar.agent.tools.run_command import CommandPlace, run_command_tool
from kode_sidecar.agent.tools.search_code import search_code_tool
from kode_sidecar.agent.tools.update_plan import update_plan_tool
from kode_sidecar.agent.tools.web_fetch import WebPlace, web_fetch_tool
from kode_sidecar.agent.turns.services import OfferTools, ToolScope
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.agent_tool import TOOL_BY_NAME, AgentTool, ToolName
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.kernel import tool_specs
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome, tool_failure
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.git import GitProgram
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace

if TYPE_CHECKING:  # loaded with the first of their kind
    from kode_sidecar.agent.reviews import SessionFindings
    from kode_sidecar.infrastructure.providers.endpoint import Host

_STATES = {"done": "reported", "timed_out": "timed out", "failed": "failed", "refused": "refused"}


class ExploreParams(Struct, forbid_unknown_fields=True):
    """Send out scouts that read the project for you, side by side, one for each task.

    Only reports come back, so ask for what you would otherwise have to read a lot for: where
    something is done, how a part works, what depends on it. A report
    that is not `done` is partial.
    """

    tasks: Annotated[
        list[ExploreTask],
        Meta(min_length=1, max_length=MAX_TASKS),
    ]


def explore_tool(
    dispatch: Dispatch,
    scope: ToolScope,
    reading: Callable[[], Sequence[Tool]],
    text_of: Callable[[str], str],
) -> Tool:
    """The tool of one session. Scouts get `reading`; `text_of` a path is what they see of it."""

    async def run(params: ExploreParams, call: ToolCall) -> ToolOutcome:
        request = _request(scope, call, reading(), text_of)
        return _outcome(await dispatch.explore(params.tasks, request))

    return Tool("explore", ExploreParams, run, read_only=True, kind="search", card=_card)


def _request(
    scope: ToolScope, call: ToolCall, tools: Sequence[Tool], text_of: Callable[[str], str]
) -> ExploreRequest:
    turn = scope.turn()
    return ExploreRequest(
        call=call,
        model=turn.model,
        tools=tools,
        text_of=text_of,
        emit=scope.emit,
        spend=turn.totals.add_message,
        open_log=scope.records.open_scout_log,
        save_artifact=scope.save_artifact,
        run_call=scope.run_call,
    )


def _card(params: ExploreParams) -> CallCard:
    return CallCard("Explore: " + "; ".join(task.title for task in params.tasks))


def _outcome(reports: Sequence[ExploreReport]) -> ToolOutcome:
    if all(report.state == "refused" for report in reports):
        return tool_failure(failure("Overloaded", reports[0].note))
    counted = Counter(_STATES[report.state] for report in reports)
    said = ", ".join(f"{count} {word}" for word, count in counted.items())
    calls = sum(report.tool_calls for report in reports)
    return ToolOutcome(
        ok=True,
        summary=f"{len(reports)} scout{'' if len(reports) == 1 else 's'}: {said}; {calls} calls",
        content=without_controls(as_json(reports)),
    )


@dataclass(frozen=True)
class CommandSetup:
    """Commands as the user has set them up.

    `place` stores nothing and permits everything: each session has its own of both.
    """

    commands: UserCommands
    place: CommandPlace

    @property
    def in_background(self) -> bool:
        """Whether commands may run in the background; in the sandbox they run one by one."""
        return self.place.jail is None

    def tool(self, scope: ToolScope) -> Tool:
        """Make the tool of a session."""

        def keep(_call_id: str, output: bytes) -> Blob:
            return scope.save_artifact(output.decode("utf-8", "backslashreplace"))

        change_sets = scope.change_sets
        permit = CommandPermission(
            self.commands,
            change_sets.permissions,
            change_sets.open_texts,
            lambda: change_sets.proposals.mode,
            self.place.workspace,
            partial(_not_saved, scope),
        )
        background = scope.commands if self.in_background else None
        place = replace(self.place, keep=keep, permit=permit, background=background)
        tool = run_command_tool(place)
        (spec,) = tool_specs([tool])
        said = f"{spec.description}\n\n{_COMMANDS_SEE}"
        return replace(tool, spec=replace(spec, description=said))


_COMMANDS_SEE = (
    "It sees the disk: neither your pending hunks nor what the user has not saved. The user may be "
    "asked first."
)


@dataclass(frozen=True)
class WebSetup:
    """The web as the user has set it up; `host` is who asks there, opened when it is needed."""

    web: UserWeb
    host: Callable[[], Awaitable["Host"]]

    def tool(self, scope: ToolScope) -> Tool:
        """Make the tool of a session."""
        gate, shown = scope.change_sets.permissions, lambda: scope.turn().shown
        permit = WebPermission(self.web, gate, shown, partial(_not_saved, scope))
        return web_fetch_tool(WebPlace(self.host, permit))


def _not_saved(scope: ToolScope, error: KodeError) -> None:
    scope.emit(Notice(level="warning", code="RuleNotSaved", message=error.message))


@dataclass(frozen=True)
class Toolbox:
    """What the tools are made of, shared by all sessions. Without `memory` none is written.

    `servers` gives the tools of the user's MCP servers; `plan` mode has none of them. `language` is
    what the editor's language servers can be asked. `readers` and `doubters` are the scouts of
    reviews, which read changes with `git`. `around` a session makes what wraps its own tools.
    """

    workspace: Workspace
    ripgrep: Ripgrep
    questions: Questions
    scouts: ScoutServices
    readers: ScoutServices
    doubters: ScoutServices
    git: GitProgram
    skills: SkillLibrary
    memory: Memory | None
    memory_scope: Callable[[About], str]
    around: Callable[[ToolScope], Callable[[Tool], Tool]]
    servers: Callable[[ToolScope], Sequence[Tool]] = lambda _: ()
    language: LanguageServers = field(default_factory=LanguageServers)
    commands: CommandSetup | None = None
    web: WebSetup | None = None

    def tools(self, scope: ToolScope) -> OfferTools:
        """Return what offers the tools of one session; each is made when it is first offered.

        All of them see the session's pending edits. In `plan` mode there is none that edits. What
        there is nothing for is not offered; skills are those that the turn's system prompt lists,
        which is made before.
        """
        make, around = self._maker(scope), self.around(scope)
        made: dict[ToolName, Tool] = {}

        def offer(agent: AgentProfile, mode: Mode) -> Sequence[Tool]:
            rows = [row for name in agent.tools if self._has(row := TOOL_BY_NAME[name], mode)]
            for row in rows:
                if row.name not in made:
                    tool = around(make(row.name))
                    made[row.name] = replace(tool, deferred=row.deferred)
            own = tuple([made[row.name] for row in rows])
            return own if mode == "plan" else (*own, *self.servers(scope))

        return offer

    def _has(self, tool: AgentTool, mode: Mode) -> bool:
        if mode == "plan" and (tool.edits or tool.needs in ("commands", "background")):
            return False
        match tool.needs:
            case None:
                return True
            case "skills":
                return bool(self.skills.newest.skills)
            case "memory":
                return self.memory is not None
            case "commands":
                return self.commands is not None
            case "background":
                return self.commands is not None and self.commands.in_background
            case "web":
                return self.web is not None and self.web.web.trusted()
            case query:
                return self.language.serves(query)

    def _maker(self, scope: ToolScope) -> Callable[[ToolName], Tool]:  # noqa: C901 - a table
        change_sets, workspace = scope.change_sets, self.workspace
        files, shown = change_sets.session_files, change_sets.freshness
        proposals = change_sets.proposals
        lookup = EditorLookup(workspace, self.language, files, shown.note)

        def make(name: ToolName) -> Tool:  # noqa: C901 - a table
            match name:
                case "read_file":
                    return read_file_tool(workspace, files, shown.note)
                case "list_files":
                    return list_files_tool(workspace, files)
                case "search_code":
                    return search_code_tool(workspace, self.ripgrep, files, shown.note)
                case "propose_edit":
                    return propose_edit_tool(proposals, files, shown)
                case "propose_file":
                    return propose_file_tool(proposals, files, shown)
                case "explore":
                    return self._explore_tool(scope)
                case "ask_user":
                    return ask_user_tool(self.questions, scope.emit)
                case "load_skill":
                    return load_skill_tool(self.skills.catalog)
                case "write_memory":
                    assert self.memory is not None, "else it is not offered"
                    return write_memory_tool(self.memory, self.memory_scope)
                case "diagnostics" | "definition" | "references" | "symbols":
                    return editor_lookup_tool(name, lookup)
                case "rename_symbol":
                    return rename_symbol_tool(workspace, self.language, lookup, files, proposals)
                case "run_command":
                    assert self.commands is not None, "else it is not offered"
                    return self.commands.tool(scope)
                case "command_output":
                    return command_output_tool(scope.commands)
                case "command_wait":
                    return command_wait_tool(scope.commands)
                case "command_stop":
                    return command_stop_tool(scope.commands)
                case "web_fetch":
                    assert self.web is not None, "else it is not offered"
                    return self.web.tool(scope)
                case "update_plan":
                    return update_plan_tool(scope.emit)
                case "changes":
                    return changes_tool(self._changes(scope))
                case "review_changes":
                    return self._review_tool(scope)
                case "decide_finding":
                    # Imported late, as below: jobs and most sessions never review.
                    from kode_sidecar.agent.reviews import decide_finding_tool  # noqa: PLC0415

                    return decide_finding_tool(self._findings(scope))

        return make

    def _reading(self, scope: ToolScope) -> Sequence[Tool]:
        """Make the tools of a scout: what it was shown, the main model was not."""
        files = scope.change_sets.session_files
        return (
            read_file_tool(self.workspace, files),
            list_files_tool(self.workspace, files),
            search_code_tool(self.workspace, self.ripgrep, files),
        )

    def _explore_tool(self, scope: ToolScope) -> Tool:
        files = scope.change_sets.session_files
        return explore_tool(
            Dispatch(self.scouts),
            scope,
            lambda: self._reading(scope),
            lambda path: files.view(files.document(path, purpose="read")).text_lf,
        )

    def _changes(self, scope: ToolScope) -> ChangesView:
        reader = ChangeReader(self.workspace, self.git)
        return ChangesView(self.workspace, reader, scope.change_sets.session_files)

    def _findings(self, scope: ToolScope) -> "SessionFindings":
        from kode_sidecar.agent.reviews import SessionFindings  # noqa: PLC0415

        return SessionFindings(scope.records.folder, self.workspace, scope.emit)

    def _review_tool(self, scope: ToolScope) -> Tool:
        from kode_sidecar.agent.reviews import review_changes_tool  # noqa: PLC0415
        from kode_sidecar.agent.reviews.contracts import ReviewPlace, ReviewServices  # noqa: PLC0415

        view = self._changes(scope)
        place = ReviewPlace(
            view,
            self._findings(scope),
            lambda: self._reading(scope),
            lambda call, tools: _request(scope, call, tools, view.text_of),
        )
        return review_changes_tool(
            place, ReviewServices(Dispatch(self.readers), Dispatch(self.doubters))
        )
