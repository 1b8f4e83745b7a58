"""The jobs in `examples`, run as their READMEs say, against a model that plays its part. B1 B13"""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from tests.support.git import GIT, git
from tests.support.model_script import answer, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.program

EXAMPLES = ROOT / "examples"


async def run(
    name: str, config: str, answers: Sequence[RecordedResponse], tmp_path: Path
) -> tuple[int, dict[str, Any], ModelServer]:
    """The command of a README in a copy of its folder: exit code, result, and who was asked."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    async with ModelServer(Recording(tuple(answers)), paced=False) as model:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *("run", "--config", config, "--prompt-file", "task.md"),
            *("--sandbox", str(tmp_path / "box"), "--json"),
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "KIMI_API_KEY": "recorded",
                "KIMI_BASE_URL": model.base_url,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(HANG_SECONDS):
            out, err = await process.communicate()
        assert process.returncode is not None, err
        return process.returncode, json.loads(out.splitlines()[-1]), model


def tools_of(box: Path) -> list[tuple[str, str]]:
    lines = (box / "logs" / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    return [(line["tool_name"], line["status"]) for line in map(json.loads, lines)]


REVIEW = "Not yet: members get the discount twice.\n\n## Members pay too little\n"
FINDINGS = [
    {
        "path": "shop/receipt.py",
        "line": 10,
        "severity": "high",
        "message": "price_of takes the discount off already",
    }
]


async def test_the_review_of_a_diff(tmp_path: Path) -> None:
    answers = [
        answer(tool_call("load_skill", {"id": "review-diff"})),
        answer(
            tool_call("read_file", {"path": "workspace/change.diff"}, call_id="a"),
            tool_call("search_code", {"query": "price_of("}, call_id="b"),
        ),
        answer(
            tool_call(
                "write_artifact",
                {"path": "deliverables/review.md", "content": REVIEW},
                call_id="c",
            ),
            tool_call(
                "write_artifact",
                {"path": "deliverables/findings.json", "content": json.dumps(FINDINGS)},
                call_id="d",
            ),
        ),
        answer(text("The review is delivered.")),
    ]
    code, result, model = await run("review-a-diff", "review.yaml", answers, tmp_path)
    box = tmp_path / "box"
    assert (code, result["status"]) == (0, "completed"), result
    assert (box / "deliverables" / "review.md").read_text(encoding="utf-8") == REVIEW
    assert json.loads((box / "deliverables" / "findings.json").read_bytes()) == FINDINGS
    assert [status for _, status in tools_of(box)] == ["ok"] * 5
    asked = model.chats[0].body
    names = [tool["function"]["name"] for tool in asked["tools"]]
    assert sorted(names) == [
        *("list_files", "load_skill", "read_file", "search_code", "write_artifact")
    ]
    reported = [m["content"] for m in model.chats[2].body["messages"] if m["role"] == "tool"]
    assert "tests that no longer" in reported[0]
    assert "+def price_of(name: str, member: bool = False)" in reported[1]
    assert "workspace/shop/receipt.py:8" in reported[2]


async def test_the_review_without_findings_for_programs_is_incomplete(tmp_path: Path) -> None:
    report = {"path": "deliverables/review.md", "content": REVIEW}
    answers = [answer(tool_call("write_artifact", report)), answer(text("Done."))]
    code, result, _ = await run("review-a-diff", "review.yaml", answers, tmp_path)
    assert (code, result["status"]) == (3, "incomplete")
    assert result["error"]["details"] == {"paths": ["deliverables/findings.json"]}


API = "# units\n\n## units.length\n\n- `to_metres(inches: float) -> float`: metres of inches\n" * 2


async def test_docs_from_a_source_tree(tmp_path: Path) -> None:
    docstring = '    """Metres of a length in inches."""\n'
    old = "def to_metres(inches: float) -> float:\n"
    forbidden = {"action": "create", "path": "workspace/units/new.py", "content": "x = 1\n"}
    edits = [{"old": old, "new": old + docstring}]
    answers = [
        answer(tool_call("list_files", {"directory": "workspace"})),
        answer(tool_call("read_file", {"path": "workspace/units/length.py"})),
        answer(tool_call("propose_file", forbidden)),
        answer(tool_call("propose_edit", {"path": "workspace/units/length.py", "edits": edits})),
        answer(tool_call("write_artifact", {"path": "deliverables/api.md", "content": API})),
        answer(text("Documented.")),
    ]
    code, result, _ = await run("docs-from-source", "docs.yaml", answers, tmp_path)
    box, project = tmp_path / "box", tmp_path / "docs-from-source" / "project"
    assert (code, result["status"]) == (0, "completed"), result
    statuses = [status for _, status in tools_of(box)]
    assert statuses == ["ok", "ok", "denied", "ok", "ok"]
    source = project / "units" / "length.py"
    assert (
        source.read_bytes()
        == (EXAMPLES / "docs-from-source" / "project" / "units" / "length.py").read_bytes()
    )
    if GIT is not None:
        patch = str(box / "deliverables" / "changes.patch")
        await asyncio.to_thread(git, project, "apply", "--check", patch)
        await asyncio.to_thread(git, project, "apply", patch)
        assert old + docstring in source.read_text(encoding="utf-8")
