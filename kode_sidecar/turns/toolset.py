"""The tools on offer to the main agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.memory import Memory
from kode_sidecar.context.skills import SkillCatalog
from kode_sidecar.kernel.contracts import Tool
from kode_sidecar.permissions import EDIT_TOOLS, Questions, ask_user_tool
from kode_sidecar.protocol.session import Mode
from kode_sidecar.scouts import Dispatch
from kode_sidecar.scouts.contracts import ScoutServices
from kode_sidecar.tools.knowledge import About, load_skill_tool, write_memory_tool
from kode_sidecar.tools.list_files import list_files_tool
from kode_sidecar.tools.propose_edit import propose_edit_tool
from kode_sidecar.tools.propose_file import propose_file_tool
from kode_sidecar.tools.read_file import read_file_tool
from kode_sidecar.tools.search_code import search_code_tool
from kode_sidecar.turns.explore_tool import explore_tool
from kode_sidecar.turns.tool_scope import ToolScope
from kode_sidecar.workspace.contracts import SessionFiles
from kode_sidecar.workspace.ripgrep import Ripgrep
from kode_sidecar.workspace.workspace import Workspace


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
