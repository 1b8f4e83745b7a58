"""The system prompt: the agent's text, filled with what it works on."""

from collections.abc import Sequence
from dataclasses import dataclass

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.context.project_notes import ProjectNote
from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.context.skills import Skill, skill_index


@dataclass(frozen=True)
class Surroundings:
    """Where an agent works. Equal surroundings give equal bytes: hosts cache prompts by prefix.

    `date` is a day, `2026-01-02`: a time of day would spoil the cache with every turn.
    `roots` are paths as the user knows them, `notes` what the trusted ones tell assistants,
    `skills` those on offer to agents that can load them.
    """

    roots: Sequence[str]
    platform: str
    editor: str
    date: str
    notes: Sequence[ProjectNote] = ()
    skills: Sequence[Skill] = ()


def system_prompt(
    prompts: PromptFiles, agent: AgentProfile, mode: str, surroundings: Surroundings
) -> str:
    """The prompt of an agent in a mode (`review`, `ask`, `auto`, `plan`).

    Raises KodeError `ConfigInvalid` when a prompt file is missing or broken.
    """
    roots = [f"- {_one_line(root)}" for root in surroundings.roots]
    values = {
        "roots": "\n".join(roots) or "- (no folder is open)",
        "platform": _one_line(surroundings.platform),
        "editor": _one_line(surroundings.editor) or "unknown",
        "date": _one_line(surroundings.date),
        "mode": prompts.read(f"mode_{mode}"),
    }
    parts = [prompts.read(agent.prompt_file, values)]
    if agent.instructions:
        parts.append(agent.instructions)
    for note in surroundings.notes:
        told = {"root": _one_line(note.root), "notes": note.text}
        parts.append(prompts.read("project_notes", told))
    if surroundings.skills and "load_skill" in agent.tools:
        parts.append(skill_index(prompts, surroundings.skills))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    """A name from outside must not look like another line of the prompt."""
    return "".join(char if char.isprintable() else " " for char in text).strip()
