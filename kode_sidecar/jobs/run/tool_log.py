"""The tool calls of a run, from the events of its session (B5)."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import msgspec

from kode_sidecar.core.domain.agent_event import BlockCompleted, BlockStarted
from kode_sidecar.core.domain.message import ResultStatus, ToolResultBlock, ToolUseBlock
from kode_sidecar.core.domain.run import Severity, ToolRecord
from kode_sidecar.core.kernel.contracts import ToolOutcome
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.transcript import Transcript

# The parameters of our tools that say what a call is about.
_SUBJECTS = ("path", "skill", "id", "directory", "query", "argv", "source")
_KINDS: Mapping[ResultStatus, str] = {"ok": "completed", "denied": "refused"}


@dataclass(frozen=True)
class _Started:
    record: ToolRecord
    event_id: str


class ToolLog:
    """Writes each call to `logs/tools.jsonl`, the events and the transcript.

    `outcome` is the session's `call_ended`, which holds more about errors and artifacts than a
    block does. A call with invalid JSON never ran and has no line. `calls` are those that ended.
    """

    def __init__(self, log: EventLog, transcript: Transcript) -> None:
        self._log = log
        self._transcript = transcript
        self._asked: dict[str, ToolUseBlock] = {}
        self._running: dict[str, _Started] = {}
        # A queue for each id: events may be held back, and a model may reuse an id.
        self._outcomes: defaultdict[str, deque[ToolOutcome]] = defaultdict(deque)
        self.calls: list[ToolRecord] = []

    def outcome(self, tool_use_id: str, outcome: ToolOutcome) -> None:
        """Take the outcome of a call; its block follows."""
        self._outcomes[tool_use_id].append(outcome)

    def asked(self, call: ToolUseBlock) -> None:
        """Take a call of the model."""
        self._asked[call.id] = call

    def started(self, event: BlockStarted, result: ToolResultBlock) -> None:
        """Record that a call runs. Raises KodeError `Storage`."""
        call = self._asked.get(result.call_block_id)
        if call is None or call.invalid_input is not None:
            return
        log, action = self._log, self._log.one_line(_action(call.input))
        event_id = log.event(
            "tool.started",
            f"{call.name} {action}".strip(),
            actor="model",
            data={"tool": call.name, "arguments": call.input},
            correlation_id=call.tool_use_id,
        )
        record = ToolRecord(
            call_id=call.tool_use_id,
            tool_name=call.name,
            action=action,
            started_at=event.ts or self._log.now(),
            args_summary={
                log.one_line(name): log.one_line(
                    value if isinstance(value, str) else encode_json(value).decode()
                )
                for name, value in call.input.items()
            },
        )
        self._running[result.id] = _Started(record, event_id)

    def ended(self, event: BlockCompleted, result: ToolResultBlock) -> None:
        """Record the outcome of a call. Raises KodeError `Storage`."""
        outcomes = self._outcomes[result.tool_use_id]
        outcome = outcomes.popleft() if outcomes else None
        started = self._running.pop(result.id, None)
        if started is None:
            return
        error = outcome.error if outcome is not None else None
        now = event.ts or self._log.now()
        ended = msgspec.structs.replace(
            started.record,
            completed_at=now,
            duration_ms=_milliseconds(started.record.started_at, now),
            status=result.status,
            result_summary=self._log.one_line(result.summary),
            artifacts=outcome.artifacts if outcome is not None else (),
            error=None if error is None else self._log.clean_error(error),
        )
        self.calls.append(ended)
        self._log.tool(ended)
        self._report(ended, started.event_id)
        self._transcript.tool(ended)
        if error is not None and ended.status in ("denied", "error"):
            self._log.error(f"tool {ended.tool_name}", error, correlation_id=ended.call_id)

    def _report(self, call: ToolRecord, parent: str) -> None:
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
            f"tool.{_KINDS.get(call.status, 'failed')}",
            f"{f'{call.tool_name} {call.action}'.strip()}: {call.result_summary}",
            actor="governance" if call.status == "denied" else "tool",
            severity=severity,
            data=data,
            correlation_id=call.call_id,
            parent_event_id=parent,
        )


def _milliseconds(start: str, end: str) -> int:
    took = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return round(took.total_seconds() * 1000)


def _action(arguments: Mapping[str, Any]) -> str:
    """Return what a call is about, such as its path or its command."""
    for key in _SUBJECTS:
        value: Any = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, cast(list[Any], value)))
    return ""
