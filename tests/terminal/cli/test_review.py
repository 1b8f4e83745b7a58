"""`kode-sidecar review` as CI calls it: formats, exit codes, several repositories, SARIF."""

import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.grading.json_schema import Schema
from kode_sidecar.terminal.cli.review_report import FORMATS
from tests.support.git import git
from tests.support.review_model import FAULT, Reports, changed_project, reviewing_model
from tests.terminal.cli.test_commands import Done, run

pytestmark = pytest.mark.program

SARIF = Schema((Path(__file__).parent / "sarif" / "schema.json").read_bytes())
WARNING = {
    **FAULT,
    "severity": "warning",
    "category": "naming",
    "title": "A name, that\nlies: 100%",
    "startLine": 4,
    "endLine": 4,
    "quote": "result += items[i]",
    "suggestion": "Call it `sum`.",
    "evidence": [{"path": "app.py", "startLine": 5, "endLine": 5, "quote": "return result"}],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return changed_project(tmp_path / "my project")


async def review(
    root: Path, *arguments: str, reports: Reports = lambda _: [FAULT, WARNING], **wanted: Any
) -> Done:
    """Review with a model that calls the tool as it is asked to, or as `wanted` says."""

    async with reviewing_model(None, reports, wanted=wanted or None) as model:
        return await run(model, root, "review", *arguments)


async def test_text_names_each_finding_and_what_was_not_looked_at(project: Path) -> None:
    (project / "logo.bin").write_bytes(b"\0\1")
    done = await review(project)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "app.py:3: error: The last item is not counted [off-by-one]",
        "  | total([1]) is 0.",
        "app.py:4: warning: A name, that lies: 100% [naming]",
        "  | total([1]) is 0.",
        "  > Call it `sum`.",
        "not looked at: logo.bin: binary",
    ]
    assert "2 findings (1 error, 1 warning)" in done.err


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 5), ("info", 5), ("nit", 5)]
)
async def test_the_exit_code_is_5_from_a_severity_on(
    project: Path, fail_on: str, code: int
) -> None:
    done = await review(project, "--fail-on", fail_on, reports=lambda _: [WARNING])
    assert done.code == code, done.err


async def test_a_file_that_nobody_looked_at_is_no_success(project: Path) -> None:
    done = await review(project, "--fail-on", "error", reports=lambda _: "Looks fine.")
    assert done.code == 3
    assert "not looked at: app.py" in done.out


async def test_a_model_that_reviews_something_else_is_refused(project: Path) -> None:
    done = await review(project, "--fail-on", "error", reports=lambda _: [], paths=["nothing"])
    assert (done.code, done.out) == (1, "")
    assert "reviewed something else" in done.err


async def test_what_is_reviewed(project: Path) -> None:
    git(project, "commit", "-qam", "second")
    asked: list[str] = []

    def reports(prompt: str) -> list[dict[str, Any]]:
        (line,) = (one for one in prompt.splitlines() if "Call `changes`" in one)
        asked.append(line)
        return []

    for arguments in (("HEAD",), ("HEAD~1..HEAD", "--path", "app.py"), ("--base", "HEAD~1")):
        done = await review(project, *arguments, reports=reports)
        assert done.code == 0, done.err
    assert [json.loads(line[line.index("{") : line.rindex("}") + 1]) for line in asked] == [
        {"of": "range", "range": "HEAD", "paths": ["app.py"]},
        {"of": "range", "range": "HEAD~1..HEAD", "paths": ["app.py"]},
        {"of": "branch", "range": "HEAD~1", "paths": ["app.py"]},
    ]
    assert (await review(project, "--staged", reports=reports)).code == 0
    assert (await review(project, "nowhere", reports=reports)).code == 1
    assert len(asked) == 3


async def test_sarif_is_valid_by_its_schema(project: Path) -> None:
    done = await review(project, "--format", "sarif")
    assert done.code == 0, done.err
    assert list(SARIF.problems(done.data)) == []
    (one,) = done.data["runs"]
    error, warning = one["results"]
    assert (error["ruleId"], error["level"]) == ("off-by-one", "error")
    place = error["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "app.py"},
        "region": {"startLine": 3, "endLine": 3},
    }
    assert warning["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 5
    broken = json.loads(done.out)
    broken["runs"][0]["results"][0]["level"] = "fatal"
    broken["runs"][0]["results"][1]["locations"] = {}
    assert len(list(SARIF.problems(broken))) == 2


async def test_annotations_of_github_are_one_line_each(project: Path) -> None:
    done = await review(project, "--format", "github")
    assert done.out.splitlines() == [
        "::error file=app.py,line=3,endLine=3,title=The last item is not counted::total([1]) is 0.",
        "::warning file=app.py,line=4,endLine=4,title=A name%2C that lies%3A 100%25"
        "::total([1]) is 0.",
    ]


async def test_markdown_for_a_comment(project: Path) -> None:
    done = await review(project, "--format", "markdown")
    assert done.out.startswith("# Code review of my project\n\n2 findings (1 error, 1 warning)\n")
    assert "## warning: A name, that lies: 100%\n\n`app.py:4` · naming\n\n```\n" in done.out


async def test_several_repositories_make_one_report(tmp_path: Path) -> None:
    roots = [changed_project(tmp_path / name) for name in ("a", "b")]
    named = [word for root in (*roots, tmp_path / "gone") for word in ("--root", str(root))]
    done = await review(tmp_path, *named, "--format", "json", reports=lambda _: [FAULT])
    assert done.code == 1, done.err
    assert [one["root"] for one in done.data["reviews"]] == [str(root) for root in roots]
    assert [one["findings"][0]["id"] for one in done.data["reviews"]] == ["f1", "f1"]
    assert "gone: " in done.err
    sarif = await review(tmp_path, *named, "--format", "sarif", reports=lambda _: [FAULT])
    assert list(SARIF.problems(sarif.data)) == []
    uris = [
        one["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in sarif.data["runs"]
    ]
    assert uris == ["a/app.py", "b/app.py"]


async def test_notes_of_the_project_count_if_it_is_trusted(project: Path) -> None:
    (project / "REVIEW.md").write_text("Mind the teapots.", encoding="utf-8")
    for trust, expected in (("--trust",), True), ((), False):
        async with reviewing_model(None, lambda _: []) as model:
            done = await run(model, project, "review", *trust)
            assert done.code == 0, done.err
            seen = [str(chat.body["messages"][0]["content"]) for chat in model.chats]
        assert {"Mind the teapots." in one for one in seen} == {expected}


def test_each_format_has_its_test() -> None:
    assert set(FORMATS) == {"text", "json", "sarif", "markdown", "github"}
