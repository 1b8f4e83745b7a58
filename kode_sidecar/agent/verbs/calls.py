"""A prompt `/name words` calls a verb or a skill: fill in its text for the model."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.context.skill_text import load_skill
from kode_sidecar.agent.context.skills import Skill, SkillCatalog
from kode_sidecar.agent.verbs.editor_state import EditorState
from kode_sidecar.agent.verbs.library import VerbTable
from kode_sidecar.core.domain.event_parts import Effort, Mode
from kode_sidecar.core.domain.message import Block, ResourceBlock, TextBlock
from kode_sidecar.core.protocol.turn import Goal
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.shown_text import cut_line, number_lines, without_controls
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_CALL = re.compile(r"/([^\s/]+)(?:\s+(.*))?", re.DOTALL)
_GOAL = "goal"
_WORD = re.compile(r'"([^"]*)"|\'([^\']*)\'|(\S+)')
_PLACE = re.compile(r"\$ARGUMENTS\b|\$([1-9])(?!\d)|\{\{args\}\}|\$\{input(?::[^{}]*)?\}")
_FILE = re.compile(r"(?<![\w@.])@(?:\"([^\"\n]+)\"|([\w./\\-]*\w))")
_MAX_FILES = 10
_MAX_FILE_LINES = 400
_MAX_LINE_CHARS = 2_000
_RUNS = re.compile(r"(?:^|\s)!(?:`|\{)[^`}\n]+[`}]")
_NOT_RUN = (
    "[This verb was written for a tool that runs commands while it fills in the text. Nothing was "
    "run here: what stands behind `!` is a command whose output you do not have.]"
)


@dataclass(frozen=True)
class VerbCall:
    """What a prompt called: the text for the model, and the choices that hold for the turn."""

    name: str
    text: str
    agent: str | None = None
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None
    goal: Goal | None = None


@dataclass(frozen=True)
class VerbCalls:
    """Finds and fills in what prompts call. `table` and `skills` return what there is now."""

    table: Callable[[], VerbTable]
    skills: Callable[[], SkillCatalog]
    workspace: Workspace
    state: EditorState

    async def called(self, blocks: Sequence[Block]) -> VerbCall | None:
        """Return what a prompt calls; None for all others.

        Only a name that exists is a call: `/usr/bin` and `/unknown` are text. Raises KodeError if
        the file of a verb or skill of this name cannot be used.
        """
        first = next(iter(blocks), None)
        found = _CALL.fullmatch(first.text.rstrip()) if isinstance(first, TextBlock) else None
        if found is None:
            return None
        name, words = found[1], (found[2] or "").strip()
        verb = (await asyncio.to_thread(self.table)).get(name)
        if verb is None:
            skills = await asyncio.to_thread(self.skills)
            usable = (one for one in skills.skills if one.about.for_users)
            skill = next((one for one in usable if one.id == name), None)
            return None if skill is None else await asyncio.to_thread(_skill_call, skill, words)
        attached = [block for block in blocks if isinstance(block, ResourceBlock)]
        parts = [
            f"[The user called the verb `/{name}`. What it asks you to do:]",
            filled(verb.body, words),
            *await self.state.reported(verb.context, attached),
            *await asyncio.to_thread(self._files, f"{verb.body}\n{words}"),
        ]
        if _RUNS.search(verb.body):
            parts.append(_NOT_RUN)
        text = "\n\n".join(parts)
        goal = _goal(words) if name == _GOAL and verb.place.source == "builtin" else None
        return VerbCall(name, text, verb.agent, verb.mode, verb.model, verb.effort, goal)

    def _files(self, text: str) -> list[str]:
        """Return the files that a text names with `@`, each once; other words are left alone."""
        names = dict.fromkeys(found[1] or found[2] for found in _FILE.finditer(text))
        reported: list[str] = []
        for name in list(names)[:_MAX_FILES]:
            try:
                document = self.workspace.document(name, purpose="read")
                path = self.workspace.display_path(document.key)
            except KodeError as error:
                if error.code in ("Denied", "TooLarge"):
                    reported.append(f"[{name} is not shown: {without_controls(error.message)}]")
                continue
            reported.append(_shown_file(path, self.workspace.view(document).text_lf))
        return reported


def filled(body: str, words: str) -> str:
    """Return a verb's text with the words of its call; what they hold is not filled in again."""
    parts = [one or two or three for one, two, three in _WORD.findall(words)]

    def value(found: re.Match[str]) -> str:
        if not found[1]:
            return words
        number = int(found[1])
        return parts[number - 1] if number <= len(parts) else ""

    return _PLACE.sub(value, body)


def _goal(words: str) -> Goal:
    """Return the goal of `/goal COMMAND`, or `/goal file:PATH`; ` -- ` begins what to do for it.

    Raises KodeError `InvalidParams`.
    """
    check, *_ = re.split(r"\s--\s|\n", words, maxsplit=1)
    rounds = re.match(r"rounds:(\d{1,3})\s+", check)
    check = check[rounds.end() :] if rounds else check
    limits: dict[str, Any] = {"rounds": min(100, max(1, int(rounds[1])))} if rounds else {}
    if check.startswith("file:"):
        return Goal(deliverable=check.removeprefix("file:").strip(), **limits)
    command = tuple(one or two or three for one, two, three in _WORD.findall(check))
    if not command:
        text = "say what has to pass: `/goal python -m pytest -- fix the tests`."
        raise invalid_at("$.input[0].text", text)
    return Goal(command=command, **limits)


def _skill_call(skill: Skill, words: str) -> VerbCall:
    loaded = load_skill(skill).text
    head = f"[The user called the skill `/{skill.id}`. Follow it:]"
    return VerbCall(skill.id, f"{head}\n\n{filled(loaded, words)}")


def _shown_file(path: str, text: str) -> str:
    lines = [cut_line(line.rstrip("\n"), _MAX_LINE_CHARS) for line in split_lines(text)]
    shown = number_lines(lines[:_MAX_FILE_LINES], 1)
    more = len(lines) - _MAX_FILE_LINES
    cut = f"\n[{more} more lines: read_file shows them]" if more > 0 else ""
    return f"{path}:\n{without_controls(shown)}{cut}"
