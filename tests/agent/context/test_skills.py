"""Which skills are found, in which order, and what is told of the others (B8, W11, W12)."""

import os
import sys
from pathlib import Path

import pytest

from kode_sidecar.agent.context.prompt_files import Locale, PromptFiles, find_prompts
from kode_sidecar.agent.context.skill_front_matter import MAX_FRONT_MATTER_BYTES
from kode_sidecar.agent.context.skill_text import load_skill
from kode_sidecar.agent.context.skills import (
    MAX_INDEX_BYTES,
    MAX_SKILLS,
    PROJECT_FOLDER,
    SkillCatalog,
    SkillLibrary,
    SkillSource,
    skill_index,
)
from kode_sidecar.errors import KodeError
from tests.support.files import link, write
from tests.support.skill_files import skill_text, write_skill


def found(*sources: SkillSource) -> SkillCatalog:
    return SkillLibrary(lambda: sources).catalog()


def user(folder: Path) -> SkillSource:
    return SkillSource("user", folder)


def reported(catalog: SkillCatalog) -> list[tuple[str, str]]:
    return [(problem.file, problem.error.code) for problem in catalog.problems]


def test_each_folder_with_a_skill_file_is_a_skill_in_the_order_of_ids(tmp_path: Path) -> None:
    for name in ("zebra", "alpha", "Mitte"):
        write(tmp_path, {f"skills/{name}/SKILL.md": skill_text(name.lower())})
    write(tmp_path, {"skills/no-skill/readme.md": "x", "skills/SKILLS.md": "x"})
    write(tmp_path, {"skills/.hidden/SKILL.md": skill_text("hidden")})
    catalog = found(user(tmp_path / "skills"))
    assert [skill.id for skill in catalog.skills] == ["alpha", "mitte", "zebra"]
    assert catalog.skills[1].file == "skills/Mitte/SKILL.md"
    assert catalog.problems == ()


def test_the_body_is_not_read(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "big")
    with (folder / "SKILL.md").open("ab") as file:
        file.write(b"\xff\xfe not UTF-8")
        file.truncate(60_000_000)
    catalog = found(user(tmp_path))
    assert [skill.id for skill in catalog.skills] == ["big"]


def test_the_first_source_wins_and_the_other_is_told(tmp_path: Path) -> None:
    write_skill(tmp_path / "mine", "same", description="mine")
    write_skill(tmp_path / "app" / PROJECT_FOLDER, "same", description="evil")
    write_skill(tmp_path / "app" / PROJECT_FOLDER, "other")
    project = SkillSource("project", tmp_path / "app", PROJECT_FOLDER)
    catalog = found(user(tmp_path / "mine"), project)
    assert [(s.id, s.kind, s.about.description) for s in catalog.skills] == [
        ("other", "project", "About other."),
        ("same", "user", "mine"),
    ]
    (problem,) = catalog.problems
    assert problem.file == "app/.kode/skills/same/SKILL.md"
    assert "taken by mine/same/SKILL.md" in problem.error.message


def test_a_malformed_skill_is_told_and_the_others_are_there(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    write(tmp_path, {"bad/SKILL.md": "---\nid: bad\nname: Bad\n---\n", "odd~1/SKILL.md": "x"})
    catalog = found(user(tmp_path))
    assert [skill.id for skill in catalog.skills] == ["good"]
    label = tmp_path.name
    assert reported(catalog) == [
        (f"{label}/bad/SKILL.md", "SkillInvalid"),
        (f"{label}/odd~1/SKILL.md", "PathOutsideRoots"),
    ]


def test_a_folder_that_a_configuration_names_must_be_there(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert reported(found(user(nowhere))) == []
    assert reported(found(SkillSource("project", tmp_path, PROJECT_FOLDER))) == []
    assert reported(found(SkillSource("config", nowhere))) == [("nowhere/.", "NotFound")]
    write(tmp_path, {"file": "x"})
    assert reported(found(SkillSource("config", tmp_path / "file"))) == [("file/.", "NotFound")]
    one = write_skill(tmp_path / "set", "one")
    assert [skill.id for skill in found(SkillSource("config", one)).skills] == ["one"]
    with pytest.raises(KodeError, match="There is no folder of skills nowhere") as caught:
        found(SkillSource("config", nowhere)).only(["review"])
    assert caught.value.code == "SkillNotFound"


def test_links_lead_nowhere_outside(tmp_path: Path) -> None:  # W11
    write_skill(tmp_path / "elsewhere", "foreign")
    write_skill(tmp_path / "skills", "own")
    write(tmp_path, {"skills/cut/readme": ""})
    link(tmp_path / "skills" / "foreign", tmp_path / "elsewhere" / "foreign")
    link(tmp_path / "skills" / "cut" / "SKILL.md", tmp_path / "elsewhere" / "foreign" / "SKILL.md")
    link(tmp_path / "skills" / "again", "own")  # the same skill once more
    catalog = found(user(tmp_path / "skills"))
    assert [skill.id for skill in catalog.skills] == ["own"]
    assert reported(catalog) == [
        ("skills/cut/SKILL.md", "PathOutsideRoots"),
        ("skills/foreign/SKILL.md", "PathOutsideRoots"),
    ]
    assert "name the other folder" in catalog.problems[0].error.message
    link(tmp_path / "linked", tmp_path / "skills")
    assert [skill.id for skill in found(user(tmp_path / "linked")).skills] == ["own"]


def test_a_link_of_a_project_to_skills_outside_of_it_is_refused(tmp_path: Path) -> None:  # W11
    write_skill(tmp_path / "elsewhere", "foreign")
    (tmp_path / "app" / ".kode").mkdir(parents=True)
    link(tmp_path / "app" / PROJECT_FOLDER, tmp_path / "elsewhere")
    catalog = found(SkillSource("project", tmp_path / "app", PROJECT_FOLDER))
    assert catalog.skills == ()
    assert reported(catalog) == [("app/.kode/skills", "PathOutsideRoots")]


def test_a_hard_link_and_a_device_are_no_skill_files(tmp_path: Path) -> None:  # W11
    folder = write_skill(tmp_path, "twice")
    os.link(folder / "SKILL.md", folder / "copy.md")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    label = tmp_path.name
    assert reported(found(user(tmp_path))) == [
        (f"{label}/folder/SKILL.md", "NotEditable"),
        (f"{label}/twice/SKILL.md", "Denied"),
    ]


def test_a_changed_skill_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    file = write_skill(tmp_path, "one") / "SKILL.md"
    os.utime(file, ns=(1, 1))
    library = SkillLibrary(lambda: [user(tmp_path)])
    first = library.catalog().skills[0]
    assert library.catalog().skills[0] is first
    file.write_text(skill_text("one", description="New."), "utf-8")
    assert library.catalog().skills[0].about.description == "New."
    file.unlink()
    assert library.catalog().skills == ()


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_names_that_are_no_text_are_told_as_far_as_they_can_be(tmp_path: Path) -> None:
    good = write_skill(tmp_path, "good")
    write(good, {"references/a.md": "# A"})
    for path in (tmp_path / "odd\udcff" / "SKILL.md", good / "references" / "odd\udcff.md"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(skill_text("odd"), "utf-8")
    catalog = found(user(tmp_path))
    assert reported(catalog) == [(f"{tmp_path.name}/odd?/SKILL.md", "SkillInvalid")]
    assert load_skill(catalog.skills[0]).files == ("references/a.md",)


def test_too_many_folders_are_told(tmp_path: Path) -> None:  # W16
    for number in range(MAX_SKILLS + 1):
        (tmp_path / f"f{number:03}").mkdir()
    write(tmp_path, {"f000/SKILL.md": skill_text("first"), f"f{MAX_SKILLS}/SKILL.md": "bad"})
    catalog = found(user(tmp_path))
    assert [skill.id for skill in catalog.skills] == ["first"]
    assert [problem.error.code for problem in catalog.problems] == ["TooLarge"]


def test_a_missing_or_malformed_skill_that_is_asked_for_fails_clearly(tmp_path: Path) -> None:
    write_skill(tmp_path, "review")
    write_skill(tmp_path, "docs")
    write(tmp_path, {"broken/SKILL.md": "---\nid: broken\nname: B\n---\n"})
    catalog = found(user(tmp_path))
    assert [skill.id for skill in catalog.only(["review"]).skills] == ["review"]
    assert catalog.only([]) == SkillCatalog()
    with pytest.raises(KodeError, match=r"no skill 'reviews'; did you mean review\?") as caught:
        catalog.only(["docs", "reviews"])
    assert (caught.value.code, caught.value.category) == ("SkillNotFound", "skill")
    with pytest.raises(KodeError, match="there are: docs, review"):
        catalog.get("xyz")
    with pytest.raises(KodeError, match="line 2: `description`: is missing") as caught:
        catalog.only(["broken"])
    assert caught.value.code == "SkillInvalid"
    with pytest.raises(KodeError, match="there are: none"):
        SkillCatalog().get("a")


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_the_index_lists_them_within_its_bounds(tmp_path: Path, locale: Locale) -> None:  # B3
    prompts = PromptFiles(find_prompts(), locale)
    write_skill(tmp_path, "b", description="Costs $5.", tags="[x, y]")
    write_skill(tmp_path, "a", name="a")
    catalog = found(user(tmp_path))
    index = skill_index(prompts, catalog.skills)
    assert index.endswith("- `a`: About a.\n- `b` (B): Costs $5. [x, y]")
    assert "`load_skill`" in index
    assert index == skill_index(prompts, found(user(tmp_path)).skills)
    assert skill_index(prompts, ()) == ""
    for number in range(40):
        write_skill(tmp_path, f"n{number}", description="字" * 1000)
    index = skill_index(prompts, found(user(tmp_path)).skills)
    assert len(index.encode()) < MAX_INDEX_BYTES + 2_000
    assert index.endswith(" more are not listed]")


def test_only_the_beginning_of_a_file_is_looked_at(tmp_path: Path) -> None:  # W16
    head = skill_text("late", description="x").replace("---\n", "", 1)
    write(tmp_path, {"late/SKILL.md": "---\n" + "# pad\n" * MAX_FRONT_MATTER_BYTES + head})
    (problem,) = found(user(tmp_path)).problems
    assert "does not end within" in problem.error.message
