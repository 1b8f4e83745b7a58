"""The tools on offer to the main agent, and `explore`, which sends out scouts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.memory import Memory
from kode_sidecar.context.skills import SkillCatalog
from kode_sidecar.domain.error_info import failure
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome, tool_failure
from kode_sidecar.permissions import EDIT_TOOLS, Questions, ask_user_tool
from kode_sidecar.protocol.session import Mode
from kode_sidecar.scouts import Dispatch, as_json
from kode_sidecar.scouts.contracts import (
    MAX_TASKS,
    ExploreReport,
    ExploreRequest,
    ExploreTask,
    ScoutServices,
)
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.tools.knowledge import About, load_skill_tool, write_memory_tool
from kode_sidecar.tools.list_files import list_files_tool
from kode_sidecar.tools.propose_edit import propose_edit_tool
from kode_sidecar.tools.propose_file import propose_file_tool
from kode_sidecar.tools.read_file import read_file_tool
from kode_sidecar.tools.search_code import search_code_tool
from kode_sidecar.turns.services import ToolScope
from kode_sidecar.workspace.contracts import SessionFiles
from kode_sidecar.workspace.ripgrep import Ripgrep
from kode_sidecar.workspace.workspace import Workspace

_STATES = {"done": "reported", "timed_out": "timed out", "failed": "failed", "refused": "refused"}


class ExploreParams(Struct, forbid_unknown_fields=True):
    """Send out scouts that read the project for you, side by side, one for each task.

    A scout has tools to read and nothing else, up to ten minutes and 100 calls. It knows nothing
    of this conversation and only its report comes back, so ask for what you would otherwise have
    to read a lot for: where something is done, how a part works, what depends on it. Each finding
    cites path and lines; `unverified` ones are not backed by the text there. A report that is not
    `done` is partial. At most five scouts are out at once.
    """

    tasks: Annotated[
        list[ExploreTask],
        Meta(min_length=1, max_length=MAX_TASKS, description="Questions that stand on their own"),
    ]


def explore_tool(
    dispatch: Dispatch,
    scope: ToolScope,
    reading: Sequence[Tool],
    text_of: Callable[[str], str],
) -> Tool:
    """The tool for one turn. Scouts get `reading`; `text_of` a path is what they see of it."""

    async def run(params: ExploreParams, call: ToolCall) -> ToolOutcome:
        request = ExploreRequest(
            call=call,
            model=scope.context.model,
            tools=reading,
            text_of=text_of,
            emit=scope.emit,
            spend=scope.context.totals.add_message,
            open_log=scope.records.open_scout_log,
            save_artifact=scope.records.save_artifact,
        )
        return _outcome(await dispatch.explore(params.tasks, request))

    return Tool("explore", ExploreParams, run, read_only=True)


def _outcome(reports: Sequence[ExploreReport]) -> ToolOutcome:
    if all(report.state == "refused" for report in reports):
        return tool_failure(failure("Overloaded", reports[0].note))
    counted = Counter(_STATES[report.state] for report in reports)
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    calls = sum(report.tool_calls for report in reports)
    return ToolOutcome(
        ok=True,
        summary=f"{len(reports)} scout{'' if len(reports) == 1 else 's'}: {told}; {calls} calls",
        content=without_controls(as_json(reports)),
    )


@dataclass(frozen=True)
class Toolbox:
    """What the tools are made of, shared by all sessions. Without `memory` none is written."""

    workspace: Workspace
    ripgrep: Ripgrep
    questions: Questions
    scouts: ScoutServices
    skills: Callable[[], SkillCatalog]
    memory: Memory | None
    memory_scope: Callable[[About], str]

    def tools(self, agent: AgentProfile, mode: Mode, scope: ToolScope) -> Sequence[Tool]:
        """The agent's tools for a turn, in its own fixed order; in `plan` mode none that edits.

        All of them see the session's pending edits. What there is nothing for is not offered.
        """
        makers = self._makers(scope)
        offered = {name for name in agent.tools if mode != "plan" or name not in EDIT_TOOLS}
        if not self.skills().skills:
            offered.discard("load_skill")
        if self.memory is None:
            offered.discard("write_memory")
        return tuple(makers[name]() for name in agent.tools if name in offered)

    def _write_memory(self) -> Tool:
        assert self.memory is not None, "else it is not offered"
        return write_memory_tool(self.memory, self.memory_scope)

    def _makers(self, scope: ToolScope) -> Mapping[str, Callable[[], Tool]]:
        change_sets = scope.change_sets
        files, shown = change_sets.session_files, change_sets.freshness
        proposals = change_sets.proposals
        return {
            "read_file": lambda: read_file_tool(self.workspace, files, shown.note),
            "list_files": lambda: list_files_tool(self.workspace, files),
            "search_code": lambda: search_code_tool(
                self.workspace, self.ripgrep, files, shown.note
            ),
            "propose_edit": lambda: propose_edit_tool(proposals, files, shown),
            "propose_file": lambda: propose_file_tool(proposals, files, shown),
            "load_skill": lambda: load_skill_tool(self.skills),
            "write_memory": self._write_memory,
            "ask_user": lambda: ask_user_tool(self.questions),
            "explore": lambda: explore_tool(
                Dispatch(self.scouts),
                scope,
                self._scout_tools(files),
                lambda path: files.view(files.document(path, purpose="read")).text_lf,
            ),
        }

    def _scout_tools(self, files: SessionFiles) -> Sequence[Tool]:
        """What a scout reads with. What it was shown, the main model was not."""
        return (
            read_file_tool(self.workspace, files),
            list_files_tool(self.workspace, files),
            search_code_tool(self.workspace, self.ripgrep, files),
        )
