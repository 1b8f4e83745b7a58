"""Agents of the user's own, as the setting `agents` describes them."""

from typing import get_args

import pytest

from kode_sidecar.agent.context.agents import BUILT_IN_AGENTS, agent_problems, agent_profile
from kode_sidecar.core.domain.agent_tool import ToolName
from kode_sidecar.errors import KodeError

REVIEWER = {
    "base": "coder",
    "instructions": "Look for bugs.\n",
    "tools": ["search_code", "read_file"],
    "max_tool_rounds": 7,
    "window_messages": 12,
}


def test_what_is_not_said_is_that_of_the_base() -> None:  # A5
    reviewer = agent_profile("reviewer", 20, {"reviewer": REVIEWER})
    assert (reviewer.name, reviewer.prompt_file) == ("reviewer", "coder_system")
    assert (reviewer.max_tool_rounds, reviewer.window_messages) == (7, 12)
    assert reviewer.tools == ("read_file", "search_code")  # in the order of all agents
    assert reviewer.instructions == "Look for bugs."
    plain = agent_profile("mine", 30, {"mine": None})
    assert (plain.max_tool_rounds, plain.window_messages) == (5, 30)
    assert agent_profile("all", 30, {"all": {"window_messages": None}}).window_messages is None


def test_every_tool_of_a_session_can_be_chosen() -> None:  # A15
    offered = {tool for agent in BUILT_IN_AGENTS for tool in agent.tools}
    assert sorted(offered) == sorted(get_args(ToolName))


def test_tools_can_be_switched_off() -> None:  # A15
    assert agent_profile("quiet", None, {"quiet": {"tools": []}}).tools == ()


@pytest.mark.parametrize(
    ("raw", "reported"),
    [
        ({"tools": ["rm"]}, "agents.mine.tools[0]"),
        ({"max_tool_rounds": 0}, "agents.mine.max_tool_rounds"),
        ({"prompt": "x"}, "agents.mine"),
        ("coder", "agents.mine"),
    ],
)
def test_what_is_wrong_is_named(raw: object, reported: str) -> None:  # A12
    (problem,) = agent_problems({"mine": raw})
    assert reported in problem
    with pytest.raises(KodeError, match="config") as caught:
        agent_profile("mine", None, {"mine": raw})
    assert caught.value.code == "ConfigInvalid"


def test_built_in_agents_stay_what_they_are() -> None:
    assert "another name" in agent_problems({"coder": {}, "fine": {}})[0]
    assert agent_profile("coder", None, {"coder": {"tools": []}}).tools
    with pytest.raises(KodeError, match="known agents: ide-helper, coder, reviewer, fine"):
        agent_profile("nobody", None, {"fine": {}})
