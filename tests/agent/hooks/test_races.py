"""A tool, a cancel, a kill and hooks race, in simulated stories: no effect before its verdict."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kode_sidecar.agent.hooks.hook_file import Hook
from kode_sidecar.agent.hooks.session_hooks import SessionHooks
from kode_sidecar.agent.hooks.verdict import HookVerdict, no_verdict
from kode_sidecar.agent.turns import HookScope
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import ToolCall, ToolOutcome
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.conftest import FULL, SEED_VARIABLE, Played
from tests.support.turn_world import (
    LIMITS,
    EchoParams,
    MemoryContext,
    Recorder,
    ScriptedModel,
    calls,
    echo_tool,
    says,
    scope,
)


class CancelledRecorder(Recorder):
    """As the stream of a session: its `flow` ends what runs in a turn that is being cancelled."""

    def __init__(self, story: "Story") -> None:
        super().__init__()
        self._story = story

    async def flow(self) -> None:
        if self._story.cancelled:
            raise asyncio.CancelledError
        await super().flow()
        if self._story.cancelled:
            raise asyncio.CancelledError


STORIES = 100_000 if FULL else 500
_NOWHERE = Workspace([], "utf-16")


class Story:
    """One turn with random calls and hooks. What happens is checked when it happens.

    So a kill at any moment leaves nothing else behind: what was done by then was allowed.
    """

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.hooks = [
            Hook("PreToolUse", None, (str(number),), fails_closed=self.random.random() < 0.5)
            for number in range(self.random.randint(1, 3))
        ]
        self.allowed: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.effects: set[str] = set()
        self.cancelled = False

    async def rounds(self) -> None:
        """Let some rounds of the loop go by."""
        for _ in range(self.random.randint(0, 4)):
            await asyncio.sleep(0)

    async def judge(self, hook: Hook, given: Mapping[str, Any]) -> HookVerdict:
        """A hook that takes its time."""
        call = given["tool_use_id"]
        assert call not in self.effects, "a hook was asked after the effect"
        assert call not in self.refused, "a hook was asked after another one had refused"
        await self.rounds()
        verdict = self.random.choice(
            [
                HookVerdict(),
                HookVerdict("allow"),
                HookVerdict("deny", "no"),
                HookVerdict("ask", "why"),
                no_verdict(hook, "it broke"),
            ]
        )
        if verdict.decision == "deny":
            self.refused.add(call)
        self.allowed[call] += 1
        return verdict

    async def ask(self, call: ToolCall, *_texts: str, **_question: Any) -> bool:
        """The user, who takes their time."""
        await self.rounds()
        agrees = self.random.random() < 0.5
        if not agrees:
            self.refused.add(call.tool_use_id)
        return agrees

    async def effect(self, params: EchoParams, call: ToolCall) -> ToolOutcome:
        """What a tool does to the world."""
        assert self.allowed[call.tool_use_id] == len(self.hooks), "before all verdicts"
        assert call.tool_use_id not in self.refused, "against a verdict"
        assert not self.cancelled, "after the turn was cancelled"
        self.effects.add(call.tool_use_id)
        await self.rounds()
        return ToolOutcome(ok=True, summary=params.text)

    async def play(self) -> None:
        """Run the turn, and cancel it somewhere or never."""
        there: Any = self
        about = HookScope("s", Path("x"), there, lambda: "review", CancelledRecorder(self))
        hooked = SessionHooks(self.hooks, self.judge, _NOWHERE, about)
        names = [self.random.choice(["look", "act"]) for _ in range(self.random.randint(1, 4))]
        wanted = [(name, f'{{"text": "{number}"}}') for number, name in enumerate(names)]
        look, act = echo_tool("look"), echo_tool("act", read_only=False)
        tools = [replace(tool, run=self.effect) for tool in (look, act)]
        context, bugs = MemoryContext(), list[str]()
        turn = asyncio.ensure_future(
            run_turn(
                replace(scope(bugs), run_call=hooked.run_call),
                ScriptedModel(calls(*wanted), says("done")),
                tools,
                context,
                LIMITS,
                CancelledRecorder(self),
            )
        )
        for _ in range(self.random.choice([self.random.randint(0, 60), 10_000])):
            if turn.done():
                break
            await asyncio.sleep(0)
        if not turn.done():
            self.cancelled = True
            turn.cancel()
        await asyncio.wait([turn])
        assert bugs == []
        results = [block for message in context.messages for block in message.results]
        asked = [block for message in context.messages for block in message.calls]
        assert [one.tool_use_id for one in results] == [one.tool_use_id for one in asked]
        done = {one.tool_use_id for one in results if one.status == "ok"}
        assert done <= self.effects
        assert self.cancelled or done == self.effects


async def test_no_effect_comes_before_its_verdict(played: Played) -> None:
    seed = os.environ[SEED_VARIABLE]
    for number in range(STORIES):
        story = Story(f"{seed} {number}")
        try:
            await story.play()
        except AssertionError as error:
            error.add_note(f"story {seed} {number}")
            raise
    played(STORIES, "stories of hooks, tools and cancels")


async def test_a_story_fails_where_an_effect_comes_before_its_verdict() -> None:
    """The check itself: a tool that runs beside its hook is found."""
    caught = 0
    for number in range(50):
        story = Story(f"check {number}")
        call: Any = ToolCall("c", "look", "s", "t", "m")
        try:
            await story.effect(EchoParams("x"), call)
        except AssertionError:
            caught += 1
    assert caught == 50
