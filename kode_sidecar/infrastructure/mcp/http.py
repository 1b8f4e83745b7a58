"""The streamable HTTP transport of MCP: every message is a POST, an answer is JSON or a stream.

Redirects are not followed and the system's proxies are ignored, as everywhere. A stream of the
stateful generation that breaks is taken up again by `Last-Event-ID`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import httpx
import msgspec

from kode_sidecar import __version__
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import check_address
from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    Access,
    Json,
    ServerConfig,
    server_error,
)
from kode_sidecar.infrastructure.mcp.event_stream import Event, EventDecoder
from kode_sidecar.infrastructure.mcp.header_params import header_value
from kode_sidecar.infrastructure.mcp.hosted_transport import HostedTransport
from kode_sidecar.infrastructure.mcp.peer import MODERN, Peer

MAX_BODY_BYTES = 16_000_000
_LOGINS = 2
_TIMES = httpx.Timeout(10.0, read=300.0)
_SESSION = "mcp-session-id"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_RETRIES = 5
_WAIT_SECONDS, _MOST_WAIT_SECONDS = 1.0, 30.0


class HttpChannel:
    """A server at an address. What `access` has for it is asked twice for each refused message."""

    def __init__(self, config: ServerConfig, peer: Peer, access: Access = NO_ACCESS) -> None:
        check_address(config)
        self._config = config
        self._peer = peer
        wrap, self._authorize = access
        self._headers: dict[str, str] = dict(config.headers)
        self._session = ""
        self._answers: dict[int, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._client = httpx.AsyncClient(
            transport=HostedTransport(config.name, wrap) if wrap else None,
            trust_env=False,
            follow_redirects=False,
            timeout=_TIMES,
            headers={
                "user-agent": f"kode-sidecar/{__version__}",
                "accept-encoding": "identity",
            },
        )

    async def send(
        self, message: Json, *, version: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Post a message; the answer of a request is read beside it. Raises KodeError."""
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
        """Stop reading the answer: the stateless generation takes a closed stream for a cancel."""
        task = self._answers.pop(request_id, None)
        if task is not None and modern:
            task.cancel()
        return modern

    async def close(self) -> None:
        """Stop all reading, tell a stateful server that the session is over, and disconnect."""
        tasks = [*self._answers.values(), *([self._listening] if self._listening else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session:
            with suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._client.delete(self._config.url, headers=self._fixed(""))
        await self._client.aclose()

    async def _ask(self, number: int, message: Json, version: str, more: Mapping[str, str]) -> None:
        last_id, wait = "", _WAIT_SECONDS
        try:
            async with self._post(message, version, more) as response:
                await self._refused(response)
                if message.get("method") == "initialize":
                    self._session = response.headers.get(_SESSION, "")
                if _is_stream(response):
                    last_id, wait = await self._events(response)
                else:
                    self._take(await self._body(response))
            if version != MODERN:
                await self._resume(number, last_id, wait, version)
        except KodeError as error:
            self._peer.fail(number, error)
        except httpx.HTTPError as error:
            self._peer.fail(number, self._broken(error))
        else:
            # Whoever has an answer by now is not touched by this.
            self._peer.fail(number, self._without_answer())

    @asynccontextmanager
    async def _post(
        self, message: Json, version: str, more: Mapping[str, str]
    ) -> AsyncGenerator[httpx.Response, None]:
        """The answer to one POST, sent again with what `authorize` brings: a kept token, then a new
        one. Raises httpx.HTTPError."""
        headers = {
            **self._fixed(version),
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if version == MODERN:
            headers.update({**_routing(message), **more})
        body = msgspec.json.encode(message)
        response = await self._sent(headers, body)
        try:
            for _ in range(_LOGINS):
                if not await self._authorized(response):
                    break
                await response.aclose()
                response = await self._sent(headers, body)
            yield response
        finally:
            await response.aclose()

    def _fixed(self, version: str) -> dict[str, str]:
        headers = dict(self._headers)
        if version:
            headers["mcp-protocol-version"] = version
        if self._session:
            headers[_SESSION] = self._session
        return headers

    async def _refused(self, response: httpx.Response) -> None:
        """Raise KodeError for anything but success; a JSON-RPC error in the body is an answer."""
        if response.status_code < 300:
            return
        status = response.status_code
        if 300 <= status < 400:
            text = f"answered with a redirect (HTTP {status}), which is not followed: check `url`."
            raise server_error(self._config.name, text, "redirect", status=status)
        if status in (401, 403):
            name = self._config.name
            text = f"wants a key (HTTP {status}): log in by `kode-sidecar mcp login {name}`, or set"
            text += " its `headers`."
            raise server_error(self._config.name, text, "unauthorized", status=status)
        data = await self._body(response)
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message = msgspec.json.decode(data, type=dict[str, Any])
            if "error" in message and message.get("id") is not None:
                self._peer.receive(message)
                return
        if status == 404 and self._session:
            text = "has forgotten this session: call again."
            raise server_error(self._config.name, text, "session_lost", retryable=True)
        text = f"answered HTTP {status}."
        raise server_error(
            self._config.name, text, "status", status=status, retryable=status >= 500
        )

    async def _events(self, response: httpx.Response) -> tuple[str, float]:
        """Hand on what a stream brings; the last event's id and how long to wait after its end.

        A connection that breaks is an end, too. Raises KodeError `ToolFailed` for an endless event.
        """
        decoder = EventDecoder()
        with suppress(httpx.HTTPError):
            async for chunk in response.aiter_bytes():
                for event in self._fed(decoder, chunk):
                    if event.data:
                        self._take(event.data)
        return decoder.last_id, (decoder.retry_ms or 1000 * _WAIT_SECONDS) / 1000

    def _fed(self, decoder: EventDecoder, chunk: bytes) -> list[Event]:
        try:
            return decoder.feed(chunk)
        except KodeError as error:
            raise self._too_large() from error

    async def _resume(self, number: int, last_id: str, wait: float, version: str) -> None:
        """Take up a stream again that ended before the answer to `number`."""
        for _ in range(_RETRIES):
            if not last_id or not self._peer.waits_for(number):
                return
            await asyncio.sleep(min(wait, _MOST_WAIT_SECONDS))
            with suppress(httpx.HTTPError):
                found = await self._heard(last_id, version)
                if found is None:
                    return
                last_id, wait = found

    async def _listen(self, version: str) -> None:
        """Hear what a stateful server says unasked, where it offers such a stream."""
        last_id, wait = "", _WAIT_SECONDS
        for _ in range(_RETRIES):
            with suppress(httpx.HTTPError, KodeError):
                found = await self._heard(last_id, version)
                if found is None:
                    return
                last_id, wait = found
            await asyncio.sleep(min(wait, _MOST_WAIT_SECONDS))

    async def _heard(self, last_id: str, version: str) -> tuple[str, float] | None:
        """Hear a stream from `last_id` on to its end, as `_events`; None where there is none."""
        headers = {**self._fixed(version), "accept": "text/event-stream"}
        if last_id:
            headers["last-event-id"] = last_id
        async with self._client.stream("GET", self._config.url, headers=headers) as found:
            if found.status_code != 200 or not _is_stream(found):
                return None
            newer, wait = await self._events(found)
        return newer or last_id, wait

    def _take(self, data: bytes) -> None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._peer.receive(msgspec.json.decode(data, type=dict[str, Any]))

    async def _sent(self, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        """Send bytes, with what was learned for this server since."""
        request = self._client.build_request(
            "POST", self._config.url, content=body, headers={**headers, **self._headers}
        )
        return await self._client.send(request, stream=True)

    async def _authorized(self, response: httpx.Response) -> bool:
        """Whether there are new headers to try a refused message with."""
        if response.status_code not in (401, 403) or self._authorize is None:
            return False
        headers = await self._authorize(response.headers)
        if headers is None:
            return False
        self._headers.update(headers)
        return True

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise self._too_large()
        return bytes(body)

    def _broken(self, error: httpx.HTTPError) -> KodeError:
        reason = str(error) or type(error).__name__
        text = f"cannot be reached: {reason}. Check its `url` and the network."
        return server_error(self._config.name, text, "http", retryable=True)

    def _too_large(self) -> KodeError:
        text = f"sent an answer of more than {MAX_BODY_BYTES:,} bytes, which is not read."
        return server_error(self._config.name, text, "too_large")

    def _without_answer(self) -> KodeError:
        text = "ended its answer before it was whole."
        return server_error(self._config.name, text, "incomplete", retryable=True)


def _routing(message: Json) -> dict[str, str]:
    """The headers by which a proxy routes a message without reading it (2026-07-28)."""
    method = str(message.get("method") or "")
    headers = {"mcp-method": method}
    params = cast(Json, message.get("params") or {})
    if method in _NAMED and isinstance(name := params.get(_NAMED[method]), str):
        headers["mcp-name"] = header_value(name)
    return headers


def _is_stream(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")
