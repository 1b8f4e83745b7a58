"""Plays reviews of all cases through the real process, and compares what a user would see."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.review.behaviour import BEHAVIOURS, SAY_NOTHING, Behaviour, ReviewModel, line_of
from benchmarks.review.cases import Case
from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.editor import ClientEditor
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.watch import Listener, Watch

_EDITS = 10
_HANG_SECONDS = 120.0


@dataclass
class Seen:
    """What users saw of all reviews; `wrong` says where something was not exact."""

    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def count(self, what: str, where: str, *, bad: bool) -> None:
        """Count one result, and note a bad one."""
        self.counts[what] += bad
        self.counts[f"{what}, of"] += 1
        if bad:
            self.wrong.append(f"{what}: {where}")


async def play(folder: Path, cases: Sequence[Case], seed: int) -> Seen:
    """Review each case with each behaviour of the model."""
    named = {f"case_{number:02}": case for number, case in enumerate(cases)}
    project = _project(folder, named)
    model = ReviewModel(named)
    seen = Seen()
    rng = random.Random(seed)
    async with sidecar(folder, project, model.answers) as (client, watch, editor):
        for name, case in named.items():
            for behaviour in BEHAVIOURS:
                session_id = await _reviewed(client, watch, f"{name} {behaviour}")
                found = await client.request("kode/review/list", {"sessionId": session_id})
                _compare(found, behaviour, case, f"{name} {case.kind} {behaviour}", seen)
                if behaviour == "well" and case.fault:
                    path = project / name / case.file
                    await _edit(client, editor, session_id, path, line_of(case), rng, seen)
    return seen


def _compare(
    found: dict[str, Any], behaviour: Behaviour, case: Case, where: str, seen: Seen
) -> None:
    shown = [one for one in found["findings"] if one["state"] == "open"]
    true = [
        one
        for one in shown
        if one["quote"] == case.fault and one["range"]["start"]["line"] == line_of(case) - 1
    ]
    seen.count("invented findings shown", where, bad=len(shown) > len(true[:1]))
    if behaviour in SAY_NOTHING:
        reported = [one for one in found["notReviewed"] if f"/{case.file}: " in one]
        seen.count("unread files not named", where, bad=len(reported) != 1)
    elif case.fault:
        seen.count("true findings lost", where, bad=not true)


async def _edit(
    client: Client,
    editor: ClientEditor,
    session_id: str,
    path: Path,
    line: int,
    rng: random.Random,
    seen: Seen,
) -> None:
    """Edit around the wrong line, and look where the finding is after each edit."""
    buffer = editor.open(path)
    at = line - 1
    for number in range(_EDITS):
        lines = buffer.text.split("\n")
        target = rng.choice([one for one in range(len(lines)) if one != at])
        offset = sum(len(one) + 1 for one in lines[:target])
        match rng.choice(("insert", "repeat", "delete", "type")):
            case "insert":
                editor.type(buffer, offset, f"# edit {number} 茶🍵\n")
                at += target <= at
            case "repeat":
                editor.type(buffer, offset, f"{lines[target]}\n")
                at += target <= at
            case "delete" if target < len(lines) - 1 and len(lines) > 3:
                editor.type(buffer, offset, "", delete=len(lines[target]) + 1)
                at -= target < at
            case _:
                editor.type(buffer, offset, " ")
        found = await client.request("kode/review/list", {"sessionId": session_id})
        (one,) = found["findings"]
        where = f"{path.name} edit {number}: {at}, not {one.get('range')}"
        bad = "range" not in one or one["range"]["start"]["line"] != at
        seen.count("wrong positions after an edit", where, bad=bad)
    editor.close(buffer)


async def _reviewed(client: Client, watch: Watch[ClientSession], prompt: str) -> str:
    """Have a case reviewed in a session of its own, and return the session's id."""
    created = await client.request("kode/session/new", {"agent": "reviewer"})
    session = watch.session(created["sessionId"], created["seq"])
    content = [{"type": "text", "text": prompt}]
    asked = {"sessionId": session.session_id, "input": content}
    turn_id = (await client.request("kode/turn/start", asked))["turnId"]
    await watch.until(lambda: session.turn_end(turn_id), _HANG_SECONDS)
    return session.session_id


@asynccontextmanager
async def sidecar(
    folder: Path,
    project: Path,
    script: Callable[[Mapping[str, Any]], RecordedResponse],
    listener: Listener[ClientSession] | None = None,
) -> AsyncGenerator[tuple[Client, Watch[ClientSession], ClientEditor]]:
    """Run the real process in a project, with a model that answers by `script`."""
    server = ModelServer(Recording(()), paced=False, script=script)
    async with server:
        env = {**os.environ, "KODE_HOME": str(folder / "home")}
        env |= {"KIMI_BASE_URL": server.base_url, "KIMI_API_KEY": "sk-bench"}
        async with await Client.spawn(env=env, keep_frames=0) as client:
            editor = ClientEditor(client)
            await client.initialize(Handshake(roots=[project]))
            yield client, Watch(client, ClientSession, listener), editor


def _project(folder: Path, named: Mapping[str, Case]) -> Path:
    """Make a repository with each case in a folder of its own."""
    before, after = (
        {f"{name}/{case.file}": case.text(changed=changed) for name, case in named.items()}
        for changed in (False, True)
    )
    callers = {f"{name}/caller.py": case.caller for name, case in named.items() if case.caller}
    return changed_repository(folder, {**before, **callers}, after)


def changed_repository(folder: Path, before: Mapping[str, str], after: Mapping[str, str]) -> Path:
    """Make a repository in which files have changed since the last commit."""
    project = folder / "project"
    for texts in (before, after):
        for name, text in texts.items():
            file = project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        if texts is before:
            for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "before")):
                who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
                subprocess.run(["git", *who, *words], cwd=project, check=True)
    return project
