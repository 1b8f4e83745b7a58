"""Where skills come from. A module of its own, so the doctor can report on skills cheaply."""

from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.agent.context.skills import (
    PROJECT_FOLDER,
    SHARED_FOLDER,
    SkillSource,
    user_skills,
)
from kode_sidecar.core.settings import Settings


def skill_sources(
    settings: Settings, home: Path | None, roots: Sequence[Path], *, trusted: bool
) -> Sequence[SkillSource]:
    """Return the sources of skills, the user's own first, so that no project can replace them.

    `home` is the user's own folder. `roots` are the open folders; they count only if `trusted`, as
    the editor says (W12).
    """
    sources = [user_skills(settings.storage_root)]
    if home is not None:
        sources.append(SkillSource("user", home, SHARED_FOLDER))
    sources += [SkillSource("config", folder) for folder in settings.skill_folders]
    if trusted:
        folders = (PROJECT_FOLDER, SHARED_FOLDER)
        sources += [SkillSource("project", root, below) for root in roots for below in folders]
    return sources
