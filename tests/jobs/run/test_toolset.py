"""The tools of a run in its sandbox: what they may, what they deliver, what not. B4 B9 W11"""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.core.domain.run import RunRecord
from kode_sidecar.core.kernel import tool_specs
from kode_sidecar.core.kernel.contracts import ToolCall, ToolOutcome
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_log import Redaction
from kode_sidecar.infrastructure.records.run_records import RunRecords
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.artifacts import Artifacts
from kode_sidecar.jobs.run.contracts import RunScope
from kode_sidecar.jobs.run.project_copy import ProjectCopy, import_project
from kode_sidecar.jobs.run.project_patch import CHANGES_PATCH, deliver_changes
from kode_sidecar.jobs.run.run_config import parse_run_config
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.sandbox import Sandbox, make_sandbox
from kode_sidecar.jobs.run.toolset import RunTools
from kode_sidecar.servers.boot.system import SystemClock
from tests.support.files import write
from tests.support.git import GIT, git
from tests.support.headless_world import SCRIPTED, HeadlessWorld, call
from tests.support.run_tools import offered_tools

CONFIG = "kgent: {schema_version: 1}\nprofile: {id: reviewer, role: You review.}\n"
READS = ["read_file", "list_files", "search_code"]
EDITS = ["propose_edit", "propose_file"]
OTHERS = ["write_artifact", "explore", "update_plan"]


class Notes:
    """What a log and a register were told: real ones, in a folder beside the sandbox."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        record = RunRecord(
            session_id="s", task_id="t", run_id="r", sandbox_root="", created_at="", updated_at=""
        )
        self.log = EventLog(
            RunRecords(folder),
            lambda: record,
            SystemClock(),
            Redaction([]),
            lambda event: self.events.append((event.type, event.data)),
            lambda: None,
        )
        self.register = Artifacts(sandbox, lambda: "")

    @property
    def artifacts(self) -> dict[str, tuple[str, str, str]]:
        return {
            one.path: (one.kind, one.created_by, one.content_type) for one in self.register.found
        }


class Run:
    """The tools of a run, without an engine."""

    def __init__(self, root: Path, config: str = "") -> None:
        self.base = root
        self.box = root / "box"
        self.box.mkdir()
        sandbox = make_sandbox(self.box)
        self.notes = Notes(root / "records", sandbox)
        self.scope = RunScope(
            parse_run_config(CONFIG + config, "run.yaml"),
            sandbox,
            Workspace([zone.path for zone in sandbox.readable], "utf-16"),
            self.notes.log,
            self.notes.register,
        )
        self.project: ProjectCopy | None = None

    async def start(self) -> "Run":
        self.project = await import_project(self.scope, self.base)
        services = replace(HeadlessWorld(self.base).services, environ=os.environ)
        toolset = RunTools(self.scope, services, self.project)
        self.tools = offered_tools(toolset, self.scope, services)
        self.written = toolset.written
        return self

    async def use(self, name: str, **arguments: Any) -> ToolOutcome:
        tool = self.tools[name]
        read = tool.accept or (lambda given: msgspec.convert(given, tool.params))
        return await tool.run(read(arguments), ToolCall("use", name, "session", "run", "message"))

    async def code(self, name: str, **arguments: Any) -> str:
        try:
            await self.use(name, **arguments)
        except KodeError as error:
            return error.code
        return ""

    async def deliver(self) -> bytes | None:
        assert self.project is not None
        await deliver_changes(self.scope, self.project, self.written)
        path = self.box / CHANGES_PATCH
        return path.read_bytes() if path.exists() else None


def offered(run: Run) -> list[str]:
    return [spec.name for spec in tool_specs(list(run.tools.values()))]


async def test_dangerous_tools_are_off_by_default(tmp_path: Path) -> None:
    run = await Run(tmp_path).start()
    assert offered(run) == [*READS, *EDITS, *OTHERS]
    assert await run.code("run_command", argv=["git", "status"]) == "Denied"


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ("tools: {shell: {enabled: true}}", [*READS, *EDITS, *OTHERS, "run_command"]),
        ("tools: {offer: [read_file, write_artifact]}", ["read_file", "write_artifact"]),
        ("tools: {offer: [run_command]}", []),
        ("tools: {permissions: [{tool: search_code, effect: deny}], offer: [search_code]}", []),
    ],
)
async def test_what_is_offered(tmp_path: Path, config: str, names: list[str]) -> None:
    assert offered(await Run(tmp_path, config).start()) == names


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("offer: [reed_file]", "there is no tool 'reed_file'"),
        ("permissions: [{tool: shell, effect: deny}]", "there is no tool 'shell'"),
        ("permissions: [{tool: 'read_file:delete', effect: deny}]", "is nothing a tool does"),
        (
            "permissions: [{tool: search_code, path: workspace/a/**, effect: deny}]",
            "workspace.exclude",
        ),
        ("shell: {environment: [MY_TOKEN]}", "holds a key"),
    ],
)
async def test_rules_without_effect_are_refused(tmp_path: Path, rules: str, said: str) -> None:
    with pytest.raises(KodeError) as refused:
        await Run(tmp_path, f"tools: {{{rules}}}").start()
    assert refused.value.code == "ConfigInvalid"
    assert said in refused.value.message


async def test_a_project_is_worked_on_and_given_back_as_a_patch(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "app/a.py": "one\r\ntwo\r\n",
            "app/old.txt": "old\n",
            "app/.env": "KEY=1\n",
            "app/docs/x.md": "x\n",
        },
    )
    config = (
        "workspace: {import: app, exclude: [docs/]}\ntools: {filesystem: {delete: true}}\n"
        "deliverables: [{path: deliverables/changes.patch}]"
    )
    run = await Run(tmp_path, config).start()
    kind, data = run.notes.events[0]
    assert (kind, data["files"], len(data["left_out"])) == ("workspace.imported", 2, 1)
    await run.use("propose_edit", path="workspace/a.py", edits=[{"old": "two", "new": "2"}])
    await run.use("propose_file", action="create", path="new.txt", content="new\n")
    await run.use("propose_file", action="delete", path="old.txt")
    await run.use("write_artifact", path="workspace/notes.md", content="n\n")
    await run.use("write_artifact", path="deliverables/report.md", content="# Report\n")
    await run.use("write_artifact", path="deliverables/report.md", content="more\n", append=True)
    assert (run.box / "deliverables/report.md").read_text() == "# Report\nmore\n"
    patch = await run.deliver()
    assert run.notes.events[-1][0] == "workspace.changed"
    assert patch is not None
    if GIT is not None:
        for check in (["--check"], []):
            patch_file = str(run.box / CHANGES_PATCH)
            await asyncio.to_thread(git, tmp_path / "app", "apply", *check, patch_file)
        names = {path.name for path in (tmp_path / "app").iterdir()}
        assert names == {"a.py", "new.txt", "notes.md", ".env", "docs"}
        assert (tmp_path / "app/a.py").read_bytes() == b"one\r\n2\r\n"
    assert run.notes.artifacts == {
        "archive/workspace-import.zip": ("workspace", "runtime", "application/zip"),
        "deliverables/report.md": ("deliverable", "write_artifact", "text/markdown"),
        "workspace/notes.md": ("workspace", "write_artifact", "text/markdown"),
        CHANGES_PATCH: ("deliverable", "runtime", "text/x-diff"),
    }


async def test_a_patch_is_never_a_lie(tmp_path: Path) -> None:
    """Neither a tool nor a program can deliver another one, and none is delivered for nothing."""
    write(tmp_path, {"app/a.py": "a\n"})
    run = await Run(tmp_path, "workspace: {import: app}").start()
    for path in (CHANGES_PATCH, "deliverables//./changes.patch", str(run.box / CHANGES_PATCH)):
        assert await run.code("write_artifact", path=path, content="x") == "Denied"
        assert await run.code("propose_file", action="create", path=path, content="x") == "Denied"
    write(run.box, {CHANGES_PATCH: "forged"})
    assert await run.deliver() is None


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("workspace/a.py", "ToolFailed"),
        ("workspace/a.log", "Denied"),
        ("workspace/.git/hooks/pre-commit", "Denied"),
        ("workspace/.github/workflows/x.yml", "Denied"),
        ("deliverables/.envrc", "Denied"),
        ("deliverables/.env", "Denied"),
        ("archive/x", "PathOutsideRoots"),
        ("logs/tools.jsonl", "PathOutsideRoots"),
        ("run.json", "PathOutsideRoots"),
        ("report.md", "PathOutsideRoots"),
        ("deliverables", "NotEditable"),
    ],
)
async def test_where_artifacts_do_not_go(tmp_path: Path, path: str, code: str) -> None:
    write(tmp_path, {"app/a.py": "a\n", "app/.gitignore": "*.log\n", "app/a.log": "log"})
    run = await Run(tmp_path, "workspace: {import: app}").start()
    before = sorted(run.box.rglob("*"))
    assert await run.code("write_artifact", path=path, content="x\n") == code
    assert sorted(run.box.rglob("*")) == before


async def test_keys_are_not_delivered(tmp_path: Path) -> None:
    run = await Run(tmp_path).start()
    text = "use sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    assert await run.code("write_artifact", path="deliverables/a.md", content=text) == "Denied"


async def test_the_archive_is_read_and_never_edited(tmp_path: Path) -> None:
    run = await Run(tmp_path).start()
    write(run.box, {"archive/notes.txt": "kept\n"})
    assert "kept" in (await run.use("read_file", path="archive/notes.txt")).content
    edits = [{"old": "kept", "new": "gone"}]
    for code in (
        await run.code("propose_edit", path="archive/notes.txt", edits=edits),
        await run.code("propose_file", action="create", path="archive/b.txt", content="b\n"),
        await run.code("propose_file", action="move", path="archive/notes.txt", to="c.txt"),
    ):
        assert code == "PathOutsideRoots"
    assert (run.box / "archive/notes.txt").read_text() == "kept\n"


async def test_commands_work_in_the_copy_and_their_output_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = Path(sys.executable)
    monkeypatch.setenv("PATH", str(python.parent))
    write(tmp_path, {"app/a.txt": "a\n"})
    allow = f"allow: [[{python.name}]]"
    shell = f"tools: {{shell: {{enabled: true, {allow}, max_output_bytes: 100000}}}}"
    run = await Run(tmp_path, f"workspace: {{import: app}}\n{shell}").start()
    code = "open('a.txt', 'wb').write(b'b\\n'); print('x\\n' * 30_000)"
    outcome = await run.use("run_command", argv=[python.name, "-c", code])
    assert outcome.artifacts == ("archive/commands/1.log",)
    assert (run.box / "archive/commands/1.log").read_bytes().strip().count(b"x") == 30_000
    assert run.notes.artifacts["archive/commands/1.log"][:2] == ("tool_output", "run_command")
    assert await run.code("run_command", argv=["git", "status"]) == "Denied"
    patch = await run.deliver()
    assert patch is not None
    assert b"-a\n+b\n" in patch


async def test_what_an_allowed_command_does_beside_its_rule_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that allows `git log` names neither a file to write nor a program to run."""
    if GIT is None:
        pytest.skip("NOT RUN: there is no git")
    monkeypatch.setenv("PATH", str(Path(GIT).parent))
    write(tmp_path, {"app/a.txt": "a\n"})
    allow = "allow: [[git, log], [git, grep], [git, diff, --output=named.txt, --stat]]"
    shell = f"tools: {{shell: {{enabled: true, {allow}}}}}"
    run = await Run(tmp_path, f"workspace: {{import: app}}\n{shell}").start()
    commands = {
        "git log --output=out.txt": "--output=out.txt",
        "git grep -Otouch x": "-Otouch",
        "git log --ext-diff": "--ext-diff",
        "git log -1 --oneline": "",
        "git diff --output=named.txt --stat": "",
    }
    for command, why in commands.items():
        run.notes.events.clear()
        await run.use("run_command", argv=command.split())
        reported = [data["why"] for kind, data in run.notes.events if kind == "command.risk"]
        assert len(reported) == (1 if why else 0), command
        assert all(why in one for one in reported)


@pytest.mark.parametrize(
    ("source", "code"),
    [("nowhere", "ConfigInvalid"), ("../app", "PathOutsideRoots"), ("a.txt", "ConfigInvalid")],
)
async def test_projects_that_cannot_be_imported(tmp_path: Path, source: str, code: str) -> None:
    write(tmp_path, {"a.txt": ""})
    with pytest.raises(KodeError) as refused:
        await Run(tmp_path, f"workspace: {{import: {source}}}").start()
    assert refused.value.code == code


async def test_a_project_that_is_not_utf_8_comes_back_in_its_own_bytes(tmp_path: Path) -> None:
    world = HeadlessWorld(tmp_path)
    world.services = replace(world.services, file_encoding="gbk")
    write(tmp_path, {"app/价目.txt": "价目 one\r\n".encode("gbk")})
    edits = [{"old": "one", "new": "目"}]
    edit = call("propose_edit", path="workspace/价目.txt", edits=edits)
    world.write(f"{SCRIPTED}workspace: {{import: app}}\n", [{"calls": [edit]}, {"say": "Done."}])
    result = await world.run()
    patch = (Path(result.sandbox_root) / CHANGES_PATCH).read_bytes()
    assert "-价目 one\r\n+价目 目\r\n".encode("gbk") in patch
