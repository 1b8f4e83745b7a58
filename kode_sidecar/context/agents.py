"""Agents as data (A5): which prompt, how much history, how many tool rounds, which tools."""

from dataclasses import dataclass, replace

from kode_sidecar.errors import KodeError


@dataclass(frozen=True)
class AgentProfile:
    """One agent.

    `prompt_file` is a name under `prompts/{locale}/`. `window_messages` is how many stored
    messages of the path the model gets; None means all that fit. `max_tool_rounds` is how many
    answers with tool calls a turn may have. `tools` are the names on offer, in a fixed order.
    """

    name: str
    prompt_file: str
    window_messages: int | None
    max_tool_rounds: int
    tools: tuple[str, ...]


_READING_TOOLS = ("read_file", "list_files", "search_code")
_EDITOR_TOOLS = (*_READING_TOOLS, "propose_edit", "propose_file", "explore", "ask_user")

IDE_HELPER = AgentProfile(
    name="ide-helper",
    prompt_file="ide_helper_system",
    window_messages=20,
    max_tool_rounds=5,
    tools=_EDITOR_TOOLS,
)
CODER = AgentProfile(
    name="coder",
    prompt_file="coder_system",
    window_messages=None,
    max_tool_rounds=50,
    tools=_EDITOR_TOOLS,
)
SCOUT = AgentProfile(
    name="scout",
    prompt_file="scout_system",
    window_messages=None,
    max_tool_rounds=110,
    tools=(*_READING_TOOLS, "report_findings"),
)
"""Sent out by `explore` and by nothing else; its calls are counted by `scouts.scout_rules`."""

BUILT_IN_AGENTS = (IDE_HELPER, CODER)
"""What a session may be."""
DEFAULT_AGENT = IDE_HELPER.name


def agent_profile(name: str, window_messages: int | None = None) -> AgentProfile:
    """The agent of that name. Raises KodeError `ConfigInvalid` listing the known ones.

    `window_messages` is the user's own number, for agents that have a window at all.
    """
    for agent in BUILT_IN_AGENTS:
        if agent.name == name:
            if window_messages is None or agent.window_messages is None:
                return agent
            return replace(agent, window_messages=window_messages)
    known = ", ".join(agent.name for agent in BUILT_IN_AGENTS)
    raise KodeError("ConfigInvalid", f"There is no agent {name!r}; known agents: {known}.")
