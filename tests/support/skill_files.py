"""Skills on disk for tests."""

from pathlib import Path

from tests.support.files import write


def skill_text(skill_id: str, body: str = "Do it well.\n", **fields: str) -> str:
    """A whole `SKILL.md`."""
    head = {"name": skill_id.title(), "description": f"About {skill_id}.", **fields}
    lines = "".join(f"{name}: {value}\n" for name, value in head.items())
    return f"---\nid: {skill_id}\n{lines}---\n{body}"


def write_skill(folder: Path, skill_id: str, body: str = "Do it well.\n", **fields: str) -> Path:
    """A skill in a folder of its own name; returns that."""
    write(folder, {f"{skill_id}/SKILL.md": skill_text(skill_id, body, **fields)})
    return folder / skill_id
