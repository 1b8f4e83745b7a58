"""Where verbs come from, and how clients see them."""

from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.agent.context.skills import SKILL_FILE, Skill, SkillCatalog
from kode_sidecar.agent.verbs.library import VerbFolder, VerbProblem, VerbTable
from kode_sidecar.agent.verbs.verb_file import Verb
from kode_sidecar.core.protocol import process as wire
from kode_sidecar.core.settings import Settings

_OURS = (".kode/commands", ".agents/commands")
_OTHER_TOOLS = (
    (".claude/commands", ".md"),
    (".opencode/command", ".md"),
    (".opencode/commands", ".md"),
    (".github/prompts", ".prompt.md"),
    (".gemini/commands", ".toml"),
    (".qwen/commands", ".toml"),
    (".qwen/commands", ".md"),
    (".cursor/commands", ".md"),
    (".kimi/commands", ".md"),
)
_OTHER_TOOLS_AT_HOME = (
    (".claude", "commands", ".md"),
    (".codex", "prompts", ".md"),
    (".config/opencode", "command", ".md"),
    (".config/opencode", "commands", ".md"),
    (".gemini", "commands", ".toml"),
    (".qwen", "commands", ".toml"),
    (".qwen", "commands", ".md"),
    (".cursor", "commands", ".md"),
    (".kimi", "commands", ".md"),
)


def verb_folders(
    settings: Settings, home: Path | None, trusted_roots: Sequence[Path]
) -> Sequence[VerbFolder]:
    """Return the folders of verbs, the user's own first, so that no project can replace them.

    `home` is the user's folder, `trusted_roots` are the open folders if the user trusts them.
    """
    folders = [VerbFolder("user", settings.storage_root)]
    if home is not None:
        folders.append(VerbFolder("user", home / ".agents"))
        folders += [
            VerbFolder("user", home / tool, below, foreign=True, suffix=suffix)
            for tool, below, suffix in _OTHER_TOOLS_AT_HOME
        ]
    for root in trusted_roots:
        folders += [VerbFolder("project", root, below) for below in _OURS]
        folders += [
            VerbFolder("project", root, below, foreign=True, suffix=suffix)
            for below, suffix in _OTHER_TOOLS
        ]
    return folders


def verbs_view(table: VerbTable, skills: SkillCatalog, *, trusted: bool) -> wire.VerbsListResult:
    """Return the answer to `kode/verbs/list`: verbs, and skills whose names are not taken."""
    views = {skill.id: _skill_view(skill) for skill in skills.skills if skill.about.for_users}
    views |= {verb.name: _view(verb) for verb in table.verbs}
    return wire.VerbsListResult(
        verbs=tuple([views[name] for name in sorted(views)]),
        problems=tuple(map(_problem_view, table.problems)),
        project_trusted=trusted,
    )


def _view(verb: Verb) -> wire.VerbView:
    return wire.VerbView(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        source=verb.place.source,
        arguments=verb.arguments or None,
        context=verb.context,
        uri=verb.place.path.as_uri() if verb.place.path else None,
        agent=verb.agent,
        mode=verb.mode,
        model=verb.model,
        effort=verb.effort,
    )


def _skill_view(skill: Skill) -> wire.VerbView:
    return wire.VerbView(
        name=skill.id,
        title=skill.about.name,
        description=skill.about.description,
        source=skill.kind,
        kind="skill",
        arguments=skill.about.arguments or None,
        uri=(skill.folder / SKILL_FILE).as_uri(),
    )


def _problem_view(problem: VerbProblem) -> wire.VerbProblemView:
    details = problem.error.details or {}
    line, field = details.get("line"), details.get("field")
    return wire.VerbProblemView(
        source=problem.source,
        file=problem.file,
        message=problem.message,
        line=line if isinstance(line, int) else None,
        field=field if isinstance(field, str) else None,
    )
