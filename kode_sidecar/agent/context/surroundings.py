"""Describes an agent's surroundings to it, and reports when they change.

A session's system prompt never changes, since hosts cache requests by their beginning: what is
different later comes as a message, where it changes.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.project_notes import REVIEW_FILE, one_line
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skills import skill_index
from kode_sidecar.agent.context.system_prompt import Surroundings, project_notes
from kode_sidecar.core.domain.message import Message

SURROUNDINGS = "surroundings"
"""In a reminder's `meta`: the states of the parts it is about, by name; None: gone."""

_HEAD = "What follows has changed. It holds from here on, in place of what was said of it above."


@dataclass(frozen=True)
class PromptPart:
    """One thing that a system prompt says of the surroundings.

    `state` changes with it and is the same in all languages of `text`. `ours`: `text` contains
    nothing from files, programs or the user.
    """

    state: str
    text: str
    ours: bool = False


@dataclass(frozen=True)
class SystemPrompt:
    """A system prompt, and what it says of the surroundings, by name."""

    text: str
    parts: Mapping[str, PromptPart]


@dataclass(frozen=True)
class PromptChange:
    """The text about parts that changed, their new states, and whether all of it is ours."""

    text: str
    states: Mapping[str, str | None]
    ours: bool


def prompt_parts(
    prompts: PromptFiles, agent: AgentProfile, mode: str, surroundings: Surroundings
) -> Mapping[str, PromptPart]:
    """Return what `system_prompt` says of the surroundings. Raises KodeError `ConfigInvalid`."""
    roots = [one_line(root) for root in surroundings.roots]
    folders = "\n".join(f"- {root}" for root in roots) or "- (no folder is open)"
    platform, editor = one_line(surroundings.platform), one_line(surroundings.editor) or "unknown"
    date = one_line(surroundings.date)
    parts = {
        "mode": PromptPart(mode, prompts.read(f"mode_{mode}"), ours=True),
        "date": PromptPart(date, f"Today: {date}", ours=True),
        "project folders": PromptPart(folders, f"Project folders:\n{folders}"),
        "editor": PromptPart(editor, f"Editor: {editor}"),
        "platform": PromptPart(platform, f"Platform: {platform}"),
    }
    if "run_command" in agent.tools and (surroundings.commands or surroundings.forbidden):
        off = surroundings.forbidden
        text = prompts.read("commands_off" if off else "commands")
        parts["commands"] = PromptPart("off" if off else "on", text, ours=True)
    if agent.instructions:
        parts["instructions"] = PromptPart(_digest(agent.instructions), agent.instructions)
    for note in surroundings.notes:
        what = note.file if note.file == REVIEW_FILE else "the notes"
        name = f"{what} of {one_line(note.root)}"
        parts[name] = PromptPart(_digest(note.text), project_notes(prompts, note))
    if surroundings.skills and "load_skill" in agent.tools:
        offered = [(one.about.id, one.about.description) for one in surroundings.skills]
        parts["skills"] = PromptPart(
            _digest(repr(offered)), skill_index(prompts, surroundings.skills)
        )
    if surroundings.language_servers and "definition" in agent.tools:
        parts["language servers"] = PromptPart("on", prompts.read("language_servers"), ours=True)
    return parts


def states_of(parts: Mapping[str, PromptPart]) -> dict[str, str]:
    """Return the states of the parts, by name."""
    return {name: part.state for name, part in parts.items()}


def known_states(first: Mapping[str, str], shown: Iterable[Message]) -> Mapping[str, str]:
    """Return what the model knows: the states in its system prompt, then those reported since."""
    known: dict[str, str | None] = {**first}
    for message in shown:
        reported: object = message.meta.get(SURROUNDINGS)
        if message.origin == "reminder" and isinstance(reported, Mapping):
            known.update(reported)  # pyright: ignore[reportUnknownArgumentType]
    return {name: state for name, state in known.items() if state is not None}


def changes(known: Mapping[str, str], parts: Mapping[str, PromptPart]) -> Sequence[PromptChange]:
    """Return the report for a model that knows these states: our own words first, then the rest."""
    gone = [name for name in known if name not in parts]
    new = {name: part for name, part in parts.items() if known.get(name) != part.state}
    found: list[PromptChange] = []
    for ours in (True, False):
        these = {name: part for name, part in new.items() if part.ours == ours}
        texts = [part.text for part in these.values()]
        states: dict[str, str | None] = dict(states_of(these))
        if gone and not ours:
            texts.append("\n".join(f"No longer there: {name}." for name in gone))
            states.update(dict.fromkeys(gone))
        if texts:
            found.append(PromptChange("\n\n".join([_HEAD, *texts]), states, ours))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
