"""The result of `kode/skills/list`."""

from typing import Literal

from msgspec import Struct

SkillSource = Literal["user", "config", "project"]


class SkillView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill on offer to the model.

    `source`: the state folder's `skills`, a folder of the setting `skill_folders`, or
    `.kode/skills` of an open folder. `permissions` is what the skill says it needs; it grants
    nothing. `uri` is its `SKILL.md`.
    """

    id: str
    name: str
    description: str
    source: SkillSource
    uri: str
    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()


class SkillProblemView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that cannot be used, and why. `line` counts from 1; both where they are known."""

    source: SkillSource
    file: str
    message: str
    line: int | None = None
    field: str | None = None


class SkillsListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Skills by id, and those that cannot be used.

    `project_trusted`: the skills of the open folders are looked for, for the editor has said that
    the workspace is trusted.
    """

    skills: tuple[SkillView, ...]
    problems: tuple[SkillProblemView, ...]
    project_trusted: bool
