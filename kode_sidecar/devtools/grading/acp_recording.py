"""Records a conversation of the Agent Client Protocol: each line of either side, in order.

Loaded by the scripted client and agent, so it imports only the standard library.
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

Json = dict[str, Any]
CLIENT, AGENT = "client", "agent"
LEAVE_SECONDS = 10.0
"""How long an agent may take to end after its stdin was closed."""


def part(value: Json, name: str) -> Json:
    """Return an object's member that is an object, too; empty for any other."""
    found = value.get(name)
    return cast(Json, found) if isinstance(found, dict) else {}


def parts(value: Json, name: str) -> list[Json]:
    """Return the objects in an object's member that is a list; empty for any other."""
    found = value.get(name)
    items = cast(list[Any], found) if isinstance(found, list) else []
    return [cast(Json, one) for one in items if isinstance(one, dict)]


class AcpRecorder:
    """Writes a line of JSON for each message, and for each side's end. Used by several threads."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def line(self, by: str, line: bytes, *, probe: bool = False) -> None:
        """Record a message; a `probe` is wrong on purpose."""
        text = line.decode("utf-8", "surrogateescape").removesuffix("\n")
        self._write({"by": by, "line": text, **({"probe": True} if probe else {})})

    def end(self, by: str) -> None:
        """Record that a side has ended."""
        self._write({"by": by, "end": True})

    def _write(self, fields: Json) -> None:
        with self._lock:
            at = round(time.monotonic() - self._began, 4)
            self._file.write(json.dumps({"t": at, **fields}) + "\n")
            self._file.flush()


class AcpPipe:
    """One side's end of a conversation, recorded. `me` is that side."""

    def __init__(
        self, me: str, incoming: IO[bytes], outgoing: IO[bytes], recorder: AcpRecorder
    ) -> None:
        self._me, self._other = me, CLIENT if me == AGENT else AGENT
        self._incoming, self._outgoing, self._recorder = incoming, outgoing, recorder
        self._arrived: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Json, *, probe: bool = False) -> None:
        """Send a message, and do nothing once the other side has ended."""
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"
        self._recorder.line(self._me, line, probe=probe)
        try:
            self._outgoing.write(line)
            self._outgoing.flush()
        except OSError:
            pass

    def receive(self, seconds: float | None = None) -> Json | None:
        """Return the next message, None at the end. Raises queue.Empty after `seconds`."""
        return self._arrived.get(timeout=seconds)

    def _read(self) -> None:
        for line in self._incoming:
            self._recorder.line(self._other, line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._arrived.put(cast(Json, message))
        self._recorder.end(self._other)
        self._arrived.put(None)


def start_agent(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start an agent with pipes to it. Raises OSError."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def dismiss(agent: "subprocess.Popen[bytes]") -> int:
    """Close an agent's stdin, wait for it to end, and return its exit code."""
    assert agent.stdin is not None
    with contextlib.suppress(OSError):
        agent.stdin.close()
    try:
        return agent.wait(LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        agent.kill()
        return agent.wait()


def pass_on(command: Sequence[str], recorder: AcpRecorder) -> int:
    """Be the agent `command` for whoever started us, recording both sides; its exit code."""
    agent = start_agent(command)
    assert agent.stdin is not None
    assert agent.stdout is not None
    copying = threading.Thread(
        target=_copy, args=(sys.stdin.buffer, agent.stdin, CLIENT, recorder), daemon=True
    )
    copying.start()
    _copy(agent.stdout, sys.stdout.buffer, AGENT, recorder)
    return dismiss(agent)


def _copy(source: IO[bytes], target: IO[bytes], by: str, recorder: AcpRecorder) -> None:
    """Pass lines on as they come; at their end close the agent's stdin, or leave ours open."""
    for line in source:
        recorder.line(by, line)
        try:
            target.write(line)
            target.flush()
        except OSError:
            break
    recorder.end(by)
    if by == CLIENT:
        with contextlib.suppress(OSError):
            target.close()
