"""The lock pins all that an installation needs: with hashes pip installs nothing else."""

import contextlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
GROUPS = {"runtime": ["build"], "dev": ["build", "dev"], "exe": ["build", "dev", "exe"]}


def pinned(lock: str) -> set[str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
    return {canonicalize_name(name) for name in re.findall(r"(?m)^([\w.-]+)==", text)}


def wanted(requirements: list[str]) -> set[str]:
    """The names that *requirements* bring in on this platform, by what is installed here."""
    found: set[str] = set()
    left = [(Requirement(text), {""}) for text in requirements]
    while left:
        need, extras = left.pop()
        marker = need.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(need.name)
        if name in found and not need.extras:
            continue
        found.add(name)
        with contextlib.suppress(metadata.PackageNotFoundError):
            needs = metadata.requires(name) or []
            left += [(Requirement(text), need.extras | {""}) for text in needs]
    return found


@pytest.mark.parametrize("lock", GROUPS)
def test_the_lock_pins_all_that_an_installation_needs(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    requirements: list[str] = list(project["project"]["dependencies"])
    for group in GROUPS[lock]:
        requirements += project["dependency-groups"][group]
    assert wanted(requirements) - pinned(lock) == set()
