"""Edits done at once in a copy: bytes kept, policy obeyed, and a patch the project takes. B4 B9"""

import os
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.agent.tools.governed import governed, path_subject
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.propose_file import propose_file_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.core.domain.permission import Rule
from kode_sidecar.core.domain.run_policy import effective_policy
from kode_sidecar.core.kernel import tool_specs
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.governed_proposals import GovernedProposals, WrittenFiles
from kode_sidecar.jobs.run.project_copy import copy_project
from kode_sidecar.jobs.run.project_patch import ProjectChanges, project_changes
from kode_sidecar.jobs.run.sandbox import make_sandbox
from kode_sidecar.servers.boot.system import RandomIds, SystemClock
from tests.infrastructure.workspace.test_paths import HOSTILE
from tests.support.files import link, write
from tests.support.run_tools import folder_change_sets


class Desk:
    """A project, its copy, and the governed tools of an agent that works on the copy."""

    def __init__(
        self,
        root: Path,
        files: dict[str, str | bytes],
        rules: Sequence[Rule] = (),
        *,
        delete: bool = False,
        file_encoding: str | None = None,
    ) -> None:
        self.project, self.box = root / "project", root / "box"
        write(self.project, files)
        (self.box / "workspace").mkdir(parents=True)
        self.copy = copy_project(
            self.project, self.box / "workspace", self.box / "import.zip", apart=self.box
        )
        sandbox = make_sandbox(self.box)
        zones = [zone.path for zone in sandbox.writable]
        workspace = Workspace(zones, "utf-16", file_encoding=file_encoding)
        policy = effective_policy(shell=False, delete=delete, rules=rules)
        self.refused: list[KodeError] = []
        self.written = WrittenFiles()
        sets = folder_change_sets(sandbox, workspace, SystemClock(), RandomIds())
        files, shown = sets.session_files, sets.freshness
        edits = GovernedProposals(
            sets.proposals,
            sets.permissions,
            workspace,
            policy,
            lambda _place: None,
            self.copy.check_free,
            self.written,
            lambda _place, _call: None,
        )
        read = read_file_tool(workspace, files, shown.note)
        edit = propose_edit_tool(edits, files, shown)
        whole = propose_file_tool(edits, files, shown)
        self.tools = {
            "read_file": governed(read, policy, path_subject(workspace)),
            "propose_edit": governed(edit, policy),
            "propose_file": governed(whole, policy),
        }

    async def use(self, name: str, **arguments: Any) -> ToolOutcome:
        tool = self.tools[name]
        given = tool.accept(arguments) if tool.accept else msgspec.convert(arguments, tool.params)
        return await tool.run(given, ToolCall("use", name, "session", "turn", "message"))

    async def code(self, name: str, **arguments: Any) -> str:
        try:
            await self.use(name, **arguments)
        except KodeError as error:
            self.refused.append(error)
            return error.code
        return ""

    def bytes_of(self, path: str) -> bytes:
        return (self.box / "workspace" / path).read_bytes()

    def changes(self) -> ProjectChanges:
        return project_changes(self.copy, self.written.origins, self.written.touched)


def edit(old: str, new: str) -> dict[str, Any]:
    return {"edits": [{"old": old, "new": new}]}


@pytest.mark.parametrize(
    ("before", "after", "encoding"),
    [
        (b"one\r\ntwo\r\n", b"one\r\n2\r\nzwei\r\n", None),
        (b"one\r\ntwo\nthree", b"one\r\n2\nzwei\nthree", None),
        (b"two", b"2\nzwei", None),
        (b"\xef\xbb\xbftwo\n", b"\xef\xbb\xbf2\nzwei\n", None),
        ("价目 two\r\n".encode("gbk"), "价目 2\r\nzwei\r\n".encode("gbk"), "gbk"),
        ("two\n".encode("utf-16"), "2\nzwei\n".encode("utf-16"), None),
    ],
)
async def test_bytes_that_are_not_edited_stay(
    tmp_path: Path, before: bytes, after: bytes, encoding: str | None
) -> None:
    desk = Desk(tmp_path, {"a.txt": before}, file_encoding=encoding)
    outcome = await desk.use("propose_edit", path="a.txt", **edit("two", "2\nzwei"))
    assert outcome.content.startswith("Your edit was applied to workspace/a.txt.")
    assert desk.bytes_of("a.txt") == after
    assert (desk.project / "a.txt").read_bytes() == before
    shown = await desk.use("read_file", path="a.txt")
    assert "2" in shown.content


async def test_whole_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a.txt": "a\n", "run.sh": "#!/bin/sh\n", "old.txt": "o\n"}, delete=True)
    (desk.box / "workspace" / "run.sh").chmod(0o755)
    await desk.use("propose_file", action="create", path="new/价 目.txt", content="n\r\n")
    await desk.use("propose_edit", path="new/价 目.txt", **edit("n", "m"))
    await desk.use("propose_file", action="move", path="a.txt", to="b/c.txt")
    await desk.use("propose_file", action="move", path="b/c.txt", to="b/d.txt")
    await desk.use("propose_file", action="delete", path="old.txt")
    await desk.use("read_file", path="run.sh")
    await desk.use("propose_file", action="overwrite", path="run.sh", content="#!/bin/bash\n")
    await desk.use("propose_file", action="create", path="deliverables/r.md", content="r\n")
    reported = {one.path: (one.kind, one.origin) for one in desk.changes().files}
    assert reported == {
        "new/价 目.txt": ("created", ""),
        "b/d.txt": ("moved", "a.txt"),
        "old.txt": ("deleted", ""),
        "run.sh": ("changed", ""),
    }
    assert desk.bytes_of("new/价 目.txt") == b"m\r\n"
    assert (desk.box / "deliverables" / "r.md").read_bytes() == b"r\n"
    if sys.platform != "win32":
        mode = (desk.box / "workspace" / "run.sh").stat().st_mode
        assert stat.S_IMODE(mode) == 0o755


async def test_a_patch_of_several_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a.txt": "a\n", "b.txt": "b\n"})
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** Add File: c.txt\n+c\n"
        "*** Delete File: b.txt\n*** End Patch"
    )
    assert await desk.code("propose_edit", patch=patch) == "Denied"
    assert "propose_edit (delete) on workspace/b.txt" in desk.refused[0].message
    assert [one.path for one in desk.changes().files] == ["a.txt", "c.txt"]


Refused = Callable[[Desk], Awaitable[str]]
CI = ".github/workflows/ci.yml"
REFUSED: dict[str, tuple[Refused, str]] = {
    "delete": (lambda d: d.code("propose_file", action="delete", path="a.txt"), "Denied"),
    "sensitive": (lambda d: d.code("propose_edit", path=CI, **edit("on", "off")), "Denied"),
    "new sensitive": (
        lambda d: d.code("propose_file", action="create", path=".exrc", content="x\n"),
        "Denied",
    ),
    "move to sensitive": (
        lambda d: d.code("propose_file", action="move", path="a.txt", to=".vscode/a.txt"),
        "Denied",
    ),
    "git": (
        lambda d: d.code("propose_file", action="create", path=".git/hooks/x", content="x\n"),
        "Denied",
    ),
    "credentials": (
        lambda d: d.code("propose_file", action="create", path=".env", content="x\n"),
        "Denied",
    ),
    "ignored in the project": (
        lambda d: d.code("propose_file", action="create", path="a.log", content="x\n"),
        "Denied",
    ),
    "out of the sandbox": (
        lambda d: d.code("propose_file", action="create", path="../x", content="x\n"),
        "PathOutsideRoots",
    ),
    "the project itself": (
        lambda d: d.code("propose_edit", path=str(d.project / "a.txt"), **edit("a", "b")),
        "PathOutsideRoots",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refusals_are_typed(tmp_path: Path, case: str) -> None:
    files: dict[str, str | bytes] = {"a.txt": "a\n", CI: "on: push\n", ".gitignore": "*.log\n"}
    desk = Desk(tmp_path, {**files, "a.log": "log"})
    run, code = REFUSED[case]
    assert await run(desk) == code
    assert [error.code for error in desk.refused] == [code]
    assert desk.changes().files == ()


async def test_what_a_rule_names_is_allowed(tmp_path: Path) -> None:
    rules = [Rule("propose_edit", f"workspace/{CI}")]
    desk = Desk(tmp_path, {CI: "on: push\n"}, rules)
    await desk.use("propose_edit", path=CI, **edit("push", "pull_request"))
    assert [one.path for one in desk.changes().files] == [CI]


async def test_a_denied_folder_is_not_read(tmp_path: Path) -> None:
    rules = [Rule("read_file", "workspace/private/**", "deny")]
    desk = Desk(tmp_path, {"private/a.txt": "a\n", "b.txt": "b\n"}, rules)
    for path in ("private/a.txt", "./private//a.txt", "workspace/PRIVATE/../b.txt"):
        assert await desk.code("read_file", path=path) in ("Denied", "PathOutsideRoots")
    assert len(desk.refused) == 3
    assert await desk.code("read_file", path="b.txt") == ""


@pytest.mark.parametrize("action", ["create", "move", "delete", "overwrite"])
async def test_hostile_paths(tmp_path: Path, action: str) -> None:
    desk = Desk(tmp_path, {"a.txt": "a\n"}, delete=True)
    link(desk.box / "workspace" / "out", tmp_path)
    for path in (*HOSTILE, "out/x"):
        more = {"path": "a.txt", "to": path} if action == "move" else {"path": path}
        if action in ("create", "overwrite"):
            more["content"] = "x\n"
        assert await desk.code("propose_file", action=action, **more) == "PathOutsideRoots", path
    assert len(desk.refused) == len(HOSTILE) + 1
    assert desk.changes().files == ()


async def test_a_tool_without_any_permission_is_known_but_not_offered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a.txt": "a\n"}, [Rule("propose_file", "**", "deny")])
    tools: Sequence[Tool] = list(desk.tools.values())
    assert [spec.name for spec in tool_specs(tools)] == ["read_file", "propose_edit"]
    assert await desk.code("propose_file", action="create", path="x", content="x\n") == "Denied"
    assert [error.category for error in desk.refused] == ["permission"]


async def test_lines_of_no_known_characters(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a.txt": "价 two\n".encode("gbk")}, file_encoding="gbk")
    assert await desk.code("propose_edit", path="a.txt", **edit("two", "😀")) == "Unencodable"
    assert await desk.code("propose_file", action="create", path="a.txt/b", content="b\n")
    assert os.listdir(desk.box / "workspace") == ["a.txt"]
