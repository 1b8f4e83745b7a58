"""Checks, runs and records every tool call of a run; no call goes another way (B5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec
from msgspec import structs

from kode_sidecar.core.domain.error_info import error_info, failure
from kode_sidecar.core.domain.run import RunError, RunRecord, Severity, ToolRecord, ToolStatus
from kode_sidecar.core.kernel.contracts import Clock, Tool, ToolCall, ToolOutcome, tool_failure
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.transcript import Transcript

# What a call is about, by the names our tools give it.
_SUBJECTS = ("path", "skill", "id", "directory", "query", "argv", "source")
_REFUSED = ("permission", "sandbox")


class RecordedTools:
    """A run's tools behind its policy and its records; engines call them and know no rules.

    `report_bug(where, error)` gets exceptions that should not exist.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        run: RunRecord,
        log: EventLog,
        transcript: Transcript,
        clock: Clock,
        report_bug: Callable[[str, BaseException], None],
    ) -> None:
        self._run = run
        self._tools = {tool.name: tool for tool in tools}
        self._log = log
        self._transcript = transcript
        self._clock = clock
        self._report_bug = report_bug
        self.calls: list[ToolRecord] = []

    @property
    def names(self) -> Sequence[str]:
        """Return the names of all tools, also of those that are not offered."""
        return tuple(self._tools)

    @property
    def offered(self) -> Sequence[Tool]:
        """Return the tools as the kernel's loop takes them; each call goes the way of `call`."""
        return tuple(self._recorded(tool) for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolOutcome:
        """Check, run and record one call. Every failure is an outcome the model can read.

        Raises KodeError `Storage` when the records fail, and asyncio.CancelledError.
        """
        log, started = self._log, self._clock.monotonic()
        call = ToolRecord(
            call_id=call_id,
            tool_name=name,
            action=log.one_line(_action(arguments)),
            started_at=self._clock.timestamp(),
            args_summary=log.one_line(encode_json(arguments).decode()),
        )
        event_id = log.event(
            "tool.started",
            f"{name} {call.action}".strip(),
            actor="model",
            data={"tool": name, "arguments": dict(arguments)},
            correlation_id=call_id,
        )
        outcome = tool_failure(failure("Cancelled", "The run ended before the tool did."))
        try:
            outcome = await self._outcome(name, arguments, call_id)
        finally:
            seconds = self._clock.monotonic() - started
            self._record(call, outcome, event_id, round(seconds * 1000))
        return outcome

    def _recorded(self, tool: Tool) -> Tool:
        """Return the tool for the kernel's loop; it takes all arguments, which are checked here."""

        async def run(params: Mapping[str, Any], call: ToolCall) -> ToolOutcome:
            return await self.call(tool.name, params, call.tool_use_id)

        return replace(tool, run=run, accept=dict, card=None)  # no client looks on

    async def _outcome(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolOutcome:
        tool = self._tools.get(name)
        if tool is None:
            names = (name for name, known in self._tools.items() if known.offered)
            offered = ", ".join(sorted(names)) or "none"
            text = f"There is no tool named {name!r}. Tools on offer: {offered}."
            return tool_failure(failure("UnknownTool", text))
        try:
            accept = tool.accept
            params = (
                accept(arguments)
                if accept is not None
                else msgspec.convert(arguments, tool.params, strict=False)
            )
        except msgspec.ValidationError as error:
            text = f"Invalid arguments for {name}: {error}. Mend them and call again."
            return tool_failure(failure("InvalidArguments", text))
        call = ToolCall(
            tool_use_id=call_id,
            name=name,
            session_id=self._run.session_id,
            turn_id=self._run.run_id,
            message_id=call_id,
        )
        try:
            return await tool.run(params, call)
        except KodeError as error:
            return tool_failure(error_info(error))
        except Exception as error:
            self._report_bug(f"tool {name}", error)
            text = f"{name} failed inside the sidecar; the log has the details. Go on without."
            return tool_failure(failure("ToolFailed", text))

    def _record(
        self, call: ToolRecord, outcome: ToolOutcome, event_id: str, duration_ms: int
    ) -> None:
        error = None if outcome.error is None else self._log.clean_error(outcome.error)
        ended = structs.replace(
            call,
            completed_at=self._clock.timestamp(),
            duration_ms=duration_ms,
            status=_status(error, ok=outcome.ok),
            result_summary=self._log.one_line(outcome.summary),
            artifacts=outcome.artifacts,
            error=error,
        )
        self.calls.append(ended)
        self._log.tool(ended)
        self._tell(ended, event_id)
        self._transcript.tool(ended)
        if outcome.error is not None and ended.status in ("denied", "error"):
            self._log.error(f"tool {call.tool_name}", outcome.error, correlation_id=call.call_id)

    def _tell(self, call: ToolRecord, parent: str) -> None:
        what = {"ok": "completed", "denied": "refused"}.get(call.status, "failed")
        severity: Severity = "info" if call.status == "ok" else "warning"
        data: dict[str, Any] = {
            "tool": call.tool_name,
            "status": call.status,
            "duration_ms": call.duration_ms,
            "artifacts": list(call.artifacts),
        }
        if call.error is not None:
            data["error"] = cast(dict[str, Any], msgspec.to_builtins(call.error))
        self._log.event(
            f"tool.{what}",
            f"{f'{call.tool_name} {call.action}'.strip()}: {call.result_summary}",
            actor="governance" if call.status == "denied" else "tool",
            severity=severity,
            data=data,
            correlation_id=call.call_id,
            parent_event_id=parent,
        )


def _status(error: RunError | None, *, ok: bool) -> ToolStatus:
    if ok:
        return "ok"
    if error is None:
        return "error"
    if error.code == "Cancelled":
        return "cancelled"
    return "denied" if error.category in _REFUSED else "error"


def _action(arguments: Mapping[str, Any]) -> str:
    """Return what a call is about, in a few words."""
    for key in _SUBJECTS:
        value: Any = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, cast(list[Any], value)))
    return ""
