"""Asks the user before something sensitive happens. No answer means no (W15)."""

import asyncio
from collections.abc import Callable

from kode_sidecar.domain.agent_event import (
    Event,
    PermissionRequested,
    PermissionResolved,
    ResolvedBy,
)
from kode_sidecar.domain.permission import OPTIONS, Rule, chosen, is_allowed
from kode_sidecar.kernel.contracts import NewId, ToolCall
from kode_sidecar.main_session.contracts import EditorPort, PermissionQuestion


class PermissionGate:
    """The permissions of one session: asked for, remembered, forgotten with it."""

    def __init__(
        self,
        session_id: str,
        editor: EditorPort,
        emit: Callable[[Event], int],
        new_id: NewId,
        timeout: float,
    ) -> None:
        self._session_id = session_id
        self._editor = editor
        self._emit = emit
        self._new_id = new_id
        self._timeout = timeout
        self._rules: set[Rule] = set()

    async def ask(self, call: ToolCall, title: str, subject: str) -> bool:
        """Whether `call` may act on `subject`, a path as the user knows it.

        Emits `permission.requested` and then `permission.resolved`, once each, whatever happens:
        an answer, none within `timeout` seconds, a rule that knows it already, or a cancel, which
        is raised. An option that was never offered counts as no.
        """
        request_id = self._new_id("request")
        self._emit(
            PermissionRequested(
                turn_id=call.turn_id,
                message_id=call.message_id,
                request_id=request_id,
                tool_use_id=call.tool_use_id,
                title=title,
                subject=subject,
                options=OPTIONS,
            )
        )
        by: ResolvedBy = "cancel"
        option_id: str | None = None
        try:
            if is_allowed(self._rules, call.name, subject):
                by = "policy"
                return True
            answer = await self._answer(call, request_id, title, subject)
            option = chosen(OPTIONS, answer)
            by = "timeout" if answer is None else "user"
            if option is None:
                return False
            option_id = option.option_id
            if option.kind == "allow_session":
                self._rules.add(Rule(call.name, subject))
            return option.kind != "reject"
        finally:
            self._emit(
                PermissionResolved(
                    turn_id=call.turn_id,
                    message_id=call.message_id,
                    request_id=request_id,
                    by=by,
                    option_id=option_id,
                )
            )

    async def _answer(
        self, call: ToolCall, request_id: str, title: str, subject: str
    ) -> str | None:
        question = PermissionQuestion(
            request_id=request_id,
            session_id=self._session_id,
            turn_id=call.turn_id,
            tool_use_id=call.tool_use_id,
            title=title,
            subject=subject,
            options=OPTIONS,
        )
        try:
            return await asyncio.wait_for(self._editor.ask_permission(question), self._timeout)
        except TimeoutError:
            return None
