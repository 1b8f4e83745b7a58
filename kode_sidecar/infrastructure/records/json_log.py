"""Writes `{log_dir}/agent.log`, one JSON object per line, on a thread of its own (A10)."""

import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from kode_sidecar.core.domain.message import Usage
from kode_sidecar.core.text.secret_text import MASK, SecretMask
from kode_sidecar.core.text.shown_text import fix_surrogates, without_controls
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.infrastructure.records.json_record import encode_json

_SECRET_NAME = re.compile(
    r"(?i)^(?:.*[_-])?(?:authorization|api[_-]?key|cookie|password|secret|token)$"
)


class Redaction:
    """Removes secrets and long texts from values before they are logged.

    `secrets` are the keys in use; see `SecretMask` for what is masked. With `keep_chars` None,
    content is logged whole; with a number, so many characters of it and its SHA-256.
    """

    def __init__(self, secrets: Sequence[str] = (), keep_chars: int | None = None) -> None:
        self._mask = SecretMask(secrets)
        self._keep_chars = keep_chars

    def text(self, text: str) -> str:
        """Return the text without credentials and control characters."""
        return self._mask.labels(without_controls(fix_surrogates(text)))

    def value(self, value: object) -> Any:
        """Return a JSON-like value, cleaned at every level; other objects become their `str`."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            pairs = cast(Mapping[object, object], value).items()
            return {self.text(str(key)): self._named(str(key), item) for key, item in pairs}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in cast(Sequence[object], value)]
        return self.text(str(value))

    def content(self, text: str) -> Any:
        """Return a prompt, a reply or a tool's output as the settings allow it (A10)."""
        text = self.text(text)
        if self._keep_chars is None:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"head": text[: self._keep_chars], "chars": len(text), "sha256": digest}

    def _named(self, name: str, value: object) -> Any:
        return MASK if value and _SECRET_NAME.match(name) else self.value(value)


Level = Literal["debug", "info", "warning", "error"]
_LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
_NOTHING: Mapping[str, str] = {}

_BURST_SECONDS = 0.1


@dataclass(frozen=True)
class LogScope:
    """The ids on every line of a turn; `trace_id` is the id of the turn."""

    trace_id: str | None = None
    conversation_id: str | None = None
    message_id: str | None = None
    provider: str | None = None


@dataclass(frozen=True)
class LogFiles:
    """The log's files. At `max_bytes` the file becomes `agent.log.1`; up to `keep` such files."""

    folder: Path
    max_bytes: int = 10_000_000
    keep: int = 3

    @property
    def path(self) -> Path:
        return self.folder / "agent.log"


@dataclass(frozen=True)
class _Line:
    record: dict[str, Any]
    content: Mapping[str, str]
    fields: Mapping[str, object]

    @property
    def weight(self) -> int:
        """The approximate number of characters of this line, while it waits."""
        return 500 + sum(map(len, self.content.values()))


class JsonLog:
    """The log. Writing never blocks and never fails; lines that are lost are counted and reported.

    `timestamp` returns the time of a line (RFC 3339 in UTC). Lines below `level` are left out.
    At most `max_waiting_chars` wait for the disk.
    """

    def __init__(
        self,
        files: LogFiles,
        timestamp: Callable[[], str],
        redaction: Redaction,
        *,
        level: Level = "info",
        max_waiting_chars: int = 16_000_000,
    ) -> None:
        self._files = files
        self._timestamp = timestamp
        self._redaction = redaction
        self._levels = _LEVELS[_LEVELS.index(level) :]
        self._max_waiting_chars = max_waiting_chars
        self._changed = threading.Condition()
        self._lines: deque[_Line] = deque()
        self._waiting_chars = 0
        self._dropped = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="json-log", daemon=True)
        self._thread.start()

    def write(
        self,
        level: Level,
        module: str,
        event: str,
        scope: LogScope = LogScope(),
        *,
        duration_ms: int | None = None,
        tokens: Usage | None = None,
        content: Mapping[str, str] = _NOTHING,
        **fields: object,
    ) -> None:
        """Log one event. The values must not change afterwards.

        `content` holds the words of people and models, by field name: only these are cut.
        In the line `duration` is in milliseconds and `tokens` has input, output, total, cached.
        """
        if level not in self._levels:
            return
        record: dict[str, Any] = {
            "time": self._timestamp(),
            "level": level,
            "module": module,
            "event": event,
            "trace_id": scope.trace_id,
            "conversation_id": scope.conversation_id,
            "message_id": scope.message_id,
            "provider": scope.provider,
            "duration": duration_ms,
            "tokens": _tokens(tokens),
        }
        line = _Line(record, content, fields)
        with self._changed:
            if self._closing or self._waiting_chars + line.weight > self._max_waiting_chars:
                self._dropped += 1
                return
            self._lines.append(line)
            self._waiting_chars += line.weight
            if len(self._lines) == 1:
                self._changed.notify()

    def close(self, timeout_s: float = 2.0) -> None:
        """Write the waiting lines and stop the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._lines or self._closing):
                    self._changed.wait()
                if not self._closing:
                    # Lines come in bursts, and then the event loop is busy: wait for its end.
                    self._changed.wait(_BURST_SECONDS)
                lines, self._lines = self._lines, deque()
                self._waiting_chars = 0
                dropped, self._dropped = self._dropped, 0
            if not (lines or dropped):
                return
            if not self._store([self._encode(line) for line in lines] + self._said(dropped)):
                with self._changed:
                    self._dropped += len(lines) + dropped
                    if self._closing:
                        return

    def _encode(self, line: _Line) -> bytes:
        clean = self._redaction
        try:
            record = clean.value({**line.record, **line.fields})
            record |= {name: clean.content(text) for name, text in line.content.items()}
            return encode_json(record) + b"\n"
        except Exception as error:
            # A value that cannot be encoded must not lose the line, or end the thread.
            return encode_json({**line.record, "not_logged": type(error).__name__}) + b"\n"

    def _said(self, dropped: int) -> list[bytes]:
        if not dropped:
            return []
        record = {
            "time": self._timestamp(),
            "level": "warning",
            "module": "json_log",
            "event": "lines_dropped",
            "count": dropped,
        }
        return [encode_json(record) + b"\n"]

    def _store(self, lines: list[bytes]) -> bool:
        try:
            make_private(self._files.folder)
            pending = b"".join(lines)
            if self._size() + len(pending) > self._files.max_bytes:
                self._rotate()
            # Opened for each batch: another sidecar may have rotated the file meanwhile.
            with open(self._files.path, "ab", opener=_private) as file:
                file.write(pending)
        except OSError:
            return False
        return True

    def _size(self) -> int:
        try:
            return self._files.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _rotate(self) -> None:
        path, keep = self._files.path, self._files.keep
        names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, keep + 1))]
        try:
            for old, new in reversed(list(pairwise(names))):
                if old.exists():
                    os.replace(old, new)
        except OSError:
            # Open in another process on Windows: let it grow, and try again with the next batch.
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _tokens(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "total": usage.total_tokens,
        "cached": usage.cached_tokens,
        "reasoning": usage.reasoning_tokens,
    }
