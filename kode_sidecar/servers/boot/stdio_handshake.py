"""Answers `initialize` before anything heavy is imported, then hands the streams over.

Standard library only. The entry point calls `guard_stdio` before it imports anything else,
so that a stray print or a child process can never write into the protocol stream.
"""

import _thread
import gc
import os
import sys
from collections.abc import Callable

from kode_sidecar import __version__
from kode_sidecar.core.protocol import acp_handshake
from kode_sidecar.core.protocol.base_protocol import (
    LOST_FRAMING,
    BadMessage,
    FrameDecoder,
    LineDecoder,
    Message,
    encode_frame,
    encode_line,
    error_body,
    lost_framing,
    message_id,
    read_message,
    result_body,
)
from kode_sidecar.core.protocol.handshake import (
    PROTOCOL_VERSIONS,
    Handover,
    Object,
    initialize_result,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.unpacked import unpacked_folder

if sys.platform == "win32":
    import msvcrt

READ_BYTES = 64 * 1024

# What a pipe accepts even if nobody reads: the smallest default buffer (Windows).
_PIPE_ROOM = 4096
_MAX_UNREAD_BYTES = 64 * 1024 * 1024
_FLUSH_SECONDS = 1.0
_MOST_EARLY = 15  # messages before `initialize` that are handed over, less one


def guard_stdio() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol; return their private descriptors.

    Afterwards descriptor 0 reads nothing, 1 is stderr, and children inherit neither stream.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:  # a standard stream was closed at start: its number must not become ours
        os.set_inheritable(null, True)
        null = os.open(os.devnull, os.O_RDWR)
    if os.isatty(0):
        sys.stderr.write(
            "kode-sidecar speaks to editors on stdin and stdout and waits for an editor; "
            "try kode-sidecar --help\n"
        )
    if sys.platform == "win32":
        msvcrt.setmode(0, os.O_BINARY)
        msvcrt.setmode(1, os.O_BINARY)
    fd_in, fd_out = os.dup(0), os.dup(1)  # not inheritable (PEP 446)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    if sys.platform != "win32":
        os.set_blocking(fd_in, True)
        os.set_blocking(fd_out, True)
    return fd_in, fd_out


class Greeting:
    """How to greet a client: the decoder and framing of messages, and who answers `initialize`.

    `early` is the error code for requests before it; `leave` is the notification to exit.
    """

    def __init__(
        self,
        decoder: type[FrameDecoder | LineDecoder],
        frame: Callable[[bytes], bytes],
        initialize: Callable[[Object, str], Object],
        early: str,
        leave: str,
    ) -> None:
        self.decoder = decoder
        self.frame = frame
        self.initialize = initialize
        self.early = early
        self.leave = leave


LSP = Greeting(FrameDecoder, encode_frame, initialize_result, "NotInitialized", "exit")
ACP = Greeting(
    LineDecoder,
    encode_line,
    acp_handshake.initialize_result,
    "InvalidRequest",
    "",
)


def shake_hands(greeting: Greeting = LSP) -> Handover | int:
    """Guard the streams and answer until an `initialize` succeeds; return its handover.

    Returns the exit code instead if none can come: after `exit`, end of input or lost framing.
    """
    unpacker_id = None if unpacked_folder() is None else os.getppid()
    gc.disable()  # until everything is imported: most of what follows lives forever
    fd_in, fd_out = guard_stdio()
    answers = _Answers(fd_out, greeting.frame)
    decoder = greeting.decoder()
    early: list[bytes] = []
    while True:
        try:
            data = os.read(fd_in, READ_BYTES)
        except OSError:
            data = b""
        bodies = decoder.feed(data)
        for index, body in enumerate(bodies):
            accepted = _answer(body, answers, greeting)
            if isinstance(accepted, tuple):
                params, result, answer = accepted
                rest, said = bodies[index + 1 :], (*early, body, answer)
                ends = (decoder, rest, answers.wait_drained, unpacker_id)
                return Handover(fd_in, fd_out, params, result, said, *ends)
            early = [*early[-_MOST_EARLY:], body]
            if accepted is _Leave:
                return answers.finish()
        if decoder.failure is not None:
            answers.put(lost_framing(decoder.failure))
            _report(f"{LOST_FRAMING}: {decoder.failure}")
        if decoder.failure is not None or not data:
            return answers.finish()


def _report(line: str) -> None:
    """Write a line to stderr for the client's developer, who may not see answers without an id."""
    try:
        os.write(2, f"kode-sidecar: {line}\n".encode())
    except OSError:
        return  # nobody reads stderr


class _Leave:
    """Returned by `_answer` when the client sent `exit`."""


def _answer(
    body: bytes, answers: "_Answers", greeting: Greeting
) -> "tuple[Message, Message, bytes] | type[_Leave] | None":
    """Answer one message. For an `initialize` that succeeds, return its params, its result and
    the answer; for `exit` return `_Leave`.
    """
    try:
        message = read_message(body)
    except BadMessage as error:
        answers.put(error_body(error.request_id, error))
        return None
    method, request_id = message.get("method"), message_id(message)
    if method == greeting.leave:
        return _Leave
    if method is None or request_id is None:
        return None  # a notification, or an answer to no request of ours
    if method != "initialize":
        error = KodeError(greeting.early, f"send `initialize` before `{method}`")
        answers.put(error_body(request_id, error))
        return None
    params = message.get("params", {})
    try:
        if not isinstance(params, dict):
            raise KodeError("InvalidParams", "Expected `object` at `$`", details={"path": "$"})
        result = greeting.initialize(params, __version__)  # type: ignore[reportUnknownArgumentType]
    except KodeError as error:
        versions = {"supportedVersions": list(PROTOCOL_VERSIONS)}
        extra = versions if error.code == "UnsupportedVersion" else {}
        answers.put(error_body(request_id, error, **extra))
        return None
    answer = result_body(request_id, result)
    answers.put(answer)
    return params, result, answer  # type: ignore[reportUnknownVariableType]


class _Answers:
    """Writes answers without ever waiting for a client that does not read.

    The first few kilobytes fit into any pipe and go out directly; a thread, started only when
    needed, writes the rest.
    """

    def __init__(self, fd: int, frame: Callable[[bytes], bytes]) -> None:
        self._fd = fd
        self._frame = frame
        self._room = _PIPE_ROOM
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._writing = False
        self._lock = _thread.allocate_lock()
        self._drained = _thread.allocate_lock()  # held while the thread has work

    def put(self, body: bytes) -> None:
        frame = self._frame(body)
        self._room -= len(frame)
        with self._lock:
            if self._room >= 0:
                self._write(frame)
                return
            self._unread.append(frame)
            self._unread_bytes += len(frame)
            if not self._writing:
                self._writing = True
                self._drained.acquire()
                _thread.start_new_thread(self._write_on, ())
        if self._unread_bytes > _MAX_UNREAD_BYTES:
            os._exit(1)

    def wait_drained(self) -> None:
        with self._drained:
            pass

    def finish(self) -> int:
        """Wait briefly for the client to read; return the exit code without `initialize`."""
        self._drained.acquire(timeout=_FLUSH_SECONDS)
        return 1

    def _write_on(self) -> None:
        while True:
            with self._lock:
                if not self._unread:
                    self._writing = False
                    self._drained.release()
                    return
                data = b"".join(self._unread)
                self._unread.clear()
                self._unread_bytes = 0
            self._write(data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:  # nobody will ever read again
            os._exit(1)
