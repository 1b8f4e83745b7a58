"""Define agents as data (A5): prompt, amount of history, number of tool rounds, tools."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kode_sidecar.core.domain.agent_tool import ToolName, tools_of
from kode_sidecar.errors import KodeError


@dataclass(frozen=True)
class AgentProfile:
    """One agent.

    `prompt_file` is a name under `prompts/{locale}/`. `window_messages` is how many stored
    messages of the path the model gets; None means all that fit. `max_tool_rounds` is how many
    answers with tool calls a turn may have. `tools` are the names on offer, in a fixed order.
    `instructions` are the user's own, appended to the prompt.
    """

    name: str
    prompt_file: str
    window_messages: int | None
    max_tool_rounds: int
    tools: tuple[str, ...]
    instructions: str = ""


IDE_HELPER = AgentProfile(
    name="ide-helper",
    prompt_file="ide_helper_system",
    window_messages=20,
    max_tool_rounds=5,
    tools=tools_of("ide-helper"),
)
CODER = AgentProfile(
    name="coder",
    prompt_file="coder_system",
    window_messages=None,
    max_tool_rounds=50,
    tools=tools_of("coder"),
)
REVIEWER = AgentProfile(
    name="reviewer",
    prompt_file="reviewer_system",
    window_messages=None,
    max_tool_rounds=50,
    tools=tools_of("reviewer"),
)
SCOUT = AgentProfile(
    name="scout",
    prompt_file="scout_system",
    window_messages=None,
    max_tool_rounds=110,
    tools=(*tools_of("scout"), "report_findings"),
)
"""Sent out only by `explore`; `scouts.scout_rules` counts its calls."""

REVIEW_READER = replace(
    SCOUT, name="review-reader", prompt_file="review_reader_system", tools=("changes", *SCOUT.tools)
)
"""Looks for faults in a part of the changes; sent out only by `review_changes`."""
REVIEW_DOUBTER = replace(SCOUT, name="review-doubter", prompt_file="review_doubter_system")
"""Tries to refute what readers found."""

BUILT_IN_AGENTS = (IDE_HELPER, CODER, REVIEWER)
"""The agents that a session can choose."""


class _UserAgent(Struct, forbid_unknown_fields=True):
    """An agent in `config.yaml`: a built-in one with changes."""

    base: Literal["ide-helper", "coder", "reviewer"] = "ide-helper"
    instructions: Annotated[str, Meta(max_length=100_000)] = ""
    window_messages: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType | None = UNSET
    max_tool_rounds: Annotated[int, Meta(ge=1, le=1_000)] | UnsetType = UNSET
    tools: list[ToolName] | UnsetType = UNSET

    def profile(self, name: str, window_messages: int | None) -> AgentProfile:
        base = agent_profile(self.base, window_messages)
        window, rounds, tools = self.window_messages, self.max_tool_rounds, self.tools
        return replace(
            base,
            name=name,
            instructions=self.instructions.strip(),
            window_messages=base.window_messages if isinstance(window, UnsetType) else window,
            max_tool_rounds=base.max_tool_rounds if isinstance(rounds, UnsetType) else rounds,
            tools=base.tools
            if isinstance(tools, UnsetType)
            else tuple(tool for tool in base.tools if tool in tools),
        )


def agent_profile(
    name: str, window_messages: int | None = None, user_agents: Mapping[str, Any] | None = None
) -> AgentProfile:
    """Return the agent of that name; `user_agents` are those of the setting `agents`.

    `window_messages` is the user's own number, for agents that have a window at all. A user's own
    `reviewer` comes first: some had one before there was a built-in one. Raises
    KodeError `ConfigInvalid` with the known names, or with the problem of the user's agent.
    """
    own = user_agents or {}
    for agent in BUILT_IN_AGENTS:
        if agent.name == name and not (agent is REVIEWER and name in own):
            if window_messages is None or agent.window_messages is None:
                return agent
            return replace(agent, window_messages=window_messages)
    if name in own:
        return _read(name, own[name]).profile(name, window_messages)
    known = ", ".join(dict.fromkeys([*(agent.name for agent in BUILT_IN_AGENTS), *own]))
    raise KodeError("ConfigInvalid", f"There is no agent {name!r}; known agents: {known}.")


def agent_problems(user_agents: Mapping[str, Any]) -> list[str]:
    """Return the problems of the setting `agents`, one line each."""
    taken_names = (IDE_HELPER, CODER, SCOUT, REVIEW_READER, REVIEW_DOUBTER)
    built_in = {agent.name for agent in taken_names}
    taken = [
        f"config.yaml: agents.{name}: this is a built-in agent; choose another name."
        for name in user_agents
        if name in built_in
    ]
    return taken + [
        error.message
        for name, raw in user_agents.items()
        if name not in built_in and (error := _problem(name, raw)) is not None
    ]


def _problem(name: str, raw: object) -> KodeError | None:
    try:
        _read(name, raw)
    except KodeError as error:
        return error
    return None


def _read(name: str, raw: object) -> _UserAgent:
    try:
        return msgspec.convert({} if raw is None else raw, _UserAgent)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")  # without a path: the whole entry
        where = f"agents.{name}{path.rstrip('`')}"
        raise KodeError("ConfigInvalid", f"config.yaml: {what} at `{where}`") from None
