"""What surrounds a session in the world of lives, and the prompt and tools that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from msgspec import Struct

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.context.skill_front_matter import FrontMatter
from kode_sidecar.agent.context.surroundings import SystemPrompt, prompt_parts
from kode_sidecar.agent.context.system_prompt import ProjectNote, Surroundings, system_prompt
from kode_sidecar.core.domain.agent_tool import TOOL_BY_NAME
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.core.protocol.session import Mode

ZONES: Mapping[str, float] = {"Shanghai": 8, "UTC": 0, "Los Angeles": -8}
MODES: Sequence[Mode] = ("plan", "review", "auto", "ask", "keep")
_BEGAN = datetime(2026, 1, 1, 21, tzinfo=UTC)


@cache
def prompts(locale: str) -> PromptFiles:
    return PromptFiles(find_prompts(), cast(Any, locale))


@dataclass
class LifeSurroundings:
    """What the user, the editor and the time make of the surroundings."""

    zone: str
    hours: float = 0
    notes: str = ""
    trusted: bool = True
    skills: int = 0
    servers: int = 0
    editor: bool = False
    commands: bool = True
    locale: str = "en"
    folders: int = 1

    def toggle(self, what: str, number: int) -> None:
        """Change one thing."""
        match what:
            case "notes":
                self.notes = f"Notes {number}." if number else ""
            case "skills" | "servers" | "folders":
                setattr(self, what, number)
            case "locale":
                self.locale = ("en", "zh")[number % 2]
            case "hours":
                self.hours += number
            case _:
                setattr(self, what, bool(number % 2))

    @property
    def today(self) -> str:
        """The day where the user is."""
        return f"{_BEGAN + timedelta(hours=self.hours + ZONES[self.zone]):%Y-%m-%d}"

    def prompt(self, agent: AgentProfile, mode: Mode) -> SystemPrompt:
        """Return what a session that begins now would send."""
        skills = [
            SimpleNamespace(about=FrontMatter(f"skill-{at}", f"skill-{at}", "Does it."))
            for at in range(self.skills)
        ]
        noted = self.notes and self.trusted
        here = Surroundings(
            roots=[f"/project-{at}" for at in range(self.folders)],
            platform="linux",
            editor="Editor",
            date=self.today,
            notes=(ProjectNote("/project-0", self.notes),) if noted else (),
            skills=cast(Any, skills),
            language_servers=self.editor,
            commands=self.commands,
        )
        about = prompts(self.locale), agent, mode, here
        return SystemPrompt(system_prompt(*about), prompt_parts(*about))

    def tools(self, agent: AgentProfile, mode: Mode) -> Sequence[Tool]:
        """Return the tools that can be used now, as `turns.toolset` chooses them."""
        there = {
            None: True,
            "skills": self.skills > 0,
            "memory": True,
            "commands": self.commands and mode != "plan",
            "background": self.commands and mode != "plan",
            "web": self.trusted,
        }
        rows = [TOOL_BY_NAME[name] for name in agent.tools]
        own = [
            _tool(row.name, deferred=row.deferred)
            for row in rows
            if there.get(row.needs, self.editor) and not (row.edits and mode == "plan")
        ]
        names = ["mcp", *(f"direct-{at}" for at in range(self.servers))] if self.servers else []
        return own if mode == "plan" else [*own, *(_tool(name, foreign=True) for name in names)]


class _Anything(Struct):
    """Takes whatever comes."""


@cache
def _tool(name: str, *, deferred: bool = False, foreign: bool = False) -> Tool:
    async def run(_params: Any, _call: ToolCall) -> ToolOutcome:
        return ToolOutcome(ok=True, summary=f"{name} ran")

    return Tool(name, _Anything, run, deferred=deferred, foreign=foreign, accept=dict)
