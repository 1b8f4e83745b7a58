"""Writes the events, tool calls and errors of a run: small, without secrets, in order (B5)."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct, structs

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.domain.run import (
    Actor,
    ErrorRecord,
    RunError,
    RunEvent,
    RunRecord,
    Severity,
    ToolRecord,
    run_error,
)
from kode_sidecar.core.kernel.contracts import Clock
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_log import Redaction
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.infrastructure.records.run_records import (
    ERRORS_FILE,
    EVENTS_FILE,
    TOOLS_FILE,
    RunRecords,
)

MAX_VALUE_CHARS = 2_000
"""Longer texts go to an artifact."""
MAX_DATA_BYTES = 8_000
MAX_SUMMARY_CHARS = 300
_BLANKS = re.compile(r"\s+")


class EventLog:
    """Writes the logs of a run. Large values move to artifacts; secrets are removed everywhere.

    `record` returns the run's record with its ids. `redaction` removes the keys in use. `watch`
    gets every event after it is on disk. `note_artifact(path, kind, created_by)` is called for each
    artifact made. `failure` is the first failure of the disk; `on_failure` is called then, for
    callers that cannot raise it.

    Its methods raise KodeError `Storage` if the disk fails, which ends the run.
    """

    def __init__(
        self,
        records: RunRecords,
        record: Callable[[], RunRecord],
        clock: Clock,
        redaction: Redaction,
        watch: Callable[[RunEvent], None],
        on_failure: Callable[[], None],
    ) -> None:
        self._records = records
        self._record = record
        self._clock = clock
        self._redaction = redaction
        self._watch = watch
        self._sequence = 0
        self.failure: KodeError | None = None
        self._on_failure = on_failure
        self.note_artifact: Callable[[str, str, str], None] = lambda _path, _kind, _by: None

    def event(
        self,
        kind: str,
        summary: str,
        *,
        actor: Actor = "runtime",
        severity: Severity = "info",
        data: Mapping[str, Any] | None = None,
        correlation_id: str = "",
        parent_event_id: str = "",
    ) -> str:
        """Append an event of type `kind` to `events.jsonl`; return its id."""
        record, sequence = self._record(), self._sequence + 1
        event = RunEvent(
            event_id=f"{record.run_id}-{sequence}",
            sequence=sequence,
            run_id=record.run_id,
            session_id=record.session_id,
            task_id=record.task_id,
            type=kind,
            timestamp=self._clock.timestamp(),
            actor=actor,
            severity=severity,
            summary=self.one_line(summary),
            data=self._small(data or {}, f"e{sequence}"),
            correlation_id=correlation_id,
            parent_event_id=parent_event_id or None,
        )
        self._append(EVENTS_FILE, event)
        self._sequence = sequence
        self._watch(event)
        return event.event_id

    def error(self, where: str, error: ErrorInfo, *, correlation_id: str = "") -> None:
        """Append a failure to `logs/errors.jsonl`, and the event that reports it.

        `where` is a step or `tool NAME`. The event is `path.refused` for an error of category
        `sandbox`, else `error.recorded`.
        """
        reported = self.clean_error(error)
        refused = error.category == "sandbox"
        event_id = self.event(
            "path.refused" if refused else "error.recorded",
            f"{where}: {reported.message}",
            actor="governance" if refused else "runtime",
            severity="error",
            data={"where": where, "code": reported.code, "category": reported.category},
            correlation_id=correlation_id,
        )
        line = ErrorRecord(
            timestamp=self._clock.timestamp(),
            run_id=self._record().run_id,
            where=where,
            error=reported,
            correlation_id=correlation_id,
            event_id=event_id,
        )
        self._append(ERRORS_FILE, line)

    def now(self) -> str:
        """Return the time now, for events that have none."""
        return self._clock.timestamp()

    def tool(self, line: ToolRecord) -> None:
        """Append a call to `logs/tools.jsonl`."""
        self._append(TOOLS_FILE, line)

    def clean_error(self, error: ErrorInfo) -> RunError:
        """Return the error without keys, fit to be recorded."""
        clean = run_error(error)
        details = self._redaction.value(clean.details) if clean.details else None
        return structs.replace(clean, message=self.text(clean.message), details=details)

    def text(self, text: str) -> str:
        """Return a text with keys in use, other credentials and control characters removed."""
        return self._redaction.text(text)

    def one_line(self, text: str) -> str:
        """Return a text as a summary: one short line without secrets."""
        line = _BLANKS.sub(" ", self.text(text)).strip()
        return line if len(line) <= MAX_SUMMARY_CHARS else f"{line[: MAX_SUMMARY_CHARS - 1]}…"

    def save_artifact(self, text: str, name: str, *, kind: str, created_by: str) -> Blob:
        """Save a text as `archive/artifacts/{name}.txt`, without credentials."""
        text = self._redaction.text(text)
        path = f"archive/artifacts/{name}.txt"
        size = self._records.save_artifact(f"{name}.txt", text)
        self.note_artifact(path, kind, created_by)
        return Blob(ref=path, bytes=size, sha256=hashlib.sha256(text.encode()).hexdigest())

    def _append(self, name: str, line: Struct) -> None:
        try:
            self._records.append(name, line)
        except KodeError as error:
            if self.failure is None:
                self.failure = error
                self._on_failure()
            raise

    def _small(self, data: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return data fit for an event, with large values moved to artifacts."""
        kept = {
            key: self._fit(value, f"{name}-{position}")
            for position, (key, value) in enumerate(self._redaction.value(data).items())
        }
        if len(encode_json(kept)) <= MAX_DATA_BYTES:
            return kept
        return {"artifact": self._moved(encode_json(data).decode(), name)}

    def _fit(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self._moved(value, name) if len(value) > MAX_VALUE_CHARS else value
        if isinstance(value, Mapping):
            items = cast(Mapping[str, Any], value).items()
            return {key: self._fit(item, f"{name}-{n}") for n, (key, item) in enumerate(items)}
        if isinstance(value, list):
            items = enumerate(cast(list[Any], value))
            return [self._fit(item, f"{name}-{position}") for position, item in items]
        return value

    def _moved(self, text: str, name: str) -> dict[str, Any]:
        try:
            blob = self.save_artifact(text, name, kind="event_data", created_by="runtime")
        except KodeError:
            return {"left_out": "it could not be kept", "chars": len(text)}
        return {"artifact": blob.ref, "bytes": blob.bytes, "sha256": blob.sha256}
