"""Where skills come from; apart, for the doctor reports on skills and loads no other part."""

from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.agent.context.skills import PROJECT_FOLDER, SkillSource, user_skills
from kode_sidecar.core.settings import Settings


def skill_sources(
    settings: Settings, roots: Sequence[Path], *, trusted: bool
) -> Sequence[SkillSource]:
    """The user's own first, so that no project can stand in for one of them.

    `roots` are the open folders; they count only where the editor says that they are trusted (W12).
    """
    sources = [user_skills(settings.storage_root)]
    sources += [SkillSource("config", folder) for folder in settings.skill_folders]
    if trusted:
        sources += [SkillSource("project", root, PROJECT_FOLDER) for root in roots]
    return sources
