"""Run the hooks of one session at its events; nothing happens before the verdict about it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from kode_sidecar.agent.hooks.foreign_calls import ForeignCall, foreign_calls
from kode_sidecar.agent.hooks.hook_file import Hook, HookEvent
from kode_sidecar.agent.hooks.verdict import Decision, HookVerdict
from kode_sidecar.agent.turns import HookScope
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.domain.notice_codes import NoticeCode
from kode_sidecar.core.domain.permission import ALLOW_ONCE, REJECT
from kode_sidecar.core.kernel.contracts import (
    Incoming,
    NextRound,
    Tool,
    ToolCall,
    ToolOutcome,
    tool_failure,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

RunHook = Callable[[Hook, Mapping[str, Any]], Awaitable[HookVerdict]]
"""Runs a hook with its input; what goes wrong is a verdict, too."""

MOST_STOPS = 8
"""How often in a turn hooks may make the model go on."""
_WEIGHT: Sequence[Decision] = ("none", "allow", "ask", "deny")
_MODES = {"plan": "plan", "auto": "acceptEdits", "keep": "acceptEdits"}


class SessionHooks:
    """`turns.Hooks` with hooks: in their order, one after the other.

    The first one that forbids decides; no other one runs then.
    """

    def __init__(
        self, hooks: Sequence[Hook], run: RunHook, workspace: Workspace, scope: HookScope
    ) -> None:
        self._hooks = hooks
        self._run = run
        self._workspace = workspace
        self._scope = scope

    async def run_call(self, tool: Tool, params: Any, call: ToolCall) -> ToolOutcome:
        """Run a tool between the hooks before and after it."""
        calls = foreign_calls(tool, params, self._workspace)
        notes: list[str] = []
        for foreign in calls:
            said = _about(foreign, call)
            verdict = await self._judged("PreToolUse", foreign.names, said, call.turn_id)
            if verdict.decision == "ask" and not await self._agreed(tool, params, call, verdict):
                verdict = HookVerdict("deny", verdict.reason or "the user did not agree")
            if verdict.decision == "deny":
                return _refused(tool.name, verdict.reason)
            notes += [verdict.context] if verdict.context else []
        await self._scope.emit.flow()  # the turn may have been cancelled meanwhile
        outcome = await tool.run(params, call)
        for foreign in calls:
            response = {"success": outcome.ok, "content": outcome.content or outcome.summary}
            said = {**_about(foreign, call), "tool_response": response}
            verdict = await self._judged("PostToolUse", foreign.names, said, call.turn_id)
            notes += [one for one in (verdict.reason, verdict.context) if one]
        return _with_notes(outcome, notes)

    async def before_prompt(self, text: str, *, resumed: bool) -> str | None:
        """Return what hooks say beside a prompt. Raises KodeError `Denied` if one forbids it."""
        said: list[str] = []
        if not self._scope.begun:
            self._scope.begun = True
            source = "resume" if resumed else "startup"
            verdict = await self._judged("SessionStart", (source,), {"source": source})
            said += [verdict.context] if verdict.context else []
        if text:
            verdict = await self._judged("UserPromptSubmit", (), {"prompt": text})
            if verdict.decision == "deny":
                raise KodeError("Denied", f"A hook refuses this prompt: {verdict.reason}")
            said += [verdict.context] if verdict.context else []
        return "\n\n".join([_FRAME, *said]) if said else None

    async def before_compaction(self, turn_id: str) -> str | None:
        """Return why history may not be summed up now; None if it may."""
        trigger = "auto" if turn_id else "manual"
        said = {"trigger": trigger, "custom_instructions": ""}
        verdict = await self._judged("PreCompact", (trigger,), said, turn_id)
        return f"A hook refuses it: {verdict.reason}" if verdict.decision == "deny" else None

    def next_round(self, turn_id: str) -> NextRound | None:
        """Return what asks the hooks at the end of a turn whether the model has to go on."""
        if not any(hook.event == "Stop" for hook in self._hooks):
            return None
        rounds = 0

        async def following() -> Incoming | None:
            nonlocal rounds
            said = {"stop_hook_active": rounds > 0}
            verdict = await self._judged("Stop", (), said, turn_id)
            if verdict.decision != "deny":
                return None
            rounds += 1
            if rounds > MOST_STOPS:
                text = f"Hooks made the model go on {MOST_STOPS} times, so it stops here."
                self.notify_user("HookFailed", text, turn_id)
                return None
            words = TextBlock(text=f"{_FRAME}\n\n{verdict.reason}")
            return Incoming("user", (words,), {"origin": "reminder"})

        return following

    async def _judged(
        self, event: HookEvent, names: Collection[str], said: Mapping[str, Any], turn_id: str = ""
    ) -> HookVerdict:
        """Run the hooks of an event and return the strictest verdict, with all contexts."""
        strictest = HookVerdict()
        contexts: list[str] = []
        for hook in self._hooks:
            if hook.event != event or (names and not hook.matches(names)):
                continue
            verdict = await self._run(hook, {**self._common(event), **said})
            if verdict.failed:
                effect = "It forbids." if hook.fails_closed else "Work goes on without it."
                text = f"The hook {hook.about} gave no verdict: {verdict.failed} {effect}"
                self.notify_user("HookFailed", text, turn_id)
            if verdict.message:
                self.notify_user("HookSays", verdict.message, turn_id, level="info")
            contexts += [verdict.context] if verdict.context else []
            if _WEIGHT.index(verdict.decision) > _WEIGHT.index(strictest.decision):
                strictest = verdict
            if strictest.decision == "deny":
                break
        return msgspec.structs.replace(strictest, context="\n\n".join(contexts))

    def _common(self, event: HookEvent) -> Mapping[str, Any]:
        roots = self._workspace.roots
        return {
            "session_id": self._scope.session_id,
            "transcript_path": str(self._scope.transcript),
            "cwd": str(roots[0].path) if roots else "",
            "permission_mode": _MODES.get(self._scope.mode(), "default"),
            "hook_event_name": event,
        }

    async def _agreed(self, tool: Tool, params: Any, call: ToolCall, verdict: HookVerdict) -> bool:
        title = tool.card(params).title if tool.card is not None else tool.name
        return await self._scope.permissions.ask(
            call,
            title,
            title,
            operation="hook",
            reason=verdict.reason or "A hook wants you to decide.",
            options=(ALLOW_ONCE, REJECT),
            by_rules=False,
        )

    def notify_user(
        self, code: NoticeCode, text: str, turn_id: str, level: Any = "warning"
    ) -> None:
        """Report something about hooks to the user."""
        self._scope.emit(Notice(turn_id=turn_id, code=code, message=text, level=level))


_FRAME = "The user's own hooks add this:"


def _about(foreign: ForeignCall, call: ToolCall) -> dict[str, Any]:
    return {
        "tool_name": foreign.name,
        "tool_input": foreign.arguments,
        "tool_use_id": call.tool_use_id,
        "kode_tool_name": foreign.own_name,
    }


def _refused(name: str, reason: str) -> ToolOutcome:
    text = f"A hook of the user refuses this call of {name}: {reason}"
    return tool_failure(failure("Denied", text))


def _with_notes(outcome: ToolOutcome, notes: Sequence[str]) -> ToolOutcome:
    if not notes:
        return outcome
    text = outcome.content or outcome.summary
    content = "\n\n".join([text, _FRAME, *notes])
    return msgspec.structs.replace(outcome, content=content, unchanging=outcome.unchanging or text)
