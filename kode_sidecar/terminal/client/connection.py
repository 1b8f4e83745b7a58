"""Speaks JSON-RPC 2.0 over LSP frames with a sidecar process, as an editor does."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, cast

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame
from kode_sidecar.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, REQUEST_CANCELLED
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.sidecar_process import SidecarProcess

Handler = Callable[[Any], Awaitable[Any]]
Subscriber = Callable[[str, Any], None]


class RpcError(Exception):
    """An error answer (JSON-RPC 2.0 section 5.1). `data` is an `ErrorInfo` for `kode/*`."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class ConnectionLost(Exception):
    """The process ended, or its stream is no longer valid LSP. `stderr_tail` often says why."""

    def __init__(self, message: str, exit_code: int | None, stderr_tail: str) -> None:
        tail = f"\n{stderr_tail.strip()}" if stderr_tail.strip() else ""
        super().__init__(f"{message} (exit code {exit_code}){tail}")
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


@dataclass(frozen=True)
class Frame:
    """One logged message, as the client saw it; `raw` for bytes sent without a frame."""

    direction: Literal["in", "out", "raw"]
    body: bytes

    def message(self) -> Any:
        """Return the decoded body. Raises ValueError for invalid JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Call:
    """A request in flight; await `answer`."""

    id: int
    method: str
    answer: asyncio.Future[Any]
    on_result: Callable[[Any], None] | None = None


class Client:
    """A connection to one sidecar.

    Notifications reach subscribers at once and in order; requests of the server are answered
    by the handler of their method, each in a task of its own, and with -32601 without one.
    `frames` logs every frame in both directions, in order. `lost` says why the connection ended.
    """

    def __init__(self, process: SidecarProcess, *, keep_frames: int | None = None) -> None:
        self.process = process
        self.frames: deque[Frame] = deque(maxlen=keep_frames)
        self.initialize_result: dict[str, Any] = {}
        self._last_id = 0
        self._calls: dict[int, Call] = {}
        self._handlers: dict[str, Handler] = {}
        self._subscribers: list[Subscriber] = []
        self._answering: dict[int | str, asyncio.Task[None]] = {}
        self.lost: ConnectionLost | None = None
        self._on_lost: list[Callable[[], None]] = []
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        keep_frames: int | None = None,
        apart: bool = False,
    ) -> "Client":
        """Start the process (default: this Python's `kode_sidecar serve`) and connect."""
        process = await SidecarProcess.spawn(command, env=env, cwd=cwd, apart=apart)
        return cls(process, keep_frames=keep_frames)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def initialize(self, handshake: Handshake) -> dict[str, Any]:
        """Send `initialize`, then `initialized`. Stores the result in `initialize_result`."""
        result = await self.request("initialize", handshake.params())
        self.initialize_result = cast(dict[str, Any], result)
        self.notify("initialized", {})
        return self.initialize_result

    @property
    def kode(self) -> dict[str, Any]:
        """The server's `capabilities.experimental.kode`."""
        return self.initialize_result["capabilities"]["experimental"]["kode"]

    def start(
        self, method: str, params: Any = None, on_result: Callable[[Any], None] | None = None
    ) -> Call:
        """Send a request now, without waiting. Raises ConnectionLost.

        `on_result` is called with the result before anything that came after it is handled.
        """
        self._last_id += 1
        call = Call(self._last_id, method, asyncio.get_running_loop().create_future(), on_result)
        # When the connection is lost, maybe nobody waits, so mark the exception as read.
        call.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._send({"id": call.id, "method": method}, params)
        self._calls[call.id] = call
        return call

    async def request(
        self,
        method: str,
        params: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the server is notified when the wait ends)
        on_result: Callable[[Any], None] | None = None,
    ) -> Any:
        """Send a request and wait for its result; `on_result` is as in `start`.

        Raises RpcError, ConnectionLost, or TimeoutError after `timeout` seconds. If the wait
        ends early, the server gets `$/cancelRequest`.
        """
        call = self.start(method, params, on_result)
        try:
            async with asyncio.timeout(timeout):
                return await call.answer
        except TimeoutError:
            self._cancel(call)
            raise TimeoutError(f"no answer to {method} within {timeout} s") from None
        except asyncio.CancelledError:
            self._cancel(call)
            raise

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification. Raises ConnectionLost."""
        self._send({"method": method}, params)

    def send_raw(self, data: bytes) -> None:
        """Send bytes unchanged, without a frame. Raises ConnectionLost."""
        self._write(Frame("raw", data), data)

    def handle(self, method: str, handler: Handler) -> None:
        """Answer requests for `method` with what `handler(params)` returns.

        An RpcError it raises is the answer; any other exception becomes -32603.
        """
        self._handlers[method] = handler

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(method, params)` for every notification; returns the unsubscriber."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback()` once `lost` is set."""
        self._on_lost.append(callback)

    async def close(self, seconds: float = 10.0) -> int | None:
        """Send `shutdown` and `exit`, wait up to `seconds` each, then kill; return exit code."""
        self.process.resume_reading()
        if self.lost is None and self.process.exit_code is None:
            with suppress(RpcError, ConnectionLost, TimeoutError):
                await self.request("shutdown", timeout=seconds)
            with suppress(ConnectionLost):
                self.notify("exit")
        code = await self.process.end(seconds)
        await asyncio.wait([self._reader], timeout=seconds)
        tasks = [self._reader, *self._answering.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._mark_lost("the connection was closed")
        return code

    def _cancel(self, call: Call) -> None:
        self._calls.pop(call.id, None)
        with suppress(ConnectionLost):
            self.notify("$/cancelRequest", {"id": call.id})

    def _send(self, message: dict[str, Any], params: Any = None) -> None:
        whole = {"jsonrpc": "2.0", **message}
        if params is not None:
            whole["params"] = params
        body = _encode(whole)
        self._write(Frame("out", body), encode_frame(body))

    def _write(self, frame: Frame, data: bytes) -> None:
        if self.lost is not None:
            raise self.lost
        self.frames.append(frame)
        self.process.write(data)

    async def _read(self) -> None:
        decoder = FrameDecoder()
        try:
            while data := await self.process.read():
                for body in decoder.feed(data):
                    self.frames.append(Frame("in", body))
                    self._receive(json.loads(body))
                if decoder.failure is not None:
                    raise decoder.failure
        except Exception as error:
            self._mark_lost(f"the sidecar's output could not be handled: {error!r}", error)
            return
        await self.process.wait(1.0)
        self._mark_lost("the sidecar closed its output")

    def _receive(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            self._answered(message)
        elif "id" in message:
            request_id = message["id"]
            task = asyncio.create_task(self._answer(request_id, method, message.get("params")))
            self._answering[request_id] = task
            task.add_done_callback(lambda _: self._answering.pop(request_id, None))
        else:
            if method == "$/cancelRequest":
                self._take_back(message["params"]["id"])
            for subscriber in tuple(self._subscribers):
                subscriber(method, message.get("params"))

    def _take_back(self, request_id: int | str) -> None:
        """Cancel the answer to a request of the server (LSP `$/cancelRequest`)."""
        task = self._answering.pop(request_id, None)
        if task is not None and not task.done():
            task.cancel()
            error = {"code": REQUEST_CANCELLED, "message": "taken back"}
            with suppress(ConnectionLost):
                self._send({"id": request_id, "error": error})

    def _answered(self, message: dict[str, Any]) -> None:
        # An answer with id null (a frame the server could not read) belongs to no call.
        call = self._calls.pop(message.get("id") or 0, None)
        if call is None or call.answer.done():
            return
        error = message.get("error")
        if error is None:
            if call.on_result is not None:
                call.on_result(message.get("result"))
            call.answer.set_result(message.get("result"))
        else:
            failed = RpcError(error["code"], error["message"], error.get("data"))
            call.answer.set_exception(failed)

    async def _answer(self, request_id: int | str, method: str, params: Any) -> None:
        handler = self._handlers.get(method)
        reply: dict[str, Any]
        try:
            if handler is None:
                raise RpcError(METHOD_NOT_FOUND, f"this client does not answer {method}")
            reply = {"result": await handler(params)}
        except RpcError as error:
            reply = {"error": {"code": error.code, "message": error.message, "data": error.data}}
        except Exception as error:
            reply = {"error": {"code": INTERNAL_ERROR, "message": f"{method} failed: {error!r}"}}
        with suppress(ConnectionLost):
            self._send({"id": request_id, **reply})

    def _mark_lost(self, why: str, cause: Exception | None = None) -> None:
        if self.lost is None:
            self.lost = ConnectionLost(why, self.process.exit_code, self.process.stderr_tail)
            self.lost.__cause__ = cause
            for callback in self._on_lost:
                callback()
        calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            if not call.answer.done():
                call.answer.set_exception(self.lost)


def _encode(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        # Lone surrogates, which a paste can hold, are valid JSON only as escapes.
        return json.dumps(message, separators=(",", ":")).encode("ascii")
