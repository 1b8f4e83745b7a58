"""What a model gets of a skill: within its budget, and from its folder only (B8, W11, W16)."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.skill_text import (
    MAX_FILE_BYTES,
    SKILL_BYTES,
    load_skill,
    read_skill_file,
)
from kode_sidecar.agent.context.skills import Skill, SkillLibrary, SkillSource
from kode_sidecar.errors import KodeError
from tests.infrastructure.workspace.test_paths import HOSTILE
from tests.support.files import link, write
from tests.support.skill_files import skill_text, write_skill

LEAST_BYTES = 1_000
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE" * 12
TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)


def skill_in(folder: Path) -> Skill:
    (skill,) = SkillLibrary(lambda: [SkillSource("user", folder)]).catalog().skills
    return skill


def one(folder: Path, body: str = "Do it well.\n", **fields: str) -> Skill:
    write_skill(folder, "one", body, **fields)
    return skill_in(folder)


def refusal(folder: Path, file: str | None = None) -> KodeError:
    skill = skill_in(folder)
    with pytest.raises(KodeError) as caught:
        load_skill(skill) if file is None else read_skill_file(skill, file)
    return caught.value


def test_the_body_and_a_line_for_each_file(tmp_path: Path) -> None:
    skill = one(tmp_path, "\r\n# Steps\r\n1. Read.\r\n", permissions="[run_command]")
    write(
        skill.folder,
        {
            "references/style.md": "\n---\nSome text\n\n# The style\n",
            "references/deep/中文.md": "第一行\n",
            "references/empty.md": "",
            "references/.gitignore": "ignored.md\n",
            "references/ignored.md": "x",
            "templates/report.html": "<!-- $5 -->\n",
            "templates/image.png": b"\x89PNG\0\0",
            "scripts/run.sh": "not listed",
        },
    )
    loaded = load_skill(skill)
    assert loaded.text == (
        "[Skill `one`: One; it says it needs run_command, which grants nothing]\n"
        "# Steps\n1. Read.\n\n"
        "[Files of this skill; read one with load_skill, id `one` and `file`:]\n"
        "- references/.gitignore: ignored.md (11 bytes)\n"
        "- references/deep/中文.md: 第一行 (10 bytes)\n"
        "- references/empty.md: [empty] (0 bytes)\n"
        "- references/style.md: The style (28 bytes)\n"
        "- templates/image.png: [not a text; 6 bytes]\n"
        "- templates/report.html: <!-- $5 --> (12 bytes)"
    )
    assert (len(loaded.files), loaded.left_out) == (6, 0)
    assert read_skill_file(skill, "scripts/run.sh").endswith("\nnot listed")


def test_a_body_beyond_the_budget_fails_clearly(tmp_path: Path) -> None:
    skill = one(tmp_path, "x" * SKILL_BYTES)
    with pytest.raises(KodeError, match=r"the limit is 50,000\. Move parts") as caught:
        load_skill(skill)
    assert caught.value.code == "TooLarge"
    assert load_skill(skill, SKILL_BYTES + 100).text.endswith("xxx")
    with (skill.folder / "SKILL.md").open("ab") as file:
        file.truncate(60_000_000)
    assert refusal(tmp_path).code == "TooLarge"


def test_what_is_no_text_or_a_secret_is_refused(tmp_path: Path) -> None:  # W11
    write(tmp_path, {"one/SKILL.md": skill_text("one", "a\nb\n").encode() + b"\xff"})
    error = refusal(tmp_path)
    assert error.code == "SkillInvalid"
    assert error.details == {"file": f"{tmp_path.name}/one/SKILL.md", "line": 8}
    assert len(skill_text("one", "a\nb\n").splitlines()) == 7
    one(tmp_path, KEY)
    assert refusal(tmp_path).code == "Denied"


def test_hidden_characters_are_told_and_controls_removed(tmp_path: Path) -> None:  # W13
    text = load_skill(one(tmp_path, "a\x1b[0m\u202eb\U000e0041")).text
    assert text.startswith("[Skill `one`: One; it holds invisible characters (U+202E, U+E0041)")
    assert "\x1b" not in text


@pytest.mark.parametrize("path", HOSTILE)
def test_no_hostile_path_leads_out_of_a_skill(tmp_path: Path, path: str) -> None:  # W11
    write(tmp_path, {"outside.txt": "secret"})
    one(tmp_path / "skills")
    error = refusal(tmp_path / "skills", path)
    assert error.code in ("PathOutsideRoots", "NotFound", "NotEditable")
    assert "secret" not in error.message


def test_links_and_secrets_among_its_files(tmp_path: Path) -> None:  # W11
    write(tmp_path, {"outside.txt": "secret"})
    skill = one(tmp_path / "skills")
    write(skill.folder, {"references/a.md": "# A", "references/.env": "KEY=1", "templates/k": KEY})
    link(skill.folder / "references" / "out.md", tmp_path / "outside.txt")
    loaded = load_skill(skill)
    assert loaded.files == ("references/a.md", "templates/k")
    assert "[it holds credentials]" in loaded.text
    codes = {file: refusal(tmp_path / "skills", file).code for file in FILES}
    assert codes == FILES
    outside = link_folder(skill, tmp_path)
    with pytest.raises(KodeError) as caught:
        load_skill(outside)
    assert caught.value.code == "PathOutsideRoots"


FILES = {
    "references/out.md": "PathOutsideRoots",
    "references/.env": "Denied",
    "templates/k": "Denied",
    "references/nothing.md": "NotFound",
    "references": "NotEditable",
}


def link_folder(skill: Skill, outside: Path) -> Skill:
    """Its templates are then somewhere else."""
    for file in (skill.folder / "templates").iterdir():
        file.unlink()
    (skill.folder / "templates").rmdir()
    link(skill.folder / "templates", outside)
    return skill


def test_a_long_file_comes_in_pieces(tmp_path: Path) -> None:
    skill = one(tmp_path)
    lines = [f"line {number} {'字' * 30}" for number in range(1, 101)]
    write(skill.folder, {"references/long.md": "\n".join(lines), "big": "x" * (MAX_FILE_BYTES + 1)})
    start, seen = 1, list[str]()
    while start:
        text = read_skill_file(skill, "references/long.md", start, LEAST_BYTES)
        assert len(text.encode()) <= LEAST_BYTES
        head, _, body = text.partition("\n")
        assert head.endswith(f"from line {start} of 100]")
        body, cut, after = body.partition("\n[cut here; next: start=")
        seen += body.rstrip("\n").split("\n")
        start = int(after.rstrip("]")) if cut else 0
    assert seen == lines
    with pytest.raises(KodeError, match="there is no line 101"):
        read_skill_file(skill, "references/long.md", 101)
    assert refusal(tmp_path, "big").code == "TooLarge"


@given(
    body=TEXTS | st.integers(0, 3_000).map(lambda count: "语" * count),
    files=st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), TEXTS, max_size=30),
    budget=st.integers(LEAST_BYTES, 4_000),
)
def test_nothing_exceeds_its_budget(body: str, files: dict[str, str], budget: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        skill = one(Path(folder), body)
        write(skill.folder, {f"references/{name}": text for name, text in files.items()})
        try:
            loaded = load_skill(skill, budget)
        except KodeError as error:
            assert error.code == "TooLarge"  # noqa: PT017 - both ends are fine
            assert len(body.encode()) > budget - 400
            return
        assert len(loaded.text.encode()) <= budget
        assert len(loaded.files) + loaded.left_out == len(files)
        reported = re.search(r"\n- \[(\d+) more are not listed\]$", loaded.text)
        assert (int(reported[1]) if reported else 0) == loaded.left_out
        for name in files:
            text = read_skill_file(skill, f"references/{name}", 1, budget)
            assert len(text.encode()) <= budget
