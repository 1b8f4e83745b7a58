"""A goal: the turn goes on until a check passes, or a limit of rounds or time is reached.

The check is what the sidecar saw, never the model's word: the command ran with the exit code 0
after the last edit, the file is there. The goal and its rounds are in the messages, so it goes on
where it was after a cancel or a restart. What it may cost is the turn's budget.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import OWN_WORDS, Message, TextBlock
from kode_sidecar.core.domain.permission import EDIT_TOOLS
from kode_sidecar.core.domain.run_policy import RUN_COMMAND
from kode_sidecar.core.kernel.contracts import Incoming
from kode_sidecar.core.protocol.turn import Goal
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.workspace.workspace import Workspace

GOAL = "turnGoal"
"""In a prompt's `meta`: the goal that it set."""
MAX_ROUNDS = 100
_ROUND, _SECONDS = "goalRound", "goalSeconds"
"""In the `meta` of the message that begins a round: its number, and the seconds used before."""


@dataclass(frozen=True)
class GoalProgress:
    """A goal, and what was used of its limits before this turn."""

    goal: Goal
    rounds: int = 1
    seconds: float = 0.0


def check_goal(goal: Goal | None) -> None:
    """Raise KodeError `InvalidParams` for a goal without a check, or without a limit."""
    if goal is None:
        return
    if not goal.command and not goal.deliverable:
        raise invalid_at("$.goal", "name a `command` that has to pass, or a `deliverable`.")
    if not 1 <= goal.rounds <= MAX_ROUNDS:
        raise invalid_at("$.goal.rounds", f"Expected a number from 1 to {MAX_ROUNDS}.")
    if goal.seconds is not None and goal.seconds < 1:
        raise invalid_at("$.goal.seconds", "Expected a number from 1 on.")


def goal_on(path: Iterable[Message]) -> GoalProgress | None:
    """Return the goal of the newest prompt on a path, for a turn that goes on with it."""
    found: GoalProgress | None = None
    for message in path:
        if message.is_prompt:
            found = None
            with suppress(msgspec.ValidationError):
                found = GoalProgress(msgspec.convert(message.meta.get(GOAL), Goal))
        elif found is not None and _ROUND in message.meta:
            used = int(message.meta[_ROUND]), float(message.meta[_SECONDS])
            found = GoalProgress(found.goal, *used)
    return found


class GoalCheck:
    """Checks the goal of one turn.

    `messages` are those of the turn so far, `earlier` those before it on the path; `passed` are the
    seconds since the turn began; `notify` reports each round to the user.
    """

    def __init__(
        self,
        progress: GoalProgress,
        earlier: Sequence[Message],
        messages: Callable[[], Sequence[Message]],
        workspace: Workspace,
        passed: Callable[[], float],
        notify: Callable[[str], object],
    ) -> None:
        self._goal = progress.goal
        self._round = progress.rounds
        self._used = progress.seconds
        self._earlier = earlier
        self._messages = messages
        self._workspace = workspace
        self._passed = passed
        self._notify = notify

    async def next_round(self) -> Incoming | ErrorInfo | None:
        """Check it after a round: None if it is reached, the next round's words, or why it ends."""
        missing = await self._missing()
        goal, seconds = self._goal, self._used + self._passed()
        if missing is None:
            self._notify(f"The goal is reached in round {self._round}: {goal_name(goal)}.")
            return None
        where = f"round {self._round} of {goal.rounds}"
        if self._round >= goal.rounds or (goal.seconds and seconds >= goal.seconds):
            limit = where if self._round >= goal.rounds else f"{goal.seconds} seconds, {where}"
            text = f"The goal was not reached ({limit}): {missing}. Raise the limit, or help it."
            return failure("GoalNotReached", text)
        self._notify(f"The goal is not reached in {where}: {missing}.")
        self._round += 1
        text = (
            f"[The goal, round {self._round} of {goal.rounds}] Not reached yet: {missing}. Go on."
        )
        meta = {"origin": "reminder", OWN_WORDS: True, _ROUND: self._round, _SECONDS: seconds}
        return Incoming("user", (TextBlock(text=text),), meta)

    async def _missing(self) -> str | None:
        """Return what is missing, None if nothing is."""
        goal = self._goal
        if goal.command and not self._command_passed():
            return f"`{goal_name(goal)}` has not passed since the last edit"
        if goal.deliverable and not await asyncio.to_thread(self._delivered, goal.deliverable):
            return f"{goal.deliverable} is not there, or empty"
        return None

    def _command_passed(self) -> bool:
        passed, wanted = False, [*self._goal.command]
        calls = {call.tool_use_id: call for one in self._all() for call in one.calls}
        for result in (result for one in self._all() for result in one.results):
            call = calls.get(result.tool_use_id)
            if call is None:
                continue
            ok = result.status == "ok"
            if call.runs in EDIT_TOOLS and ok:
                passed = False
            elif call.name == RUN_COMMAND and call.input.get("argv") == wanted:
                inside = str(call.input.get("cwd", ".")).strip("/") == self._goal.folder.strip("/")
                passed = ok and inside and not call.input.get("background")
        return passed

    def _all(self) -> Sequence[Message]:
        return [*self._earlier, *self._messages()]

    def _delivered(self, path: str) -> bool:
        try:
            place = self._workspace.locate(path)
            return place.real.is_file() and place.real.stat().st_size > 0
        except (KodeError, OSError):
            return False


def goal_name(goal: Goal) -> str:
    """Return a goal in a few words."""
    return without_controls(" ".join(goal.command) or goal.deliverable)


def goal_words(goal: Goal) -> str:
    """Return what the model reads of a goal before the prompt."""
    parts: list[str] = []
    if goal.command:
        argv = msgspec.json.encode(goal.command).decode()
        parts.append(
            f"run_command with argv {argv} and cwd {goal.folder} has exited with 0 after your last "
            "edit. Run it yourself, in just these words"
        )
    if goal.deliverable:
        parts.append(f"the file {without_controls(goal.deliverable)} is there and not empty")
    return (
        f"[The goal] Go on until {'; and '.join(parts)}. It is checked by what happened, not by "
        f"what you say: when you stop before, the next of {goal.rounds} rounds begins."
    )


def with_goal(meta: Mapping[str, Any], goal: Goal | None) -> dict[str, Any]:
    """Return the meta of a prompt with the goal that it sets."""
    own = {name: value for name, value in meta.items() if name != GOAL}
    return own if goal is None else {**own, GOAL: msgspec.to_builtins(goal)}
