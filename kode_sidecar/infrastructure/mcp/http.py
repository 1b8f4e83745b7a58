"""The streamable HTTP transport of MCP: every message is a POST, an answer is JSON or a stream.

Redirects are not followed and the system's proxies are ignored, as everywhere. A broken stream of
the stateful generation is resumed by `Last-Event-ID`.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import cast
from urllib.parse import urljoin, urlsplit

import msgspec

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.http.request import HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.mcp.config import check_address
from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    Access,
    Json,
    ServerConfig,
    server_error,
)
from kode_sidecar.infrastructure.mcp.event_stream import McpEvent, McpEventDecoder
from kode_sidecar.infrastructure.mcp.header_params import header_value
from kode_sidecar.infrastructure.mcp.messages import error_words, request_id
from kode_sidecar.infrastructure.mcp.peer import MODERN, Peer
from kode_sidecar.infrastructure.providers.endpoint import HostResponse

MAX_BODY_BYTES = 16_000_000
_LOGINS = 2
_TIMES = HttpTimeouts(first_byte=300.0, idle=300.0, pinged=math.inf)
_SESSION = "mcp-session-id"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_RETRIES = 5
_REDIRECTS = (301, 302, 307, 308)
_LOST_STATUSES = (400, 404, 410)
_SESSION_CODE = -32001
_HEAD_BYTES = 2_000
_WAIT_SECONDS, _MOST_WAIT_SECONDS = 1.0, 30.0


class ServerHost:
    """A server as an `endpoint.Host`; connects at its first request, so a replay never does."""

    url_name = "`url`"
    proxy = None
    timeouts = _TIMES

    def __init__(self, config: ServerConfig) -> None:
        check_address(config)
        self.base_url = config.url
        self._name = urlsplit(config.url).netloc
        self._http: HttpClient | None = None
        self._opened: list[HttpClient] = []

    def host(self) -> str:
        """Return its name for error texts."""
        return self._name

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HostResponse, None]:
        """Send a request to `url` itself; its path is for recordings only. Raises KodeError."""
        if self._http is None:
            self._http = HttpClient(self)
            self._opened.append(self._http)
        async with self._http.stream(request._replace(path="")) as response:
            yield response

    async def aclose(self) -> None:
        """Close all connections."""
        for http in self._opened:
            await http.aclose()

    def move(self, url: str) -> None:
        """Ask another address of the same host from now on."""
        self.base_url, self._http = url, None


class HttpChannel:
    """Carries messages to a server at an address; `access` wraps its host and answers refusals."""

    def __init__(self, config: ServerConfig, peer: Peer, access: Access = NO_ACCESS) -> None:
        self._config = config
        self._peer = peer
        wrap, self._authorize = access
        self._headers: dict[str, str] = dict(config.headers)
        self._session = ""
        self._answers: dict[int, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._address = ServerHost(config)
        self._host = wrap(self._address) if wrap else self._address

    async def send(
        self, message: Json, *, version: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Post a message; a task of its own reads a request's answer. Raises KodeError."""
        number = message.get("id")
        if "method" in message and isinstance(number, int):
            task = asyncio.create_task(self._ask(number, message, version, headers or {}))
            self._answers[number] = task
            task.add_done_callback(lambda _: self._answers.pop(number, None))
            return
        async with self._post(message, version, {}) as response:
            await self._refused(response)
        if message.get("method") == "notifications/initialized":
            self._listening = asyncio.create_task(self._listen(version))

    async def cancel(self, request_id: int, *, modern: bool) -> bool:
        """Close the answer's stream if `modern`: only there a closed stream means cancel."""
        task = self._answers.pop(request_id, None)
        if task is not None and modern:
            task.cancel()
        return modern

    async def close(self) -> None:
        """Stop all reading, end the session of a stateful server, and disconnect."""
        tasks = [*self._answers.values(), *([self._listening] if self._listening else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session:
            with suppress(KodeError, TimeoutError):
                async with asyncio.timeout(2.0), self._stream("DELETE", None, self._fixed("")):
                    pass
        await self._host.aclose()

    async def _ask(self, number: int, message: Json, version: str, more: Mapping[str, str]) -> None:
        last_id, wait = "", _WAIT_SECONDS
        try:
            async with self._post(message, version, more) as response:
                if await self._refused(response, number):
                    return
                if message.get("method") == "initialize":
                    self._session = response.headers.get(_SESSION, "")
                if _is_stream(response):
                    last_id, wait = await self._events(response, number)
                else:
                    self._take(await self._body(response), number, response.status)
            if version != MODERN:
                await self._resume(number, last_id, wait, version)
        except KodeError as error:
            self._peer.fail(number, self._broken(error) if error.code == "Network" else error)
        else:
            # Does nothing if the answer has arrived.
            self._peer.fail(number, self._without_answer())

    @asynccontextmanager
    async def _post(
        self, message: Json, version: str, more: Mapping[str, str]
    ) -> AsyncGenerator[HostResponse, None]:
        """Post a message; after a refusal again with the headers of `authorize`, at most twice
        (a stored token, then a new one). Raises KodeError."""
        headers = {
            **self._fixed(version),
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if version == MODERN:
            headers.update({**_routing(message), **more})
        body = msgspec.json.encode(message)
        for _ in range(_LOGINS):
            async with self._stream("POST", body, {**headers, **self._headers}) as response:
                if not (self._moved(response) or await self._authorized(response)):
                    yield response
                    return
        async with self._stream("POST", body, {**headers, **self._headers}) as response:
            yield response

    def _moved(self, response: HostResponse) -> bool:
        """Return whether a redirect only adds or drops a slash at the end of the path, and follow.

        All else is asked as `url` says: a redirect never chooses the host, or a way without TLS.
        """
        old = urlsplit(self._config.url)
        new = urlsplit(urljoin(self._config.url, response.headers.get("location", "")))
        same = new.hostname == old.hostname and new.port in (old.port, None)
        if response.status not in _REDIRECTS or not same or self._address.base_url != old.geturl():
            return False
        if new.path == old.path or new.path.rstrip("/") != old.path.rstrip("/"):
            return False
        self._address.move(old._replace(path=new.path).geturl())
        return True

    def _fixed(self, version: str) -> dict[str, str]:
        headers = dict(self._headers)
        if version:
            headers["mcp-protocol-version"] = version
        if self._session:
            headers[_SESSION] = self._session
        return headers

    async def _refused(self, response: HostResponse, number: int | None = None) -> bool:
        """Return whether a failed status brought the answer to `number`, a JSON-RPC error.

        Raises KodeError for any other failed status.
        """
        status = response.status
        if status < 300:
            return False
        if 300 <= status < 400:
            text = f"answered with a redirect (HTTP {status}), which is not followed: check `url`."
            raise server_error(self._config.name, text, "redirect", status=status)
        if status in (401, 403):
            name = self._config.name
            text = f"wants a key (HTTP {status}): log in by `kode-sidecar mcp login {name}`, or set"
            text += " its `headers`."
            raise server_error(self._config.name, text, "unauthorized", status=status)
        data = await self._body(response)
        if number is not None and self._take(data, number, status):
            return True
        if self._session and (status in _LOST_STATUSES or _names_session(data[:_HEAD_BYTES])):
            raise self._lost()
        text = f"answered HTTP {status}."
        raise server_error(
            self._config.name, text, "status", status=status, retryable=status >= 500
        )

    async def _events(self, response: HostResponse, number: int | None = None) -> tuple[str, float]:
        """Pass on a stream's messages; return the last event's id and the seconds to wait.

        A broken connection counts as the end. Raises KodeError `ToolFailed` for too large an event.
        """
        decoder = McpEventDecoder()
        with _until_it_breaks():
            while chunk := await response.read():
                for event in self._fed(decoder, chunk):
                    if event.data:
                        self._take(event.data, number, response.status)
        return decoder.last_id, (decoder.retry_ms or 1000 * _WAIT_SECONDS) / 1000

    def _fed(self, decoder: McpEventDecoder, chunk: bytes) -> list[McpEvent]:
        try:
            return decoder.feed(chunk)
        except KodeError as error:
            raise self._too_large() from error

    async def _resume(self, number: int, last_id: str, wait: float, version: str) -> None:
        """Resume a stream that ended before the answer to `number`."""
        for _ in range(_RETRIES):
            if not last_id or not self._peer.waits_for(number):
                return
            await asyncio.sleep(min(wait, _MOST_WAIT_SECONDS))
            with _until_it_breaks():
                found = await self._read_stream(last_id, version)
                if found is None:
                    return
                last_id, wait = found

    async def _listen(self, version: str) -> None:
        """Read the messages that a stateful server sends unasked, if it offers such a stream."""
        last_id, wait = "", _WAIT_SECONDS
        for _ in range(_RETRIES):
            with suppress(KodeError):
                found = await self._read_stream(last_id, version)
                if found is None:
                    return
                last_id, wait = found
            await asyncio.sleep(min(wait, _MOST_WAIT_SECONDS))

    async def _read_stream(self, last_id: str, version: str) -> tuple[str, float] | None:
        """Read a stream from `last_id` on and return as `_events`; None without a stream."""
        headers = {**self._fixed(version), "accept": "text/event-stream"}
        if last_id:
            headers["last-event-id"] = last_id
        async with self._stream("GET", None, headers) as found:
            if found.status != 200 or not _is_stream(found):
                return None
            newer, wait = await self._events(found)
        return newer or last_id, wait

    def _take(self, data: bytes, number: int | None, status: int) -> bool:
        """Pass on the messages of a body or an event; return whether `number` is answered now."""
        for message in self._peer.read(data, number):
            if number is not None and self._session and _lost_session(message, number, status):
                self._peer.fail(number, self._lost())
            elif "error" in message or message.get("id") is None or status >= 300:
                self._peer.receive(message, number if "method" not in message else None)
            else:
                self._peer.receive(message)
        return number is not None and not self._peer.waits_for(number)

    def _lost(self) -> KodeError:
        """Forget the session, which the server has forgotten."""
        self._session = ""
        text = "has forgotten this session: call again."
        return server_error(self._config.name, text, "session_lost", retryable=True)

    def _stream(
        self, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[HostResponse]:
        asker = f"mcp {self._config.name} {method}"
        path = urlsplit(self._config.url).path
        return self._host.stream(HttpRequest(method, path, headers, body, asker))

    async def _authorized(self, response: HostResponse) -> bool:
        """Return whether `authorize` has new headers for a refused message, and use them."""
        if response.status not in (401, 403) or self._authorize is None:
            return False
        headers = await self._authorize(response.headers)
        if headers is None:
            return False
        self._headers.update(headers)
        return True

    async def _body(self, response: HostResponse) -> bytes:
        body = await response.read_all(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise self._too_large()
        return body

    def _broken(self, error: KodeError) -> KodeError:
        text = f"cannot be reached: {error.message}"
        return server_error(self._config.name, text, "http", retryable=True)

    def _too_large(self) -> KodeError:
        text = f"sent an answer of more than {MAX_BODY_BYTES:,} bytes, which is not read."
        return server_error(self._config.name, text, "too_large")

    def _without_answer(self) -> KodeError:
        text = "ended its answer before it was whole."
        return server_error(self._config.name, text, "incomplete", retryable=True)


@contextmanager
def _until_it_breaks() -> Generator[None]:
    """Treat a broken connection as the end of its stream."""
    try:
        yield
    except KodeError as error:
        if error.code != "Network":
            raise


def _lost_session(message: Json, number: int, status: int) -> bool:
    """Return whether an answer says that the session is unknown, in any of the ways in use."""
    if "error" not in message or "method" in message:
        return False
    if status in (404, 410) or request_id(message.get("id")) != number:
        return True
    code, words = error_words(message)
    timed_out = "time" in words.casefold()
    return (code == _SESSION_CODE and not timed_out) or _names_session(words.encode())


def _names_session(text: bytes) -> bool:
    found = text.lower()
    return b"session" in found or "会话".encode() in found


def _routing(message: Json) -> dict[str, str]:
    """Return the headers by which proxies route a message without reading it (2026-07-28)."""
    method = str(message.get("method") or "")
    headers = {"mcp-method": method}
    params = cast(Json, message.get("params") or {})
    if method in _NAMED and isinstance(name := params.get(_NAMED[method]), str):
        headers["mcp-name"] = header_value(name)
    return headers


def _is_stream(response: HostResponse) -> bool:
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")
