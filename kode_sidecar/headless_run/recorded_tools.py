"""Every tool call of a run: checked, run, and told to the records. No call is left out (B5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from kode_sidecar.domain.error_info import error_info, failure
from kode_sidecar.domain.run import RunError, Severity, ToolRecord, ToolStatus
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.run_log import EventLog
from kode_sidecar.headless_run.transcript import Transcript
from kode_sidecar.kernel.contracts import Clock, Tool, ToolCall, ToolOutcome, tool_failure
from kode_sidecar.records.json_record import encode_json

# What a call is about, by the names our tools give it.
_SUBJECTS = ("path", "skill", "id", "directory", "query", "argv", "source")
_REFUSED = ("permission", "sandbox")


@dataclass(frozen=True)
class _Begun:
    """A call that runs, as its record will tell it."""

    name: str
    action: str
    arguments: str
    call_id: str
    event_id: str
    timestamp: str
    seconds: float


ReportBug = Callable[[str, BaseException], None]


class RecordedTools:
    """`contracts.RunTools`. `report_bug(where, error)` gets exceptions that should not exist."""

    def __init__(
        self,
        tools: Sequence[Tool],
        log: EventLog,
        transcript: Transcript,
        clock: Clock,
        *,
        session_id: str,
        run_id: str,
        report_bug: ReportBug,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._log = log
        self._transcript = transcript
        self._clock = clock
        self._session_id = session_id
        self._run_id = run_id
        self._report_bug = report_bug
        self.calls: list[ToolRecord] = []

    @property
    def offered(self) -> Sequence[Tool]:
        """See `contracts.RunTools`."""
        return tuple(self._recorded(tool) for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolOutcome:
        """See `contracts.RunTools`."""
        action = self._log.one_line(_action(arguments))
        event_id = self._log.event(
            "tool.started",
            f"{name} {action}".strip(),
            actor="model",
            data={"tool": name, "arguments": dict(arguments)},
            correlation_id=call_id,
        )
        began = _Begun(
            name=name,
            action=action,
            arguments=self._log.one_line(encode_json(arguments).decode()),
            call_id=call_id,
            event_id=event_id,
            timestamp=self._clock.timestamp(),
            seconds=self._clock.monotonic(),
        )
        try:
            outcome = await self._outcome(name, arguments, call_id)
        except BaseException:
            text = "The run ended before the tool did."
            self._record(began, tool_failure(failure("Cancelled", text)))
            raise
        self._record(began, outcome)
        return outcome

    def _recorded(self, tool: Tool) -> Tool:
        """The tool as the kernel's loop calls it: all arguments pass, and are checked here."""

        async def run(params: Mapping[str, Any], call: ToolCall) -> ToolOutcome:
            return await self.call(tool.name, params, call.tool_use_id)

        return replace(tool, run=run, accept=dict)

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
            session_id=self._session_id,
            turn_id=self._run_id,
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

    def _record(self, began: "_Begun", outcome: ToolOutcome) -> None:
        error = None if outcome.error is None else self._log.clean_error(outcome.error)
        line = ToolRecord(
            call_id=began.call_id,
            tool_name=began.name,
            action=began.action,
            started_at=began.timestamp,
            completed_at=self._clock.timestamp(),
            duration_ms=round((self._clock.monotonic() - began.seconds) * 1000),
            status=_status(error, ok=outcome.ok),
            args_summary=began.arguments,
            result_summary=self._log.one_line(outcome.summary),
            artifacts=outcome.artifacts,
            error=error,
        )
        self.calls.append(line)
        self._log.tool(line)
        self._tell(line, began.event_id)
        self._transcript.tool(line)
        if outcome.error is not None and line.status in ("denied", "error"):
            self._log.error(f"tool {began.name}", outcome.error, correlation_id=began.call_id)

    def _tell(self, line: ToolRecord, parent: str) -> None:
        what = {"ok": "completed", "denied": "refused"}.get(line.status, "failed")
        severity: Severity = "info" if line.status == "ok" else "warning"
        data: dict[str, Any] = {
            "tool": line.tool_name,
            "status": line.status,
            "duration_ms": line.duration_ms,
            "artifacts": list(line.artifacts),
        }
        if line.error is not None:
            data["error"] = cast(dict[str, Any], msgspec.to_builtins(line.error))
        self._log.event(
            f"tool.{what}",
            f"{f'{line.tool_name} {line.action}'.strip()}: {line.result_summary}",
            actor="governance" if line.status == "denied" else "tool",
            severity=severity,
            data=data,
            correlation_id=line.call_id,
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
    """What a call is about, in a few words."""
    for key in _SUBJECTS:
        value: Any = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, cast(list[Any], value)))
    return ""
