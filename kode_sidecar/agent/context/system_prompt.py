"""Build the system prompt from the agent's text, its surroundings and `AGENTS.md` (C12, W12)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skills import Skill, skill_index
from kode_sidecar.core.text.shown_text import without_controls, without_hidden
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.paths import Root
from kode_sidecar.infrastructure.workspace.workspace import Workspace

FILE = "AGENTS.md"
REVIEW_FILE = "REVIEW.md"
"""What matters in reviews of the project, for the agents that review."""
MAX_CHARS = 32_000
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ProjectNote:
    """The notes of one folder. `text` is bounded and free of control characters."""

    root: str
    text: str
    file: str = FILE


@dataclass(frozen=True)
class Surroundings:
    """Where an agent works. Equal surroundings give equal bytes: hosts cache prompts by prefix.

    `date` is a day, `2026-01-02`: a time of day would spoil the cache with every turn.
    `roots` are displayed paths, `notes` the `AGENTS.md` texts of trusted folders, `skills` those
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
    """Return what is said of the notes of a folder. Raises KodeError `ConfigInvalid`."""
    reported = {"root": one_line(note.root), "notes": note.text, "file": note.file}
    return prompts.read("project_notes", reported)


def one_line(text: str) -> str:
    """Return an external name on one line, so that it cannot pose as another line of the prompt."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


class ProjectNotes:
    """Reads the notes when a turn starts; an unchanged file is not read again.

    `trusted` says if the editor trusts the workspace: if not, no file is touched. A file that the
    guard refuses (a link that leads out, credentials) counts as absent.
    """

    def __init__(self, workspace: Workspace, trusted: Callable[[], bool], file: str = FILE) -> None:
        self._workspace = workspace
        self._file = file
        self._trusted = trusted
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def read(self) -> tuple[ProjectNote, ...]:
        """Return the notes of all roots that have some, in the order of the roots."""
        if not self._trusted():
            return ()
        found = ((root, self._text_of(root)) for root in self._workspace.roots)
        return tuple(ProjectNote(str(root.path), text, self._file) for root, text in found if text)

    def _text_of(self, root: Root) -> str:
        path = root.path / self._file
        try:
            status = os.stat(path)
            state = (status.st_mtime_ns, status.st_size)
            if status.st_size > _MAX_BYTES:
                return ""
            document = self._workspace.open_document(self._workspace.locate(str(path)))
            if document is None and path in self._known and self._known[path][0] == state:
                return self._known[path][1]
            text = _bounded(self._workspace.document(str(path), purpose="read").lf_text)
        except (OSError, KodeError):
            return ""
        if document is None:
            self._known[path] = (state, text)
        return text


def _bounded(text: str) -> str:
    """Return notes cut to size, without characters that the user cannot see."""
    text = without_hidden(without_controls(text)).strip()
    if len(text) <= MAX_CHARS:
        return text
    return f"{text[:MAX_CHARS]}\n[cut after {MAX_CHARS} of {len(text)} characters]"
