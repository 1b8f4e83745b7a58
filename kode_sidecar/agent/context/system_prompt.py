"""Build the system prompt from the agent's text, its surroundings and `AGENTS.md` (C12, W12)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.project_notes import ProjectNote, one_line
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skills import Skill, skill_index


@dataclass(frozen=True)
class Surroundings:
    """Where an agent works. Equal surroundings give equal bytes: hosts cache prompts by prefix.

    `date` is a day, `2026-01-02`: a time of day would spoil the cache with every turn.
    `roots` are displayed paths, `notes` those of trusted folders, `skills` those
    offered to agents that can load them. `language_servers`: the editor lets the model query
    them. `commands`: the user can be asked to run some; `forbidden`: a setting says that none run.
    """

    roots: Sequence[str]
    platform: str
    editor: str
    date: str
    notes: Sequence[ProjectNote] = ()
    skills: Sequence[Skill] = ()
    language_servers: bool = False
    commands: bool = False
    forbidden: bool = False


def system_prompt(
    prompts: PromptFiles, agent: AgentProfile, mode: str, surroundings: Surroundings
) -> str:
    """Return the prompt of an agent in a mode (`review`, `ask`, `auto`, `keep`, `plan`).

    Raises KodeError `ConfigInvalid` when a prompt file is missing or broken.
    """
    roots = [f"- {one_line(root)}" for root in surroundings.roots]
    values = {
        "roots": "\n".join(roots) or "- (no folder is open)",
        "platform": one_line(surroundings.platform),
        "editor": one_line(surroundings.editor) or "unknown",
        "date": one_line(surroundings.date),
        "mode": prompts.read(f"mode_{mode}"),
    }
    parts = [prompts.read(agent.prompt_file, values)]
    if "run_command" in agent.tools:
        parts += [prompts.read("commands")] if surroundings.commands else []
        parts += [prompts.read("commands_off")] if surroundings.forbidden else []
    if agent.instructions:
        parts.append(agent.instructions)
    parts += [project_notes(prompts, note) for note in surroundings.notes]
    if surroundings.skills and "load_skill" in agent.tools:
        parts.append(skill_index(prompts, surroundings.skills))
    if surroundings.language_servers and "definition" in agent.tools:
        parts.append(prompts.read("language_servers"))
    return "\n\n".join(parts)


def project_notes(prompts: PromptFiles, note: ProjectNote) -> str:
    """Return what is said of the notes of a root. Raises KodeError `ConfigInvalid`."""
    return prompts.read("project_notes", note.values)
