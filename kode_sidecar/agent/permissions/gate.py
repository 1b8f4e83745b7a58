"""The permissions of one session: its rules, and the gate before every call.

No answer means no (W15).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions.questions import UserQuestions
from kode_sidecar.core.domain.agent_event import (
    DecisionRequested,
    DecisionResolved,
    Event,
    PermissionRequested,
    PermissionResolved,
)
from kode_sidecar.core.domain.event_parts import PermissionOption
from kode_sidecar.core.domain.permission import (
    EDIT_TOOLS,
    OPTIONS,
    Effect,
    Rule,
    chosen,
    deciding_rule,
    is_pattern,
)
from kode_sidecar.core.domain.question_event import ResolvedBy
from kode_sidecar.core.kernel.contracts import NewId, ToolCall
from kode_sidecar.core.protocol.questions import (
    PermissionRequestParams,
    PermissionRequestResult,
    RuleMatch,
    RuleView,
)
from kode_sidecar.core.text.line_diff import split_lines, unified_diff
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.workspace.credentials import SECRET_PATTERNS
from kode_sidecar.infrastructure.workspace.sensitive import REFUSED_PATTERNS, SENSITIVE_PATTERNS

MAX_RULES = 1_000
MAX_MATCHES = 20
MAX_COMMENT_CHARS = 20_000

Source = Literal["answer", "client"]

_BUILT_IN: Sequence[tuple[Effect, Sequence[str], str]] = (
    ("deny", REFUSED_PATTERNS, "It belongs to Git and is never edited."),
    ("deny", SECRET_PATTERNS, "By its name it holds credentials; it is neither read nor edited."),
    ("ask", SENSITIVE_PATTERNS, "It can run code or steer an agent, so every edit needs a yes."),
)


@dataclass
class _Standing:
    rule: Rule
    source: Source
    reason: str
    set_at: str
    matched: int = 0
    matches: list[RuleMatch] = field(default_factory=list[RuleMatch])


class PermissionRules:
    """The rules of a session, at most one for a tool and a pattern; not stored on disk."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], _Standing] = {}

    def add(self, rule: Rule, source: Source, reason: str, now: str) -> None:
        """Add a rule. Raises KodeError `InvalidParams` for a forbidden one."""
        if not is_pattern(rule.pattern):
            text = (
                f"{rule.pattern!r} is no pattern. Write a path, a folder with /** behind it, or **."
            )
            raise invalid_at("$.pattern", text)
        if rule.effect == "allow" and rule.pattern == "**":
            raise invalid_at("$.pattern", "nothing allows everything; name a file or a folder.")
        if len(self._rules) >= MAX_RULES and (rule.tool, rule.pattern) not in self._rules:
            raise invalid_at("$.pattern", f"there are {MAX_RULES} rules already; remove some.")
        self._rules[rule.tool, rule.pattern] = _Standing(rule, source, reason, now)

    def has(self, tool: str, pattern: str) -> bool:
        """Return whether there is a rule for exactly this tool and pattern."""
        return (tool, pattern) in self._rules

    def remove(self, tool: str, pattern: str) -> None:
        """Remove the rule of a tool and a pattern, if there is one."""
        self._rules.pop((tool, pattern), None)

    def decide(self, tool: str, paths: Sequence[str], *, sensitive: bool) -> Rule | None:
        """Return the rule that decides about a call."""
        rules = (standing.rule for standing in self._rules.values())
        return deciding_rule(rules, tool, paths, sensitive=sensitive)

    def matched(self, rule: Rule, subject: str, request_id: str, now: str) -> None:
        """Record that a rule answered a question."""
        standing = self._rules[rule.tool, rule.pattern]
        standing.matched += 1
        standing.matches.append(RuleMatch(subject=subject, request_id=request_id, at=now))
        del standing.matches[:-MAX_MATCHES]

    def reason(self, rule: Rule) -> str:
        """Return the reason given with a rule."""
        return self._rules[rule.tool, rule.pattern].reason

    def views(self) -> Iterator[RuleView]:
        """Yield all rules, the session's own first."""
        for standing in self._rules.values():
            yield RuleView(
                tool=standing.rule.tool,
                pattern=standing.rule.pattern,
                effect=standing.rule.effect,
                source=standing.source,
                reason=standing.reason,
                set_at=standing.set_at,
                matched=standing.matched,
                matches=tuple(standing.matches),
            )
        for effect, patterns, reason in _BUILT_IN:
            for pattern in patterns:
                yield RuleView(
                    tool="*", pattern=pattern, effect=effect, source="builtIn", reason=reason
                )


MAX_DIFF_CHARS = 20_000
_CUT = " characters cut]\n"

UNASKED = PermissionOption(
    option_id="unasked", kind="allow_once", name="Allowed without a question"
)
"""What `choose` returns where no user was asked."""


def preview(before: str, after: str, path: str) -> str:
    """Return a unified diff for the question; a cut is marked."""
    diff = unified_diff(split_lines(before), split_lines(after), path)
    cut = len(diff) - MAX_DIFF_CHARS
    shown = diff if cut <= 0 else f"{diff[:MAX_DIFF_CHARS]}\n[{cut}{_CUT}"
    return without_controls(shown)


def is_whole(shown: str) -> bool:
    """Return whether a preview shows all of its diff, so that a yes covers all of it (W18)."""
    return not shown.endswith(_CUT)


class PermissionGate:
    """Asks for the permissions of one session, and remembers them until it is closed."""

    def __init__(
        self,
        session_id: str,
        editor: EditorPort,
        emit: Callable[[Event], int],
        new_id: NewId,
        questions: UserQuestions,
        now: Callable[[], str],
        published: Callable[[], Awaitable[None]],
    ) -> None:
        self._session_id = session_id
        self._editor = editor
        self._emit = emit
        self._new_id = new_id
        self._questions = questions
        self._now = now
        self._published = published
        self._rules = PermissionRules()

    def rules(self) -> tuple[RuleView, ...]:
        """Return the rules in force, the session's own first."""
        return tuple(self._rules.views())

    def set_rule(self, tool: str, pattern: str, effect: Effect | None) -> None:
        """Set a rule for the client; None removes it. Raises KodeError `InvalidParams`."""
        if effect is None:
            self._rules.remove(tool, pattern)
            return
        if tool.partition(":")[0] not in EDIT_TOOLS and not self._rules.has(tool, pattern):
            asked = ", ".join(sorted(EDIT_TOOLS))
            text = f"a rule for {tool!r} begins with an answer of the user; set one for {asked}."
            raise invalid_at("$.tool", text)
        reason = "Set by the editor with kode/permission/set."
        self._rules.add(Rule(tool, pattern, effect), "client", reason, self._now())

    def standing(self, tool: str, path: str, *, sensitive: bool) -> Effect | None:
        """Return the effect of the session's own rules on a call, without asking the user."""
        rule = self._rules.decide(tool, (path,), sensitive=sensitive)
        return rule.effect if rule else None

    async def ask(self, call: ToolCall, title: str, subject: str, **question: Any) -> bool:
        """Return whether `call` may act on `subject`: `choose` without the answer itself."""
        return await self.choose(call, title, subject, **question) is not None

    async def choose(
        self,
        call: ToolCall,
        title: str,
        subject: str,
        *,
        operation: str = "",
        paths: Sequence[str] = (),
        sensitive: bool = True,
        reason: str = "",
        diff: Callable[[], str] = str,
        options: Sequence[PermissionOption] = OPTIONS,
        by_rules: bool = True,
    ) -> PermissionOption | None:
        """Return the answer that lets `call` act on `subject`, None if it may not; see `UNASKED`.

        Raises KodeError `Denied` with the user's words where they reject it with some.

        `subject` is a displayed path, or a text for `paths`. Without `by_rules` the user is asked
        even where a rule of the session decides.

        `operation` separates the operations of one tool: a yes covers only one of them.

        A call that is not `sensitive` and matches no rule passes silently. Else this emits
        `permission.requested` and then `permission.resolved`, once each, in every case: an
        answer, no answer in time, a rule that decides, or a cancel, which is raised. An
        option that is not among `options` counts as no. `reason` and `diff` explain the
        question to the user.
        """
        tool = f"{call.name}:{operation}" if operation else call.name
        rule = None
        if by_rules:
            rule = self._rules.decide(tool, paths or (subject,), sensitive=sensitive)
        if by_rules and (rule is None or rule.effect == "ask"):
            rule = self._rules.decide(tool, (subject,), sensitive=sensitive) or rule
        if rule is None and not sensitive:
            return UNASKED
        question = PermissionRequestParams(
            request_id=self._new_id("request"),
            session_id=self._session_id,
            turn_id=call.turn_id,
            block_id=call.block_id,
            tool_use_id=call.tool_use_id,
            title=title,
            subject=subject,
            options=tuple(options),
            reason=self._rules.reason(rule) if rule else reason,
            diff=diff(),
        )
        self._emit(
            PermissionRequested(
                turn_id=call.turn_id,
                message_id=call.message_id,
                block_id=call.block_id,
                request_id=question.request_id,
                tool_use_id=call.tool_use_id,
                title=title,
                subject=subject,
                options=question.options,
                reason=question.reason,
                attention="blocked" if rule is None or rule.effect == "ask" else None,
            )
        )
        if rule is not None:
            self._rules.matched(rule, subject, question.request_id, self._now())
            if rule.effect != "ask":
                self._resolve(call, question, "policy")
                return UNASKED if rule.effect == "allow" else None
        return await self._ask_user(call, tool, question)

    async def decision(
        self,
        call: ToolCall,
        change_set_id: str,
        hunk_ids: Sequence[str],
        decided: Collection[asyncio.Future[None]],
    ) -> None:
        """Wait until all of `decided` are done, with the time limit of questions.

        It emits `decision.requested` and then `decision.resolved`, once each, in every case.
        """
        named: dict[str, Any] = {
            "turn_id": call.turn_id,
            "message_id": call.message_id,
            "block_id": call.block_id,
            "request_id": self._new_id("request"),
        }
        requested = DecisionRequested(
            **named,
            attention="blocked",
            change_set_id=change_set_id,
            hunk_ids=tuple(hunk_ids),
        )
        self._emit(requested)
        by: ResolvedBy = "cancel"
        try:
            _, waiting = await asyncio.wait(decided, timeout=self._questions.timeout)
            by = "timeout" if waiting else "user"
        finally:
            self._emit(DecisionResolved(**named, by=by))

    async def _ask_user(
        self, call: ToolCall, tool: str, question: PermissionRequestParams
    ) -> PermissionOption | None:
        by: ResolvedBy = "cancel"
        option: PermissionOption | None = None
        answer: PermissionRequestResult | None = None
        try:
            answer = await self._questions.put(
                question, lambda: self._editor.ask_permission(question), self._published
            )
            by = "timeout" if answer is None else "user"
            option = chosen(question.options, answer.option_id if answer else None)
        finally:
            no = answer if option is None or option.kind == "reject" else None
            self._resolve(call, question, by, option, no.comment if no else "")
        if option is not None and option.kind == "allow_session":
            self._remember(tool, question, "allow")
        if no is not None and no.for_session:
            self._remember(tool, question, "deny")
        if no is not None and no.comment.strip():
            said = without_controls(no.comment).strip()[:MAX_COMMENT_CHARS]
            raise KodeError("Denied", f"The user does not allow {question.title}, and says: {said}")
        return None if option is None or option.kind == "reject" else option

    def _resolve(
        self,
        call: ToolCall,
        question: PermissionRequestParams,
        by: ResolvedBy,
        option: PermissionOption | None = None,
        comment: str = "",
    ) -> None:
        self._emit(
            PermissionResolved(
                turn_id=call.turn_id,
                message_id=call.message_id,
                block_id=call.block_id,
                request_id=question.request_id,
                by=by,
                option_id=option.option_id if option else None,
                comment=comment,
            )
        )

    def _remember(self, tool: str, question: PermissionRequestParams, effect: Effect) -> None:
        if "*" in question.subject:
            return  # the name would act as a pattern
        said = "allowed" if effect == "allow" else "refused"
        reason = f"The user {said} it for this session when asked by {question.request_id}."
        with suppress(KodeError):  # too many rules: this answer counts once
            self._rules.add(Rule(tool, question.subject, effect), "answer", reason, self._now())
