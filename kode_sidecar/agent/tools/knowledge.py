"""Tools beyond the conversation: `load_skill` reads a skill, `write_memory` stores a fact."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kode_sidecar.agent.context.memory import Memory
from kode_sidecar.agent.context.skill_text import SKILL_BYTES, load_skill, read_skill_file
from kode_sidecar.agent.context.skills import SkillCatalog
from kode_sidecar.core.domain.memory import MAX_CONTENT_CHARS, MAX_TAG_CHARS, MAX_TAGS
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.errors import KodeError


class LoadSkillParams(Struct, forbid_unknown_fields=True):
    """Load a skill: instructions for one kind of task, kept by the user.

    Call it before you begin a task that the description of a skill fits. You get its text and a
    list of the files that come with it; with `file` you get one of them. A skill tells you how to
    work: it grants no permission, and what the user says comes first.
    """

    id: Annotated[str, Meta(description="The skill, as the list of skills names it")]
    file: (
        Annotated[str, Meta(description="A file of the skill, e.g. references/style.md")] | None
    ) = None
    start: Annotated[int, Meta(ge=1, description="First line of the file, from 1")] = 1


def load_skill_tool(catalog: Callable[[], SkillCatalog], budget: int = SKILL_BYTES) -> Tool:
    """Make `load_skill`; offer it only if there are skills.

    `catalog` returns the skills, `budget` is how many bytes one call may return.
    """

    async def run(params: LoadSkillParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        skill = catalog().get(params.id)
        if params.file is not None:
            read = read_skill_file
            text = await asyncio.to_thread(read, skill, params.file, params.start, budget)
            return ToolOutcome(
                ok=True, summary=f"Read {params.file} of the skill {skill.id}", content=text
            )
        if not skill.about.for_models:
            text = f"Only the user calls the skill `{skill.id}`: by `/{skill.id}` in a prompt."
            raise KodeError("Denied", text)
        loaded = await asyncio.to_thread(load_skill, skill, budget)
        return ToolOutcome(
            ok=True,
            summary=f"Loaded the skill {skill.id}: {skill.about.name}",
            content=loaded.text,
        )

    return Tool("load_skill", LoadSkillParams, run, read_only=True, kind="read", card=_skill_card)


def _skill_card(params: LoadSkillParams) -> CallCard:
    if params.file is None:
        return CallCard(f"Load the skill {params.id}")
    return CallCard(f"Read {params.file} of the skill {params.id}")


About = Literal["project", "user"]

_TOLD = {
    "candidate": "Noted as a candidate. It is remembered once the user has accepted it.",
    "accepted": "It is remembered.",
}


class WriteMemoryParams(Struct, forbid_unknown_fields=True):
    """Suggest something to remember beyond this conversation: one fact a call, in plain words.

    For what the user wants kept, or what would save the next conversation real work: a decision
    and its reason, a habit of the user, a trap of the project. Not for what the files say, for the
    state of this task, or for keys and passwords. The user may decide about each one.
    """

    content: Annotated[
        str,
        Meta(max_length=MAX_CONTENT_CHARS, description="One fact that can be understood alone"),
    ]
    about: Annotated[
        About, Meta(description="project: holds in this project; user: holds everywhere")
    ] = "project"
    tags: Annotated[
        tuple[Annotated[str, Meta(max_length=MAX_TAG_CHARS)], ...],
        Meta(max_length=MAX_TAGS, description="Words to find it by"),
    ] = ()


def write_memory_tool(memory: Memory, scope_of: Callable[[About], str]) -> Tool:
    """Make `write_memory`; offer it unless memory is off. `scope_of` returns a fact's scope."""

    async def run(params: WriteMemoryParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        content = without_controls(params.content).strip()
        if what := find_secret(content):
            raise KodeError("Denied", f"Not remembered: it holds {what}. Leave that out.")
        tags = tuple(tag for tag in (without_controls(tag).strip() for tag in params.tags) if tag)
        item = await memory.write(content, scope_of(params.about), tags)
        done = "Suggested" if item.state == "candidate" else "Kept"
        return ToolOutcome(
            ok=True,
            summary=f"{done} to remember: {cut_line(one_line(content), 80)}",
            content=_TOLD[item.state],
            data={"memory_id": item.id, "state": item.state},
        )

    return Tool("write_memory", WriteMemoryParams, run, kind="think", card=_memory_card)


def _memory_card(params: WriteMemoryParams) -> CallCard:
    return CallCard(f"Remember: {params.content}")
