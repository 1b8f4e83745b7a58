"""A project and a model that are both against the user: nothing leaves, runs or keeps waiting."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Played
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.hostile_project import HostileProject
from tests.support.model_script import answer, text
from tests.support.pings import Pings, percentile
from tests.support.processes import children
from tests.support.program import ROOT, SERVE
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.strace import LINUX_ONLY, Call, read_log, strace

pytestmark = [pytest.mark.program, LINUX_ONLY]

BATCH = 20
MOST_PING_SECONDS = 0.25
SYSTEM_CALLS = ("execve", "execveat", "connect", "sendto")
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_PROGRAM = re.compile(r'execve\w*\((?:\S+, )?"([^"]*)"')


class HostileModel(AnsweringModel):
    """Calls everything, a batch for each prompt, and is content with whatever it gets."""

    def __init__(self, project: HostileProject) -> None:
        self._batches = list(project.calls(BATCH))
        super().__init__(self._next)

    def _next(self, body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return answer(text("on"))
        asked = [match for one in user_texts(body) if (match := re.search(r"(?m)^go (\d+)$", one))]
        return answer(*self._batches[int(asked[-1][1])])


def results(world: World) -> dict[str, dict[str, Any]]:
    """What became of each call, by its id."""
    blocks = [event["block"] for event in world.events() if event["type"] == "block.completed"]
    return {one["toolUseId"]: one for one in blocks if one["type"] == "tool_result"}


def strangers(calls: list[Call], port: int) -> list[str]:
    """Other programs than ripgrep, and other places than the model's."""
    programs = [match[1] for call in calls if (match := _PROGRAM.search(call.text))]
    started = programs[1:]  # the first is the sidecar itself
    ports = {int(match[1]) for call in calls for match in _PORT.finditer(call.text)}
    foreign = [name for name in started if not re.search(r"/(?:python[\d.]*|rg)$", name)]
    return [*foreign, *(f"port {one}" for one in ports - {port, 0})]


async def test_nothing_leaks_runs_or_waits(tmp_path: Path, played: Played) -> None:
    project = HostileProject(tmp_path / "project")
    project.build()
    assert len(project.tries) >= 100
    before = everything(project.root)
    log = tmp_path / "strace.log"
    below = strace(log, SYSTEM_CALLS, (), "-s", "300", "--seccomp-bpf")
    secret = "canary-of-the-environment"
    path = os.pathsep.join([".", str(project.root), os.environ["PATH"]])
    async with sidecar(
        model=HostileModel(project),
        roots=[project.root],
        cwd=project.root,
        command=[*below, *SERVE],
        environment={"PATH": path, "KODE_TEST_WORD": secret},
    ) as world:
        world.editor.open(project.root / "names" / ".env")
        world.editor.open(project.root / "big.txt", "-----BEGIN PRIVATE KEY-----\n" * 400_000)
        session = await world.session(mode="auto")
        async with Pings(world, children(world.pid)[0]) as pings:
            for number in range(-(-len(project.tries) // BATCH)):
                await world.turn(session, f"go {number}")
        reported = results(world)
        port = int(world.model.base_url.rpartition(":")[2].partition("/")[0])
        frames = json.dumps(list(world.client.frames), default=str)
        asked = json.dumps([chat.body for chat in world.model.chats])
        home = world.home
        await world.client.close(HANG_SECONDS)
    check_refusals(project, reported)
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for name, canary in [*project.canaries.items(), ("the environment", secret)]:
        assert canary not in asked, f"{name} reached the model"
        assert canary not in frames or name in (".env",), f"{name} was told"
        assert canary.encode() not in kept, f"{name} was written down"
    assert everything(project.root) == before, "something was written"
    assert strangers(read_log(log), port) == []
    assert not [event for event in world.events() if event.get("code") == "InternalError"]
    played(len(project.tries), "calls of a hostile model")
    print(pings)  # noqa: T201
    assert percentile(pings.worked) < MOST_PING_SECONDS
    assert max(pings.seconds) < HANG_SECONDS / 10, "somebody waited"


def everything(folder: Path) -> dict[str, bytes]:
    """Each file that can be read, and its bytes."""
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


REFUSALS = {
    "credentials by name": r"names? it holds credentials|holds credentials by its name",
    "credentials by content": r"is not read: it holds ",
    "out of the open folders": r"climbs out of|not inside an open folder|leads out of",
    "a hard link": r"is a hard link",
    "a name of Windows": r"names an alternate stream or a drive",
    "characters of a path": r"holds control characters or is too long",
    "not there": r"^There is no (?:file|folder|MCP server|tool named)",
    "no regular file": r"is not a regular file|is a folder\.|is a file\.|levels of symbolic links",
    "Git's own": r"belongs to Git and is never edited",
    "the user": r"^The user d(?:oes|id) not allow",
    "a command": r"did not run: the user does not allow it",
    "wrong arguments": r"^Invalid arguments for|were not a valid JSON object",
    "a quote": r"^`old` (?:occurs more than|does not occur)",
    "an edit": r"exists already|would shrink from",
}
"""Every refusal is one of these kinds."""

EXPECTED = {
    r"(?:read|create|move) '?names/": "credentials by name",
    r"read contents/": "credentials by content",
    r"read hard-env": "credentials by name",
    r"read (?:kode-blob|vscode-remote):": "a name of Windows",
    r"(?:overwrite|move plain.txt to) \.git/hooks": "Git's own",
    r"quote ": "a quote",
    r"no JSON|another shape|deep arguments": "wrong arguments",
    r"an unknown tool|a name not there": "not there",
    r"a command$": "a command",
    r"read (?:\.\./|/|file:|link-out|link-file|\./a/)|move plain.txt to \.\./|list (?:\.\.|/)": (
        "out of the open folders"
    ),
}
"""What must be refused by which, by the name of the try."""


def kind_of(result: dict[str, Any]) -> str:
    """Of a refusal; empty where it is none of ours."""
    said = str(result.get("summary"))
    return next((kind for kind, words in REFUSALS.items() if re.search(words, said)), "")


def check_refusals(project: HostileProject, reported: dict[str, dict[str, Any]]) -> None:
    missing = [one.name for one in project.tries if one.name not in reported]
    assert missing == [], "calls without a result"
    wrong: list[tuple[str, str, str]] = []
    for one in project.tries:
        result = reported[one.name]
        is_refused, kind = bool(result.get("isError")), kind_of(result)
        wanted = next((kind for name, kind in EXPECTED.items() if re.match(name, one.name)), kind)
        if one.refused not in (None, is_refused) or (is_refused and (not kind or kind != wanted)):
            wrong.append((one.name, f"{kind}, not {wanted}", str(result.get("summary"))))
    assert wrong == []


@pytest.mark.parametrize("trusted", [False, True])
async def test_opening_a_folder_starts_nothing(trusted: bool, tmp_path: Path) -> None:
    project, log = HostileProject(tmp_path / "project"), tmp_path / "strace.log"
    project.build()
    below = strace(log, SYSTEM_CALLS, (), "-s", "300", "--seccomp-bpf")
    path = os.pathsep.join([".", str(project.root), os.environ["PATH"]])
    async with sidecar(
        roots=[project.root],
        cwd=project.root,
        command=[*below, *SERVE],
        environment={"PATH": path, "KODE_TEST_WORD": "x"},
        handshake={"trusted": trusted},
    ) as world:
        world.editor.open(project.root / "plain.txt")
        await world.session()
        await world.client.request("kode/doctor", {}, HANG_SECONDS)
        listed = await world.client.request("kode/mcp/list", {}, HANG_SECONDS)
        states = {server["name"]: server["state"] for server in listed["servers"]}
        reported = dict.fromkeys(("planted", "here", "web"), "unapproved")
        assert states == (reported if trusted else {})
        await world.client.close(HANG_SECONDS)
    assert strangers(read_log(log), 0) == []
    assert not (project.root / "ran").exists()


def test_the_doctor_asks_nobody(tmp_path: Path) -> None:
    project, log = HostileProject(tmp_path / "project"), tmp_path / "strace.log"
    project.build()
    path = os.pathsep.join([".", str(project.root), os.environ["PATH"]])
    below = strace(log, SYSTEM_CALLS, (), "-s", "300", "--seccomp-bpf")
    done = subprocess.run(
        [*below, *SERVE[:-1], "doctor"],
        cwd=project.root,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    assert strangers(read_log(log), 0) == []
    assert not (project.root / "ran").exists()
