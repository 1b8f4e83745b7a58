"""The tools of the agents, one row each: who has it, whether it edits, what must be there for it.

Whatever else depends on a tool's name derives from these rows: what agents offer and users may
choose, what `plan` mode leaves out, what needs permission, what a job knows, cards of clients.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ToolName = Literal[
    "read_file",
    "list_files",
    "search_code",
    "propose_edit",
    "propose_file",
    "explore",
    "ask_user",
    "load_skill",
    "write_memory",
    "diagnostics",
    "definition",
    "references",
    "symbols",
    "rename_symbol",
    "run_command",
    "command_output",
    "command_wait",
    "command_stop",
    "web_fetch",
    "update_plan",
    "changes",
    "review_changes",
    "decide_finding",
]
"""All names. `turns.toolset` makes each one; the type checker reports a name that it forgot."""

ToolOwner = Literal["ide-helper", "coder", "reviewer", "scout", "job"]
"""The built-in agents, and a job, whose configuration chooses from what it knows."""

EditorNeed = Literal["diagnostics", "definition", "references", "symbols", "rename"]
"""What the editor must announce that it can be asked."""

ToolNeed = Literal["skills", "memory", "commands", "background", "web"] | EditorNeed

_SESSION: tuple[ToolOwner, ...] = ("ide-helper", "coder", "reviewer")
_ALL: tuple[ToolOwner, ...] = (*_SESSION, "scout", "job")


@dataclass(frozen=True)
class AgentTool:
    """One tool. `needs` is what must be there for it; the prompts name it if it needs nothing.

    A tool that `edits` needs permission, and `plan` mode does not offer it. `verb` begins the title
    of a card in clients that get none from us; `verbatim` results are shown unchanged, not as
    Markdown. Requests of a session do not describe a `deferred` tool: `find_tools` does.
    """

    name: ToolName
    owners: tuple[ToolOwner, ...] = _SESSION
    edits: bool = False
    needs: ToolNeed | None = None
    verb: str = ""
    verbatim: bool = False
    deferred: bool = False


AGENT_TOOLS = (
    AgentTool("read_file", _ALL, verb="Read", verbatim=True),
    AgentTool("list_files", _ALL, verb="List", verbatim=True),
    AgentTool("search_code", _ALL, verb="Search", verbatim=True),
    AgentTool("propose_edit", (*_SESSION, "job"), edits=True, verb="Edit"),
    AgentTool("propose_file", (*_SESSION, "job"), edits=True),
    AgentTool("explore", (*_SESSION, "job")),
    AgentTool("ask_user", verb="Ask"),
    AgentTool("load_skill", needs="skills", verb="Load skill"),
    AgentTool("write_memory", needs="memory", deferred=True),
    AgentTool("diagnostics", needs="diagnostics", deferred=True),
    AgentTool("definition", needs="definition", deferred=True),
    AgentTool("references", needs="references", deferred=True),
    AgentTool("symbols", needs="symbols", deferred=True),
    AgentTool("rename_symbol", edits=True, needs="rename", deferred=True),
    AgentTool("run_command", (*_SESSION, "job"), needs="commands", verbatim=True),
    AgentTool("command_output", needs="background", verbatim=True, deferred=True),
    AgentTool("command_wait", needs="background", verbatim=True, deferred=True),
    AgentTool("command_stop", needs="background", verbatim=True, deferred=True),
    AgentTool("web_fetch", needs="web", verb="Fetch", deferred=True),
    AgentTool("update_plan", ("coder", "job")),
    AgentTool("changes", ("reviewer",), verb="Changes", verbatim=True, deferred=True),
    AgentTool("review_changes", ("reviewer",), verb="Review"),
    AgentTool("decide_finding", ("reviewer",), deferred=True),
)
"""In the order in which a model is offered them, which hosts cache prompts by."""

TOOL_BY_NAME: Mapping[str, AgentTool] = {tool.name: tool for tool in AGENT_TOOLS}


def tools_of(owner: ToolOwner) -> tuple[ToolName, ...]:
    """Return the names of the tools of an agent or a job, in their fixed order."""
    return tuple(tool.name for tool in AGENT_TOOLS if owner in tool.owners)
