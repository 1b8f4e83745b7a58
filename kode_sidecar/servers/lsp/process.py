"""Builds the process around a handover from `boot.stdio_handshake`, and runs it to its end."""

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from kode_sidecar.core.protocol.handshake import Handover
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.windows_job import tie_children
from kode_sidecar.servers.lsp import stderr_sink
from kode_sidecar.servers.lsp.codec import LSP, RpcDialect
from kode_sidecar.servers.lsp.connection import Connection
from kode_sidecar.servers.lsp.frame_listener import FrameListener, RecordedOutbox
from kode_sidecar.servers.lsp.loader import LoadStep, import_language_server, load
from kode_sidecar.servers.lsp.outbox import Outbox
from kode_sidecar.servers.lsp.reader import Reader
from kode_sidecar.servers.lsp.requests import IncomingRequests, Log
from kode_sidecar.servers.lsp.standard_lane import (
    STANDARD_NOTIFICATIONS,
    Features,
    StandardLane,
)
from kode_sidecar.servers.lsp.watchdog import Watchdog

_GRACE_SECONDS = 0.5
_STDERR_SECONDS = 0.2


async def _nothing_to_close() -> None:
    """Do nothing, for an app without anything to close."""


@dataclass(frozen=True)
class Application:
    """What an app gives to the process after it has registered its handlers.

    `load` is loaded at once, off the loop. `close()` ends what runs (turns, journals) and has about
    a second; `kill_children()` runs after it on another thread, even if the loop is blocked, and
    must not wait.
    """

    features: Features = field(default_factory=Features)
    load: Sequence[LoadStep] = ()
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    kill_children: Callable[[], None] = lambda: None


Build = Callable[[Connection, Handover], Application]


def log_to_stderr(line: str, error: BaseException | None) -> None:
    """Write a line and a traceback to stderr, for developers; never to the wire."""
    details = "".join(traceback.format_exception(error)) if error else ""
    sys.stderr.write(f"kode-sidecar: {line}\n{details}")


def run(
    handover: Handover,
    build: Build,
    *,
    log: Log = log_to_stderr,
    listener: FrameListener | None = None,
    orphaned: Callable[[], None] = lambda: None,
    dialect: RpcDialect = LSP,
) -> NoReturn:
    """Serve the client until it leaves; ends the process itself.

    `build(connection, handover)` registers handlers and runs on the loop, before any message
    is handled. From then on `listener` sees every message. `orphaned()` is called last if the
    process that unpacked this one is gone. The exit code is 0 after `shutdown`, else 1; in a
    dialect without `shutdown` it is 1 only after a failure.
    """
    stderr = stderr_sink.install()

    def guarded_log(line: str, error: BaseException | None) -> None:
        try:
            log(line, error)
        except Exception:
            log_to_stderr(f"the log failed while it wrote: {line}", error)

    process = _Process(handover, build, guarded_log, stderr, listener, orphaned, dialect)
    with asyncio.Runner(loop_factory=None if listener is None else listener.new_loop) as runner:
        runner.run(process.serve())
    os._exit(1)


class _Process:
    """Holds the parts of the process, and ends them together."""

    def __init__(
        self,
        handover: Handover,
        build: Build,
        log: Log,
        stderr: stderr_sink.StderrSink,
        listener: FrameListener | None,
        orphaned: Callable[[], None],
        dialect: RpcDialect,
    ) -> None:
        self._dialect = dialect
        self._handover = handover
        self._build = build
        self._log = log
        self._stderr = stderr
        self._failed = False
        self._closing: asyncio.Task[None] | None = None
        self._app = Application()
        self._watchdog = Watchdog(
            begin_close=self._begin_close,
            flush=self._flush,
            exit_code=self._exit_code,
            orphaned=orphaned,
        )
        self._listener = listener
        outbox = Outbox if listener is None else partial(RecordedOutbox, listener)
        self._outbox = outbox(
            handover.fd_out,
            on_fatal=self._fail,
            wait_first=handover.wait_drained,
            dialect=dialect,
        )
        self._incoming = IncomingRequests(self._outbox.put, log)
        self._lane = StandardLane(self._incoming.refuse, self._start_pygls)
        self._connection = Connection(
            self._outbox,
            self._incoming,
            self._lane,
            log=log,
            on_exit=lambda: self._watchdog.end("exit"),
            dialect=dialect,
        )

    async def serve(self) -> None:
        """Start everything and wait; the watchdog ends the process."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_loop_error)
        tie_children()
        self._watchdog.catch_signals()
        self._watchdog.start(_process_id(self._handover.params), self._handover.unpacker_id)
        self._outbox.start()
        try:
            self._app = self._build(self._connection, self._handover)
        except Exception as error:
            known = isinstance(error, KodeError)
            self._log(f"cannot start: {error}", None if known else error)
            self._fail("the app could not be built")
        else:
            self._watchdog.kill_with_us(self._app.kill_children)
            self._serve_notifications()
            self._lane.requests |= self._app.features.requests
            self._start_reader()
            self._loading = self._loop.create_task(load(self._app.load, self._not_loaded))
            if self._app.features.requests:
                self._lane.load()
        await asyncio.Event().wait()

    def _start_reader(self) -> None:
        def arrived() -> None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._connection.pump)

        reader = Reader(
            self._handover.fd_in,
            self._handover.decoder,
            self._handover.bodies,
            on_arrival=arrived,
            on_end=lambda: self._watchdog.end("end of input"),
        )
        pump = self._connection.pump
        pop = reader.pop if self._listener is None else self._listener.incoming(reader.pop, pump)
        self._connection.read_from(pop)
        reader.start()

    def _serve_notifications(self) -> None:
        for method, (params_type, call) in STANDARD_NOTIFICATIONS.items():
            if self._dialect.has_shutdown:
                handler = partial(call, self._app.features)
                self._connection.on_notification(method, params_type, handler)

    def _not_loaded(self, name: str, error: Exception) -> None:
        self._log(f"{name} could not be loaded; is the installation complete?", error)
        self._fail(f"{name} could not be loaded")

    def _start_pygls(self) -> None:
        """Import pygls, for the first request that it serves."""
        self._loading = self._loop.create_task(self._load_pygls(self._loading))

    async def _load_pygls(self, at_start: asyncio.Task[None]) -> None:
        def build() -> Any:
            build_server = import_language_server()
            return build_server(
                self._handover.params,
                self._app.features,
                requests=self._incoming,
                put=self._outbox.put,
                log=self._log,
            )

        def failed(name: str, error: Exception) -> None:
            self._log(f"{name} could not be loaded; is the installation complete?", error)
            self._lane.refuse_all(
                KodeError("InternalError", f"{name} is missing: install it again")
            )

        await at_start  # two threads at once would slow down the first
        step = LoadStep(
            "pygls", build, lambda server: self._lane.attach(server.handle, server.cancel)
        )
        await load((step,), failed)

    def _fail(self, reason: str) -> None:
        """End the process with code 1. Call it from any thread."""
        self._failed = True
        self._watchdog.end(reason)

    def _exit_code(self) -> int:
        ended_well = self._connection.shutdown_seen or not self._dialect.has_shutdown
        return 0 if ended_well and not self._failed else 1

    def _begin_close(self, reason: str, done: threading.Event) -> None:
        def begin() -> None:
            self._closing = self._loop.create_task(self._close(reason, done))

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:  # the loop is closed
            done.set()

    async def _close(self, reason: str, done: threading.Event) -> None:
        try:
            # Messages read before the end of input are still handled and answered.
            await self._connection.close(_GRACE_SECONDS if reason == "end of input" else 0)
            await self._app.close()
        except Exception as error:
            self._log("closing failed", error)
        finally:
            done.set()

    def _flush(self, seconds: float) -> None:
        self._outbox.flush(seconds)
        self._stderr.finish(_STDERR_SECONDS)

    def _on_loop_error(self, _loop: object, context: dict[str, object]) -> None:
        error = context.get("exception")
        self._log(str(context.get("message")), error if isinstance(error, Exception) else None)


def _process_id(params: dict[str, object]) -> int | None:
    """Return the editor's process id (LSP `InitializeParams.processId`)."""
    value = params.get("processId")
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
        return value
    return None
