"""Permission: the default is no, every question has one end, "session" means one path (W15)."""

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable

import pytest

from kode_sidecar.agent.permissions.gate import PermissionGate
from kode_sidecar.agent.permissions.questions import UserQuestions
from kode_sidecar.core.domain.agent_event import Event, PermissionRequested, PermissionResolved
from kode_sidecar.core.domain.permission import Rule, deciding_rule, is_pattern
from kode_sidecar.core.kernel.contracts import IdKind, ToolCall
from kode_sidecar.core.protocol.questions import PermissionRequestParams, PermissionRequestResult
from kode_sidecar.errors import KodeError
from tests.support.edit_editor import HANG

CALL = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")


class Asked:
    """The part of an editor that is asked, and what the session emits."""

    def __init__(self, answer: Callable[[PermissionRequestParams], Awaitable[str | None]]) -> None:
        self.events: list[Event] = []
        self.questions: list[PermissionRequestParams] = []
        self._answer = answer
        self._numbers = itertools.count(1)
        self.released = asyncio.Event()
        self.released.set()

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        self.questions.append(question)
        answer = await self._answer(question)
        return None if answer is None else PermissionRequestResult(option_id=answer)

    def emit(self, event: Event) -> int:
        self.events.append(event)
        return len(self.events)

    def new_id(self, kind: IdKind) -> str:
        return f"{kind}-{next(self._numbers)}"

    def gate(self, timeout: float = HANG) -> PermissionGate:
        questions = UserQuestions(timeout)
        reported = self.emit, self.new_id, questions, lambda: "now", self.published
        return PermissionGate("s-1", self, *reported)  # type: ignore[arg-type]

    async def published(self) -> None:
        await self.released.wait()

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
    async def answer(question: PermissionRequestParams) -> str | None:
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


async def test_a_question_waits_until_its_announcement_is_out() -> None:  # O6
    asked = answering("allow-once")
    asked.released.clear()  # a reply is on its way, and events are held behind it
    task = asyncio.create_task(asked.gate().ask(CALL, "Edit package.json", "package.json"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [type(event) for event in asked.events] == [PermissionRequested]
    assert asked.questions == []
    asked.released.set()
    assert await task is True
    assert len(asked.questions) == 1


async def test_no_answer_in_time_is_a_no() -> None:
    async def never(question: PermissionRequestParams) -> str | None:
        await asyncio.Event().wait()
        return None

    asked = Asked(never)
    assert await asked.gate(timeout=0.01).ask(CALL, "t", "a") is False
    assert asked.ends == [("request-1", "timeout", None)]


async def test_a_cancelled_call_resolves_its_question() -> None:
    entered = asyncio.Event()

    async def never(question: PermissionRequestParams) -> str | None:
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


def effect(rules: list[Rule], tool: str, *paths: str, sensitive: bool = False) -> str | None:
    rule = deciding_rule(rules, tool, paths, sensitive=sensitive)
    return rule.effect if rule else None


def test_a_rule_covers_one_tool_and_one_pattern() -> None:
    rules = [Rule("propose_edit", "ci/**"), Rule("propose_edit", "package.json")]
    assert effect(rules, "propose_edit", "ci/build/main.yml") == "allow"
    assert effect(rules, "propose_edit", "package.json", sensitive=True) == "allow"
    assert effect(rules, "propose_edit", "ci-other/main.yml") is None
    assert effect(rules, "propose_edit", "sub/package.json") is None
    assert effect(rules, "propose_edit", "package.json", "b") is None
    assert effect(rules, "run_command", "package.json") is None


def test_a_wide_pattern_never_allows_a_sensitive_file() -> None:  # W11
    rules = [Rule("propose_edit", ".vscode/**"), Rule("propose_edit", "**")]
    assert effect(rules, "propose_edit", ".vscode/tasks.json", sensitive=True) is None


def test_a_denial_wins_then_a_permission() -> None:
    rules = [
        Rule("propose_edit", "**", "ask"),
        Rule("propose_edit", "src/a.py"),
        Rule("propose_edit", "SRC/gen/**", "deny"),
        Rule("propose_edit", "src/gen/b.py"),
    ]
    assert effect(rules, "propose_edit", "src/a.py") == "allow"
    assert effect(rules, "propose_edit", "src/b.py") == "ask"
    assert effect(rules, "propose_edit", "src/gen/b.py") == "deny"
    assert effect(rules, "propose_edit", "src/a.py", "src/Gen/x") == "deny"


@pytest.mark.parametrize("text", ["a", "a b/中.py", "a/**", "**", ".vscode/tasks.json"])
def test_what_is_a_pattern(text: str) -> None:
    assert is_pattern(text)


@pytest.mark.parametrize("text", ["", " ", "*", "*.py", "a/*/b", "a**", "a\nb", "x" * 1_001])
def test_what_is_no_pattern(text: str) -> None:
    assert not is_pattern(text)


async def test_what_nobody_guards_passes_silently() -> None:
    asked = answering("reject")
    assert await asked.gate().ask(CALL, "t", "src/a.py", sensitive=False)
    assert asked.events == []


async def test_rules_of_the_client_are_in_force_and_say_what_they_decided() -> None:
    asked = answering("allow-once")
    gate = asked.gate()
    gate.set_rule("propose_edit", "gen/**", "deny")
    gate.set_rule("propose_edit", "src/**", "ask")
    assert not await gate.ask(CALL, "t", "gen/a.py", sensitive=False)
    assert asked.questions == []
    assert await gate.ask(CALL, "t", "src/a.py", sensitive=False)
    assert asked.ends == [
        ("request-1", "policy", None),
        ("request-2", "user", "allow-once"),
    ]
    denied, wanted = gate.rules()[:2]
    assert [match.subject for match in denied.matches] == ["gen/a.py"]
    assert [match.request_id for match in wanted.matches] == ["request-2"]
    gate.set_rule("propose_edit", "gen/**", None)
    assert await gate.ask(CALL, "t", "gen/a.py", sensitive=False)
    assert len(asked.questions) == 1


@pytest.mark.parametrize(
    ("tool", "pattern", "place"),
    [
        ("read_file", "a", "$.tool"),
        ("propose_edit", "*.py", "$.pattern"),
        ("propose_edit", "**", "$.pattern"),
    ],
)
def test_a_rule_that_would_mean_nothing_or_everything_is_refused(
    tool: str, pattern: str, place: str
) -> None:
    with pytest.raises(KodeError, match=re.escape(place)):
        answering(None).gate().set_rule(tool, pattern, "allow")


async def test_a_name_that_looks_like_a_pattern_is_allowed_once_only() -> None:
    asked = answering("allow-session")
    gate = asked.gate()
    assert await gate.ask(CALL, "t", "odd/**")
    assert await gate.ask(CALL, "t", "odd/package.json")
    assert len(asked.questions) == 2
