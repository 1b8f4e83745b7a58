"""`load_skill`: the body of a skill, or a file that comes with it."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.context.skill_text import SKILL_BYTES, load_skill, read_skill_file
from kode_sidecar.context.skills import SkillCatalog
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome


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
    """The tool; offer it where there are skills.

    `catalog` are the skills on offer, `budget` how many bytes one call may bring.
    """

    async def run(params: LoadSkillParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        skill = catalog().get(params.id)
        if params.file is not None:
            read = read_skill_file
            text = await asyncio.to_thread(read, skill, params.file, params.start, budget)
            return ToolOutcome(
                ok=True, summary=f"Read {params.file} of the skill {skill.id}", content=text
            )
        loaded = await asyncio.to_thread(load_skill, skill, budget)
        return ToolOutcome(
            ok=True,
            summary=f"Loaded the skill {skill.id}: {skill.about.name}",
            content=loaded.text,
        )

    return Tool("load_skill", LoadSkillParams, run, read_only=True)
