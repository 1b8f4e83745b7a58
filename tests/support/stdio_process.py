"""A real sidecar process spoken to byte by byte, for tests of the stream itself."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import Any

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame
from tests.support.program import ROOT

ECHO_APP = [sys.executable, str(ROOT / "tests" / "support" / "echo_app.py")]

HANG_SECONDS = 60.0
"""Nothing may take so long; tests assert order and outcome, never times."""


def frame(message: Any) -> bytes:
    """A message as a frame."""
    return encode_frame(json.dumps(message).encode())


def request(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request; without params the member is absent."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def ping(request_id: Any, echo: Any = None) -> dict[str, Any]:
    """The question that `kode/ping` answers with the same `echo`."""
    return request(request_id, "kode/ping", {"echo": echo})


def initialize(**params: Any) -> dict[str, Any]:
    """An `initialize` with id 0."""
    return request(
        0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}} | params
    )


class StdioProcess:
    """Spawns `command`; a thread collects what it says unless `reading` is off."""

    def __init__(
        self,
        command: list[str] = ECHO_APP,
        *,
        reading: bool = True,
        stderr: int | None = subprocess.PIPE,
        env: dict[str, str] | None = None,
        creationflags: int = 0,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | (env or {}),
            bufsize=0,
            creationflags=creationflags,
        )
        self.raw = b""
        self.stderr = b""
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._kept: list[Any] = []
        self._ids = 0
        self._threads: list[threading.Thread] = []
        if reading:
            self.start_reading()

    def __enter__(self) -> "StdioProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def start_reading(self) -> None:
        self._threads.append(threading.Thread(target=self._read_stdout, daemon=True))
        if self.process.stderr is not None:
            self._threads.append(threading.Thread(target=self._read_stderr, daemon=True))
        for thread in self._threads:
            thread.start()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        decoder = FrameDecoder()
        while data := self.process.stdout.read(65536):
            self.raw += data if len(self.raw) < 1_000_000 else b""
            for body in decoder.feed(data):
                self._messages.put(json.loads(body))
            if decoder.failure is not None:
                self._messages.put(decoder.failure)
                return
        self._messages.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while data := self.process.stderr.read(65536):
            self.stderr += data

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def send(self, *messages: Any) -> None:
        self.send_raw(b"".join(map(frame, messages)))

    def next(self) -> Any:
        """The next message, kept ones first; None at the end of the stream."""
        if self._kept:
            return self._kept.pop(0)
        return self._take()

    def _take(self) -> Any:
        message = self._messages.get(timeout=HANG_SECONDS)
        if isinstance(message, Exception):
            raise message
        return message

    def next_method(self, method: str) -> Any:
        """The next message with this method; what comes before it is dropped."""
        while (message := self.next()) is None or message.get("method") != method:
            assert message is not None, f"ended before {method}: {self.stderr!r}"
        return message

    def answer(self, request_id: Any) -> Any:
        """The response to `request_id`; other messages are kept for `next`."""
        for index, message in enumerate(self._kept):
            if _answers(message, request_id):
                return self._kept.pop(index)
        while True:
            message = self._take()
            assert message is not None, f"ended before the answer: {self.stderr!r}"
            if _answers(message, request_id):
                return message
            self._kept.append(message)

    def call(self, method: str, params: Any = None) -> Any:
        """Send a request and return its response."""
        self._ids += 1
        request_id = f"call-{self._ids}"
        self.send(request(request_id, method, params))
        return self.answer(request_id)

    def result(self, method: str, params: Any = None) -> Any:
        response = self.call(method, params)
        assert "error" not in response, response
        return response["result"]

    def ping(self, value: Any = None) -> Any:
        """What comes back from the program itself, through `kode/ping`."""
        return self.result("kode/ping", {"echo": value})["echo"]

    def start(self, **params: Any) -> Any:
        """Handshake; the result of `initialize`."""
        self.send(initialize(**params))
        result = self.answer(0)["result"]
        self.send(notification("initialized", {}))
        return result

    def rest(self) -> list[Any]:
        """Everything until the end of the stream; `stderr` is complete after it."""
        messages = []
        while (message := self.next()) is not None:
            messages.append(message)
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        return messages

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait(HANG_SECONDS)


def _answers(message: Any, request_id: Any) -> bool:
    return (
        "method" not in message
        and message.get("id") == request_id
        and type(message.get("id")) is type(request_id)
    )
