"""Asks the user before something sensitive happens. No answer means no (W15)."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from kode_sidecar.domain.agent_event import (
    Event,
    PermissionOption,
    PermissionRequested,
    PermissionResolved,
    ResolvedBy,
)
from kode_sidecar.domain.permission import OPTIONS, Effect, Rule, chosen
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log.editor_port import EditorPort, PermissionQuestion
from kode_sidecar.kernel.contracts import NewId, ToolCall
from kode_sidecar.permissions.questions import UserQuestions
from kode_sidecar.permissions.rules import EDIT_TOOLS, PermissionRules
from kode_sidecar.protocol.questions import RuleView
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.shown_text import without_controls

MAX_DIFF_CHARS = 20_000


def preview(before: str, after: str, path: str) -> str:
    """What the user is asked about, as a unified diff that says where it is cut."""
    diff = unified_diff(split_lines(before), split_lines(after), path)
    cut = len(diff) - MAX_DIFF_CHARS
    shown = diff if cut <= 0 else f"{diff[:MAX_DIFF_CHARS]}\n[{cut} characters cut]\n"
    return without_controls(shown)


class PermissionGate:
    """The permissions of one session: asked for, remembered, forgotten with it."""

    def __init__(
        self,
        session_id: str,
        editor: EditorPort,
        emit: Callable[[Event], int],
        new_id: NewId,
        questions: UserQuestions,
        now: Callable[[], str],
    ) -> None:
        self._session_id = session_id
        self._editor = editor
        self._emit = emit
        self._new_id = new_id
        self._questions = questions
        self._now = now
        self._rules = PermissionRules()

    def rules(self) -> tuple[RuleView, ...]:
        """The rules in force, the session's own first."""
        return tuple(self._rules.views())

    def set_rule(self, tool: str, pattern: str, effect: Effect | None) -> None:
        """The client makes a rule; None takes back what there is. Raises KodeError."""
        if effect is None:
            self._rules.remove(tool, pattern)
            return
        if tool.partition(":")[0] not in EDIT_TOOLS:
            asked = ", ".join(sorted(EDIT_TOOLS))
            text = f"$.tool: permission is never asked for {tool!r}, only for {asked}."
            raise KodeError("InvalidParams", text)
        reason = "Set by the editor with kode/permission/set."
        self._rules.add(Rule(tool, pattern, effect), "client", reason, self._now())

    async def ask(
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
    ) -> bool:
        """Whether `call` may act on `subject`: a path as the user knows it, or words for `paths`.

        `operation` tells apart what one tool does: a yes for one is none for another.

        What is neither `sensitive` nor met by a rule passes silently. Else it emits
        `permission.requested` and then `permission.resolved`, once each, whatever happens: an
        answer, none in time, a rule that knows it already, or a cancel, which
        is raised. An option that was never offered counts as no. `reason` and `diff` tell the
        user what for.
        """
        tool = f"{call.name}:{operation}" if operation else call.name
        rule = self._rules.decide(tool, paths or (subject,), sensitive=sensitive)
        if rule is None or rule.effect == "ask":
            rule = self._rules.decide(tool, (subject,), sensitive=sensitive) or rule
        if rule is None and not sensitive:
            return True
        question = PermissionQuestion(
            request_id=self._new_id("request"),
            session_id=self._session_id,
            turn_id=call.turn_id,
            tool_use_id=call.tool_use_id,
            title=title,
            subject=subject,
            options=OPTIONS,
            reason=self._rules.reason(rule) if rule else reason,
            diff=diff(),
        )
        self._emit(
            PermissionRequested(
                turn_id=call.turn_id,
                message_id=call.message_id,
                request_id=question.request_id,
                tool_use_id=call.tool_use_id,
                title=title,
                subject=subject,
                options=OPTIONS,
                reason=question.reason,
            )
        )
        if rule is not None:
            self._rules.matched(rule, subject, question.request_id, self._now())
            if rule.effect != "ask":
                self._resolve(call, question, "policy")
                return rule.effect == "allow"
        return await self._ask_user(call, tool, question)

    async def _ask_user(self, call: ToolCall, tool: str, question: PermissionQuestion) -> bool:
        by: ResolvedBy = "cancel"
        option: PermissionOption | None = None
        try:
            answer = await self._questions.put(
                question, lambda: self._editor.ask_permission(question)
            )
            by = "timeout" if answer is None else "user"
            option = chosen(OPTIONS, answer)
        finally:
            self._resolve(call, question, by, option)
        if option is not None and option.kind == "allow_session":
            self._remember(tool, question)
        return option is not None and option.kind != "reject"

    def _resolve(
        self,
        call: ToolCall,
        question: PermissionQuestion,
        by: ResolvedBy,
        option: PermissionOption | None = None,
    ) -> None:
        self._emit(
            PermissionResolved(
                turn_id=call.turn_id,
                message_id=call.message_id,
                request_id=question.request_id,
                by=by,
                option_id=option.option_id if option else None,
            )
        )

    def _remember(self, tool: str, question: PermissionQuestion) -> None:
        if "*" in question.subject:
            return  # such a name would be taken for a pattern
        reason = f"The user allowed it for this session when asked by {question.request_id}."
        with suppress(KodeError):  # too many of them: this one is for once
            self._rules.add(Rule(tool, question.subject), "answer", reason, self._now())
