"""A six-turn session that is played by `fault_runner`, and what must be true of it afterwards.

What was acknowledged is readable, nothing is invented or twice, and the session goes on.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.domain.message import Message
from tests.support.answering_model import user_texts
from tests.support.folds import final_state
from tests.support.kept_messages import read_messages
from tests.support.model_script import answer, text, tool_call
from tests.support.program import ROOT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, read_jsonl
from tests.support.turn_world import assert_valid_history

Json = dict[str, Any]

PROMPTS = tuple(f"p{number}" for number in range(6))


def respond(body: Json) -> Any:
    """Says what it was asked; every second prompt needs a tool first."""
    prompt = user_texts(body)[-1]
    if body["messages"][-1]["role"] == "user" and prompt[-1] in "13579":
        return answer(text(f"reading for {prompt}"), tool_call("read_file", {"path": "app.py"}))
    return answer(text(f"answer to {prompt}"))


class Runner:
    """`tests.support.fault_runner`, one job at a time."""

    def __init__(self, base_url: str, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        (folder / "project").mkdir(exist_ok=True)
        (folder / "project" / "app.py").write_text("print('hi')\n")
        self._base_url = base_url
        self._child: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Runner":
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.fault_runner"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            limit=2**26,
            start_new_session=True,
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        if kind is not None:  # a session of its may hang
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.stdin.close()  # it ends by itself
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
        try:
            async with asyncio.timeout(HANG_SECONDS):
                line = await self._child.stdout.readline()
        except TimeoutError as error:
            error.add_note(f"while this was played: {job}")
            raise
        assert line, "the runner itself has died"
        return json.loads(line)


def facts(result: Json, name: str) -> list[Any]:
    return [fact[name] for fact in result["told"] if name in fact]


def text_of(message: Message) -> str:
    return "".join(getattr(block, "text", "") for block in message.content)


def check(played: Json, later: Json) -> None:
    """The acknowledged is there, once; nothing else is; every call has its result.

    Whoever was refused was told that it is the disk.
    """
    assert {fact["code"] for fact in played["told"] if "refused" in fact} <= {"Storage"}, played
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
    messages = read_messages(folder)
    reported = {
        name: (role, done, len(blocks)) for name, role, _, done, blocks in state["messages"]
    }
    said = {one["id"]: (one["role"], True, len(one["content"])) for one in messages}
    assert reported == said
