"""The sidecar and the floors, driven alike: spawn, session, turns."""

import json
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.model import FLOOR, PROMPT, Model
from benchmarks.process import Arrival, BenchError, Framing, Lines, LspFrames, Process

HOOKS = FLOOR.parent / "hooks"
ROOT = FLOOR.parent.parent
SIDECAR = "kode-sidecar"
MINIMAL_LOOP = "loop_httpx"
RAW_LOOP = "loop_raw"
# The floors read stdin through `connect_read_pipe`, which Windows has not.
PROGRAMS = (SIDECAR,) if sys.platform == "win32" else (SIDECAR, MINIMAL_LOOP, RAW_LOOP)

READ_ME = "notes.txt"
"""The file that the tool reads are of, in the workspace."""

# What a shell may hold that would change a measurement.
_OURS = ("KODE_", "KIMI_", "MOONSHOT_", "ANTHROPIC_", "OPENAI_", "AGENT_LOG_", "PYTHON")
_MARKER = re.compile(rb"~(\d+):(\d+)~")


@dataclass(frozen=True)
class Turn:
    """A turn as seen from outside. `messages` are all it sent, `deltas` those that grow text."""

    sent_ns: int
    messages: Sequence[Arrival]
    deltas: Sequence[Arrival]

    @property
    def seconds(self) -> float:
        """From the prompt to the end."""
        return (self.messages[-1].at_ns - self.sent_ns) / 1e9

    def latencies_ms(self) -> list[float]:
        """Of each delta of a paced turn: from its writing by the server to our read."""
        return [
            (arrival.at_ns - int(written_ns)) / 1e6
            for arrival in self.deltas
            for _, written_ns in _MARKER.findall(arrival.body)
        ]

    def lone_bytes(self) -> list[int]:
        """The bytes on the wire of each delta that travelled alone."""
        lone = (arrival for arrival in self.deltas if len(_MARKER.findall(arrival.body)) == 1)
        return [arrival.wire_bytes for arrival in lone]


class Program(ABC):
    """A running program. `open` it, then run turns, one at a time."""

    delta_mark: bytes
    finished_mark: bytes
    cancelled_mark: bytes

    def __init__(self, process: Process) -> None:
        self.process = process
        self.opened_ns = 0
        self.initialized_ns = 0
        self._ids = 0

    def open(self) -> None:
        """Handshake and one session; notes when each was answered."""
        self.initialized_ns = self._initialize()
        self.opened_ns = self.new_session()

    @abstractmethod
    def _initialize(self) -> int:
        """When it was answered."""

    @abstractmethod
    def new_session(self) -> int:
        """Later turns are in a new session. When it was answered."""

    @abstractmethod
    def wait_loaded(self) -> None:
        """Wait until nothing is imported any more."""

    @abstractmethod
    def start(self, prompt: str = PROMPT) -> tuple[int, bytes]:
        """Send the prompt: when, and the mark of the turn's last message."""

    @abstractmethod
    def cancel(self) -> int:
        """Send the cancel; when."""

    def turn(self, prompt: str = PROMPT) -> Turn:
        """Run a turn to its end."""
        sent_ns, end = self.start(prompt)
        return self._collect(sent_ns, end)

    def cancelled_after(self, delta: int) -> float:
        """Start a turn and cancel it when that delta has come: ms from cancel to end."""
        _, end = self.start()
        self.process.until(b"~%d:" % delta)
        sent_ns = self.cancel()
        last = self.process.until(end)[-1]
        if self.cancelled_mark not in last.body:
            raise BenchError(f"cancel ended a turn with {last.body[:500]!r}")
        return (last.at_ns - sent_ns) / 1e6

    def _collect(self, sent_ns: int, end: bytes) -> Turn:
        messages = self.process.until(end)
        if self.finished_mark not in messages[-1].body:
            raise BenchError(f"a turn ended with {messages[-1].body[:500]!r}")
        deltas = [message for message in messages if self.delta_mark in message.body]
        return Turn(sent_ns, messages, deltas)

    def _request(self, method: str, params: Any) -> tuple[bytes, bytes]:
        """A request's body and the mark of its answer."""
        self._ids += 1
        request_id = f"bench-{self._ids}"
        return _message(method, params, id=request_id), f'"{request_id}"'.encode()

    def _ask(self, method: str, params: Any) -> Arrival:
        body, mark = self._request(method, params)
        self.process.send(body)
        answer = self.process.until(mark)[-1]
        return _accepted(answer, method)


class Sidecar(Program):
    """Spoken to as an editor does."""

    delta_mark = b'"kode/delta"'
    finished_mark = b'"end_turn"'
    cancelled_mark = b'"cancelled"'

    def __init__(self, process: Process, workspace: Path, home: Path) -> None:
        super().__init__(process)
        self.home = home
        self._workspace = workspace
        self._session_id = ""

    def _initialize(self) -> int:
        kode = {"protocolVersions": ["1.0"], "client": {"name": "bench", "version": "1"}}
        params = {
            "processId": os.getpid(),
            "rootUri": self._workspace.as_uri(),
            "capabilities": {"general": {"positionEncodings": ["utf-8", "utf-16"]}},
            "initializationOptions": {"kode": kode},
        }
        answered_ns = self._ask("initialize", params).at_ns
        self.process.send(_message("initialized", {}))
        return answered_ns

    def new_session(self) -> int:
        answer = self._ask("kode/session/new", {"agent": "coder"})
        self._session_id = json.loads(answer.body)["result"]["sessionId"]
        return answer.at_ns

    def wait_loaded(self) -> None:
        # The standard lane answers this, which is loaded last.
        self._ask("workspace/executeCommand", {"command": "kode.doctor"})

    def start(self, prompt: str = PROMPT) -> tuple[int, bytes]:
        blocks = [{"type": "text", "text": prompt}]
        params = {"sessionId": self._session_id, "input": blocks}
        body, accepted = self._request("kode/turn/start", params)
        sent_ns = self.process.send(body)
        _accepted(self.process.until(accepted)[-1], "kode/turn/start")
        return sent_ns, b'"turn.completed"'

    def ask_ms(self, method: str, params: Any) -> float:
        """Milliseconds from a request's writing to the last byte of its answer."""
        body, mark = self._request(method, params)
        sent_ns = self.process.send(body)
        return (_accepted(self.process.until(mark)[-1], method).at_ns - sent_ns) / 1e6

    def begin(self, method: str, params: Any) -> bytes:
        """Send a request; the mark of its answer."""
        body, mark = self._request(method, params)
        self.process.send(body)
        return mark

    def report(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.process.send(_message(method, params))

    def answer(self, request_id: int | str, result: Any) -> None:
        """Answer a request of the sidecar's."""
        self.process.send(
            json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()
        )

    def cancel(self) -> int:
        body, _ = self._request("kode/turn/cancel", {"sessionId": self._session_id})
        return self.process.send(body)


class Loop(Program):
    """One of the floors: JSON lines."""

    delta_mark = b'"method":"d"'
    finished_mark = b'"end"'
    cancelled_mark = b'"cancelled"'

    def _initialize(self) -> int:
        return self._ask("initialize", {}).at_ns

    def new_session(self) -> int:
        return self._ask("session/new", {}).at_ns

    def wait_loaded(self) -> None:
        """It imports everything before it answers anything."""

    def start(self, prompt: str = PROMPT) -> tuple[int, bytes]:
        body, answered = self._request("session/prompt", {"text": prompt})
        return self.process.send(body), answered

    def cancel(self) -> int:
        return self.process.send(_message("session/cancel", {}))


class Arena:
    """Where programs are spawned: one model server, one workspace, a fresh home for each."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.model = model
        self.folder = folder
        self.fsync_log = folder / "fsyncs"
        self.step_log = folder / "steps"
        self._spawned = 0
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        lines = (f"line {number} of a file like any other\n" for number in range(1, 101))
        (self.workspace / READ_ME).write_text("".join(lines), encoding="utf-8")

    def spawn(self, name: str, *, hook: str = "", config: str = "") -> Program:
        """Start a program, with one of `hooks/` in it; `config` is the sidecar's `config.yaml`."""
        if name == SIDECAR:
            process = self._process(name, ["-m", "kode_sidecar"], LspFrames(), hook, config)
            return Sidecar(process, self.workspace, self._home(name) / "state")
        return Loop(self._process(name, [str(FLOOR / f"{name}.py")], Lines(), hook))

    def plain_python(self) -> float:
        """Seconds from the spawn of `python -c pass` to its end."""
        process = self._process("python", ["-c", "pass"], Lines(), "")
        try:
            return process.lifetime_ns() / 1e9
        finally:
            process.close()

    def rounds(self, runs: int) -> Iterator[tuple[str, Program]]:
        """Fresh, warm programs, all of them in turn, `runs` times; each closed after its use."""
        for _ in range(runs):
            for name in PROGRAMS:
                program = self.warm(name)
                try:
                    yield name, program
                finally:
                    program.process.close()

    def warm(self, name: str) -> Program:
        """A program that has loaded everything and has run one turn."""
        program = self.spawn(name)
        try:
            program.open()
            program.wait_loaded()
            self.model.plan(n=1)
            program.turn()
        except BenchError:
            program.process.close()
            raise
        settle()
        return program

    def _home(self, name: str) -> Path:
        """The folder of the program spawned last."""
        return self.folder / f"{self._spawned}-{name}"

    def _process(
        self, name: str, arguments: Sequence[str], framing: Framing, hook: str, config: str = ""
    ) -> Process:
        self._spawned += 1
        home = self._home(name)
        home.mkdir()
        if config:
            (home / "state").mkdir()
            (home / "state" / "config.yaml").write_text(config, encoding="utf-8")
        path = [str(HOOKS / hook), str(ROOT)] if hook else [str(ROOT)]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(_OURS)},
            "PYTHONPATH": os.pathsep.join(path),
            # Installed programs are compiled ahead; here the first round does it.
            "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"),
            "BENCH_FSYNC_LOG": str(self.fsync_log),
            "BENCH_STEP_LOG": str(self.step_log),
            "FAKE_URL": self.model.url,
            "KIMI_BASE_URL": f"{self.model.url}/v1",
            "KIMI_API_KEY": "x",
            "KODE_HOME": str(home / "state"),
        }
        # The loops open the tool's path as it is; an editor's working directory may be any.
        cwd = home if name == SIDECAR else self.workspace
        return Process(
            [sys.executable, *arguments],
            framing,
            environment=environment,
            cwd=cwd,
            stderr=home / "stderr.txt",
        )


def settle(seconds: float = 0.05) -> None:
    """Let what a program does after its last message come to an end."""
    time.sleep(seconds)


def _accepted(answer: Arrival, method: str) -> Arrival:
    if "error" in json.loads(answer.body):
        raise BenchError(f"{method} was answered {answer.body[:500]!r}")
    return answer


def _message(method: str, params: Any, **more: Any) -> bytes:
    message = {"jsonrpc": "2.0", **more, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode()
