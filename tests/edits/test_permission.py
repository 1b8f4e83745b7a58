"""Permission: the default is no, every question has one end, "session" means one path (W15)."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from kode_sidecar.domain.agent_event import Event, PermissionRequested, PermissionResolved
from kode_sidecar.domain.permission import Rule, is_allowed
from kode_sidecar.kernel.contracts import IdKind, ToolCall
from kode_sidecar.main_session.contracts import PermissionQuestion
from kode_sidecar.main_session.permission_gate import PermissionGate
from tests.support.edit_editor import HANG

CALL = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")


class Asked:
    """The part of an editor that is asked, and what the session emits."""

    def __init__(self, answer: Callable[[PermissionQuestion], Awaitable[str | None]]) -> None:
        self.events: list[Event] = []
        self.questions: list[PermissionQuestion] = []
        self._answer = answer
        self._numbers = itertools.count(1)

    async def ask_permission(self, question: PermissionQuestion) -> str | None:
        self.questions.append(question)
        return await self._answer(question)

    def emit(self, event: Event) -> int:
        self.events.append(event)
        return len(self.events)

    def new_id(self, kind: IdKind) -> str:
        return f"{kind}-{next(self._numbers)}"

    def gate(self, timeout: float = HANG) -> PermissionGate:
        return PermissionGate("s-1", self, self.emit, self.new_id, timeout)  # type: ignore[arg-type]

    @property
    def ends(self) -> list[tuple[str, str, str | None]]:
        """Each question with how it ended; every one asked is resolved exactly once (O5)."""
        asked = [e.request_id for e in self.events if isinstance(e, PermissionRequested)]
        ends = [
            (e.request_id, e.by, e.option_id)
            for e in self.events
            if isinstance(e, PermissionResolved)
        ]
        assert asked == [request_id for request_id, _, _ in ends]
        return ends


def answering(option_id: str | None) -> Asked:
    async def answer(question: PermissionQuestion) -> str | None:
        return option_id

    return Asked(answer)


@pytest.mark.parametrize(
    ("answer", "allowed", "end"),
    [
        ("allow-once", True, ("request-1", "user", "allow-once")),
        ("allow-session", True, ("request-1", "user", "allow-session")),
        ("reject", False, ("request-1", "user", "reject")),
        ("allow-everything", False, ("request-1", "user", None)),  # never offered
        (None, False, ("request-1", "timeout", None)),
    ],
)
async def test_an_answer(answer: str | None, allowed: bool, end: tuple[str, str, str]) -> None:
    asked = answering(answer)
    assert await asked.gate().ask(CALL, "Edit package.json", "package.json") is allowed
    assert asked.ends == [end]
    (question,) = asked.questions
    assert question.subject == "package.json"
    assert [option.kind for option in question.options] == [
        "allow_once",
        "allow_session",
        "reject",
    ]


async def test_no_answer_in_time_is_a_no() -> None:
    async def never(question: PermissionQuestion) -> str | None:
        await asyncio.Event().wait()
        return None

    asked = Asked(never)
    assert await asked.gate(timeout=0.01).ask(CALL, "t", "a") is False
    assert asked.ends == [("request-1", "timeout", None)]


async def test_a_cancelled_call_resolves_its_question() -> None:
    entered = asyncio.Event()

    async def never(question: PermissionQuestion) -> str | None:
        entered.set()
        await asyncio.Event().wait()
        return None

    asked = Asked(never)
    task = asyncio.create_task(asked.gate().ask(CALL, "t", "a"))
    await asyncio.wait_for(entered.wait(), HANG)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asked.ends == [("request-1", "cancel", None)]


async def test_once_is_asked_again_and_session_is_not() -> None:
    asked = answering("allow-once")
    gate = asked.gate()
    assert await gate.ask(CALL, "t", "a")
    assert await gate.ask(CALL, "t", "a")
    assert len(asked.questions) == 2
    asked = answering("allow-session")
    gate = asked.gate()
    assert await gate.ask(CALL, "t", "a")
    assert await gate.ask(CALL, "t", "a")
    assert len(asked.questions) == 1
    assert asked.ends[1] == ("request-2", "policy", None)
    await gate.ask(CALL, "t", "b")
    await gate.ask(ToolCall("tool-2", "other_tool", "s-1", "t-1", "m-1"), "t", "a")
    assert len(asked.questions) == 3


def test_a_rule_covers_one_tool_and_one_pattern() -> None:
    rules = [Rule("propose_edit", "ci/**"), Rule("propose_edit", "package.json")]
    assert is_allowed(rules, "propose_edit", "ci/build/main.yml")
    assert is_allowed(rules, "propose_edit", "package.json")
    assert not is_allowed(rules, "propose_edit", "ci-other/main.yml")
    assert not is_allowed(rules, "propose_edit", "sub/package.json")
    assert not is_allowed(rules, "run_command", "package.json")
