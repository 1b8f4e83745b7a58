"""The skills of a run: those that its configuration enables, and no others (B8)."""

from pathlib import Path

from kode_sidecar.context.skills import SkillCatalog, SkillLibrary, SkillSource, user_skills
from kode_sidecar.headless_run.run_config import SkillsPart
from kode_sidecar.headless_run.sandbox import source_path


def enabled_skills(config: SkillsPart, base: Path, storage_root: Path) -> SkillCatalog:
    """The enabled skills, from the folders that the configuration names, then the user's own.

    `base` is the folder of the configuration. Raises KodeError `PathOutsideRoots` for a folder
    that is not safe, `SkillNotFound` and `SkillInvalid` for an enabled skill.
    """
    sources = [SkillSource("config", source_path(folder, base)) for folder in config.folders]
    sources.append(user_skills(storage_root))
    return SkillLibrary(lambda: sources).catalog().only(config.enabled)
