"""Every write, fsync, rename and open of a six-turn session fails, or the process dies there (A6).

What was acknowledged is readable afterwards, nothing is invented or twice, and the session goes on.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from kode_sidecar.client.fold import SessionFold
from kode_sidecar.domain.message import Message
from tests.conftest import FULL
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.disk_faults import KINDS
from tests.support.folds import final_state
from tests.support.model_script import answer, text, tool_call
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS, read_jsonl
from tests.support.turn_world import assert_valid_history

Json = dict[str, Any]

PROMPTS = tuple(f"p{number}" for number in range(6))
SAMPLE = 6  # of each kind, unless all are played

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


def respond(body: Json) -> Any:
    """Says what it was asked; every second prompt needs a tool first."""
    prompt = user_texts(body)[-1]
    if body["messages"][-1]["role"] == "user" and prompt[-1] in "13579":
        return answer(text(f"reading for {prompt}"), tool_call("read_file", {"path": "app.py"}))
    return answer(text(f"answer to {prompt}"))


class Runner:
    """`tests.support.fault_runner`, one job at a time."""

    def __init__(self, model: AnsweringModel, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        (folder / "project").mkdir()
        (folder / "project" / "app.py").write_text("print('hi')\n")
        self._base_url = model.base_url
        self._child: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Runner":
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.fault_runner"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            limit=2**26,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._child is not None
        self._child.kill()
        await self._child.wait()

    def home(self) -> Path:
        """A new state folder."""
        self._runs += 1
        return self._folder / f"home-{self._runs}"

    async def play(self, home: Path, **job: Any) -> Json:
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        environment = {
            "KODE_HOME": str(home),
            "KIMI_BASE_URL": self._base_url,
            "KIMI_API_KEY": "sk-test-key-000",
        }
        job = {"at": 0, "kind": "EIO", "prompts": [], **job, "environment": environment}
        job["project"] = str(self._folder / "project")
        self._child.stdin.write(json.dumps(job).encode() + b"\n")
        async with asyncio.timeout(HANG_SECONDS):
            return json.loads(await self._child.stdout.readline())


def facts(result: Json, name: str) -> list[Any]:
    return [fact[name] for fact in result["told"] if name in fact]


def text_of(message: Message) -> str:
    return "".join(getattr(block, "text", "") for block in message.content)


def check(played: Json, later: Json) -> None:
    """The acknowledged is there, once; nothing else is; every call has its result."""
    messages = msgspec.convert(facts(later, "messages")[0], list[Message])
    said = Counter(text_of(one) for one in messages if one.role == "user")
    accepted = facts(played, "accepted")
    assert set(accepted) <= set(said), played
    assert set(said) <= set(PROMPTS)
    assert set(said.values()) <= {1}
    answers = Counter(text_of(one) for one in messages if one.role == "assistant")
    for fact in played["told"]:
        if fact.get("reason") == "end_turn":
            assert answers[f"answer to {fact['ended']}"] == 1, played
    assert_valid_history(messages)
    assert facts(later, "active") == [[]]
    assert facts(later, "ended") == ["after"]
    assert [fact["reason"] for fact in later["told"] if "reason" in fact] == ["end_turn"]


def check_files(folder: Path) -> None:
    """The journal has no gap, tells all that the messages say, and each block and turn once."""
    events = read_jsonl(folder / "journal.jsonl")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    fold = SessionFold("s")
    for event in events:
        fold.event(event)
    state = final_state(fold)
    assert state["active"] is None
    messages = read_jsonl(folder / "messages.jsonl")
    told = {name: (role, done, len(blocks)) for name, role, _, done, blocks in state["messages"]}
    said = {one["id"]: (one["role"], True, len(one["content"])) for one in messages}
    assert told == said


async def play_with_fault(runner: Runner, at: int, kind: str) -> None:
    home = runner.home()
    played = await runner.play(home, at=at, kind=kind, prompts=PROMPTS)
    # What is written late is written once or twice: the last numbers may not come up.
    met = at <= (facts(played, "operations") or [at])[0]
    assert played["exit"] == (9 if met and kind in ("kill", "torn") else 0), played
    created = facts(played, "created")
    if not created:  # nobody was told of it: it is not there, or has nothing in it
        return
    if kind in ("ENOSPC", "EIO", "short"):
        # one failure costs at most the turn that it met
        ended = [fact for fact in played["told"] if fact.get("reason") == "end_turn"]
        assert len(ended) >= len(PROMPTS) - 1, played
    later = await runner.play(home, session=created[0], prompts=["after"])
    assert later["exit"] == 0, later
    check(played, later)
    check_files(home / "conversations" / created[0])
    again = await runner.play(home, session=created[0])
    assert (
        facts(again, "messages")[0][: len(facts(later, "messages")[0])]
        == facts(later, "messages")[0]
    )


async def test_a_fault_at_every_operation_loses_nothing(tmp_path: Path, rng: Random) -> None:
    async with AnsweringModel(respond) as model, Runner(model, tmp_path) as runner:
        sound = await runner.play(runner.home(), prompts=PROMPTS)
        assert facts(sound, "ended") == list(PROMPTS)
        (operations,) = facts(sound, "operations")
        assert operations > 100
        failures: list[str] = []
        for kind in KINDS:
            every = range(1, operations + 1)
            for at in every if FULL else rng.sample(every, SAMPLE):
                try:
                    await play_with_fault(runner, at, kind)
                except AssertionError as error:
                    failures.append(f"{kind} at operation {at} of {operations}: {error}")
        assert "\n".join(failures) == ""
