"""The transcripts of `tests/transcripts`: one folder a case, recorded by its script.

A folder holds `tape.jsonl` (what `serve --record` wrote, with plain names and times),
`requests.json` (what the model is asked when it is played) and `record.py`, which drives the real
process. A long case has `longest_requests.json` instead: those that no later request repeats.
`python -m tests.support.transcripts [CASE...]` records anew.
"""

import asyncio
import importlib
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.devtools.recording.comparison import ModelRequests, without_prompts
from kode_sidecar.devtools.recording.recorded_lines import DrawnId
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.devtools.recording.replay import Replayed, play
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import World, sidecar

FOLDER = ROOT / "tests" / "transcripts"
PROMPTS = FOLDER / "prompts.json"
PATIENCE = 60.0
"""Seconds; only a process that hangs is waited for so long."""

STARTED = "2026-01-05T09:00:00.000Z"
PLACE = "/home/lin/teahouse"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DURATION = re.compile(r'("(?:durationMs|elapsedMs)":)\d+')
_PASSED = re.compile(r'^(\{"lane":"[\w.]+","t":)(\d+)(?:\.\d+)?(?:e-\d+)?(?=[,}])', re.MULTILINE)
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_KINDS = {"change_set": "changes"}

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One folder."""

    name: str

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def tape(self) -> Path:
        return self.folder / "tape.jsonl"

    @property
    def requests(self) -> Path:
        return self.folder / f"{'longest_' if self.is_long else ''}requests.json"

    @property
    def is_long(self) -> bool:
        """Whether each request repeats too much to be kept."""
        return getattr(self.script(), "IS_LONG", False)

    def asked(self, replayed: Replayed) -> ModelRequests:
        """What of the requests is kept and compared."""
        requests = without_prompts(replayed.requests)
        return longest(requests) if self.is_long else requests

    def script(self) -> ModuleType:
        """What recorded it."""
        return importlib.import_module(f"tests.transcripts.{self.name}.record")

    def golden_requests(self) -> ModelRequests:
        return json.loads(self.requests.read_text(encoding="utf-8"))

    async def replay(self) -> Replayed:
        """Play it against the program under test."""
        return await play(self.tape, read_recording(self.tape), PROGRAM, PATIENCE)


def cases() -> list[Case]:
    """All of them, by name."""
    return [Case(path.parent.name) for path in sorted(FOLDER.glob("*/record.py"))]


async def record(case: Case) -> None:
    """Run its script over a recording process, and write its files."""
    script = case.script()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        top = Path(folder).resolve()
        patch.setenv("KODE_HOME", str(top / "home"))
        project = top / "teahouse"
        for name, content in script.FILES.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        tape = top / "tape.jsonl"
        environment = dict(getattr(script, "ENVIRONMENT", {}))
        if hasattr(script, "CONFIG"):
            (top / "config.yaml").write_text(script.CONFIG, encoding="utf-8")
            environment["KODE_CONFIG"] = str(top / "config.yaml")
        moved = top / "clock"
        if getattr(script, "MOVES_THE_CLOCK", False):
            environment |= moved_clock(moved)
        async with sidecar(
            getattr(script, "RESPONSES", ()),
            model=script.model() if hasattr(script, "model") else None,
            roots=[project],
            environment=environment,
            handshake=getattr(script, "HANDSHAKE", None),
            command=[*PROGRAM, "serve", "--record", str(tape)],
        ) as world:
            await script.play(Stage(world, project, moved))
        case.tape.write_text(tidy(tape, project), encoding="utf-8", newline="\n")
    write_requests(case, await case.replay())


@dataclass(frozen=True)
class Stage:
    """What a script plays on. `clock` is a file: the process is ahead by its seconds."""

    world: World
    project: Path
    clock: Path


def moved_clock(file: Path) -> dict[str, str | None]:
    """A process whose monotonic clock is ahead by the seconds that stand in `file`."""
    file.write_text("0", encoding="ascii")
    day = "86400"  # hosts that hang are not what is tested
    waits = {
        f"KODE_HTTP_TIMEOUT_{name}": day for name in ("CONNECT", "FIRST_BYTE", "IDLE", "WRITE")
    }
    path = os.pathsep.join([str(ROOT / "tests" / "support" / "faults"), str(ROOT)])
    return {"PYTHONPATH": path, "KODE_TEST_CLOCK": str(file), **waits}


def tidy(tape: Path, project: Path) -> str:
    """The recording with ids, places and times that are the same whenever it is recorded."""
    lines = read_recording(tape).lines
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line in lines:
        if isinstance(line, DrawnId):
            counts[line.kind] = counts.get(line.kind, 0) + 1
            names[line.id] = f"{_KINDS.get(line.kind, line.kind)}-{counts[line.kind]}"
    text = tape.read_text(encoding="utf-8")
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if names:
        text = re.sub(rf"\b(?:{pattern})\b", lambda found: names[found[0]], text)
    for old, new in ((path_to_uri(project), f"file://{PLACE}"), (str(project), PLACE)):
        text = text.replace(old, new)
    text = _PASSED.sub(r"\1\2", _DURATION.sub(r"\g<1>100", _TIME.sub(STARTED, text)))
    text = _PORT.sub("127.0.0.1:8000", text)
    return re.sub(r'("processId":)\d+', r"\g<1>4711", text)


async def update(case: Case) -> None:
    """Write what it would be compared with; where it says something else it is recorded anew."""
    replayed = await case.replay()
    if replayed.difference is None:
        write_requests(case, replayed)
    else:
        await record(case)


def write_requests(case: Case, replayed: Replayed) -> None:
    """What the model is asked when the recording is played now, and its prompts."""
    assert replayed.difference is None, f"{case.name}\n{replayed.difference}"
    text = json.dumps(case.asked(replayed), ensure_ascii=False, indent=1)
    case.requests.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    known = [
        {**entry, "cases": [name for name in entry["cases"] if name != case.name]}
        for entry in read_prompts()
    ]
    for prompt in prompts_of(replayed.requests):
        for entry in known:
            if {**entry, "cases": ()} == {**prompt, "cases": ()}:
                entry["cases"] = sorted({*entry["cases"], case.name})
                break
        else:
            known.append({**prompt, "cases": [case.name]})
    kept = [entry for entry in known if entry["cases"]]
    kept.sort(key=lambda entry: (entry["cases"], json.dumps(entry, ensure_ascii=False)))
    text = json.dumps(kept, ensure_ascii=False, indent=1)
    PROMPTS.write_text(f"{text}\n", encoding="utf-8", newline="\n")


def longest(requests: ModelRequests) -> ModelRequests:
    """The requests whose messages the next one does not begin with."""
    return {
        agent: [
            body
            for body, after in zip(bodies, [*bodies[1:], {}], strict=True)
            if after.get("messages", [])[: len(body["messages"])] != body["messages"]
        ]
        for agent, bodies in requests.items()
    }


def read_prompts() -> list[Json]:
    """Each system prompt with the tools on offer beside it, and the cases that ask with it."""
    return json.loads(PROMPTS.read_text(encoding="utf-8")) if PROMPTS.exists() else []


def prompts_of(requests: ModelRequests) -> list[Json]:
    """What `without_prompts` leaves out of requests, once each."""
    found: list[Json] = []
    for bodies in requests.values():
        for body in filter(None, bodies):
            first = (body.get("messages") or [{}])[0]
            system = first["content"] if first.get("role") == "system" else body.get("system")
            prompt = {"system": system, "tools": body.get("tools", [])}
            if prompt not in found:
                found.append(prompt)
    return found


def main() -> None:
    """Record the named cases, or all."""
    wanted = sys.argv[1:] or [case.name for case in cases()]
    for name in wanted:
        asyncio.run(record(Case(name)))
        print(name)  # noqa: T201


if __name__ == "__main__":
    main()
