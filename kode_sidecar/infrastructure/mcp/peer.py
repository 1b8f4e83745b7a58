"""JSON-RPC with one MCP server over any channel: requests, answers, progress, cancel.

It speaks both spec generations. 2025-11-25 begins with `initialize` and is stateful;
2026-07-28 has no handshake: every request carries `_meta` with version and capabilities, and a
server that needs the user answers `input_required` instead of asking.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

import msgspec

from kode_sidecar import __version__
from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import (
    Json,
    McpHost,
    Progress,
    as_object,
    cleaned,
    quoted,
    reason,
    server_error,
)
from kode_sidecar.infrastructure.mcp.elicitation import address_to_open
from kode_sidecar.infrastructure.mcp.messages import (
    Unreadable,
    error_words,
    read_messages,
    request_id,
)
from kode_sidecar.infrastructure.mcp.open_requests import OpenRequest, OpenRequests

MODERN = "2026-07-28"
STATEFUL = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
CLIENT = {"name": "kode-sidecar", "title": "kode-sidecar", "version": __version__}

_META = "io.modelcontextprotocol/"
_METHOD_NOT_FOUND, _INVALID_PARAMS, _UNSUPPORTED_VERSION = -32601, -32602, -32022
_ADDRESS_NEEDED = -32042
_PROBE_SECONDS = 5.0
_INPUT_ROUNDS = 10
_LISTEN_TIMES = 6
_MOST_UNANSWERED = 100
_MOST_ERROR_DATA = 10_000
_LISTS = ("tools", "resources", "prompts")
_LIST_CHANGED = tuple(f"notifications/{each}/list_changed" for each in _LISTS)


class Channel(Protocol):
    """A transport to a server. It passes messages to `Peer.receive`, its end to `Peer.closed`."""

    async def send(
        self, message: Json, *, version: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send one message. `version` is the agreed one, empty until then. Raises KodeError.

        Only an HTTP channel uses `headers`.
        """
        ...

    async def cancel(self, request_id: int, *, modern: bool) -> bool:
        """Stop waiting for an answer; return True if that alone informs the server."""
        ...

    async def close(self) -> None:
        """Disconnect, and end any program that was started for the server."""
        ...


class Peer:
    """One conversation with a server. `server` is its name, for error texts.

    `lenient`: some of its messages were no strict JSON. `probed`: it was asked in vain whether it
    speaks the stateless generation, a question that some servers do not survive.
    """

    def __init__(
        self, server: str, host: McpHost, list_changed: Callable[[], None] = lambda: None
    ) -> None:
        self.server = server
        self.version = ""
        self.capabilities: Json = {}
        self.server_info: Json = {}
        self.instructions = ""
        self.lenient = self.probed = False
        self._host = host
        self._list_changed = list_changed
        self._channel: Channel | None = None
        self._open = OpenRequests()
        self._answering: set[asyncio.Task[None]] = set()
        self._end: KodeError | None = None

    @property
    def modern(self) -> bool:
        """True if the stateless generation was agreed on."""
        return self.version == MODERN

    @property
    def ended(self) -> bool:
        """True if the channel has ended: nothing more can be asked."""
        return self._end is not None

    async def open(self, channel: Channel, known_version: str = "") -> None:
        """Agree on a generation. `known_version` is the version this server spoke the last time.

        Raises KodeError `ToolFailed`.
        """
        self._channel = channel
        known = known_version in STATEFUL
        if not known and await self._discover():
            return
        try:
            await self._initialize()
        except KodeError as error:  # a server that was updated may speak the newer one only
            refused = known and reason(error) in ("refused", "version")
            if not refused or not await self._discover():
                raise

    async def request(
        self,
        method: str,
        params: Json,
        *,
        seconds: float,
        progress: Progress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Send a request, answer the server's questions meanwhile, and return the result.

        Raises KodeError `ToolFailed`; asyncio.CancelledError after the server was notified.
        """
        for _ in range(_INPUT_ROUNDS):
            try:
                result = await self._ask(method, params, seconds, progress, headers)
            except KodeError as error:
                if (error.details or {}).get("code") != _ADDRESS_NEEDED:
                    raise
                await self._visited(error)
                continue
            if result.get("resultType") != "input_required":
                return result
            params = {**params, "inputResponses": await self._inputs(result)}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise server_error(self.server, "asked too many questions in one call.", "input_rounds")

    def read(self, data: bytes, asked: int | None = None) -> list[Json]:
        """Return the messages in what a channel has read, none if it is no message.

        Fails the request that an unreadable answer belongs to, at once: `asked`, if only that
        can be meant. Never raises.
        """
        try:
            messages, strict = read_messages(data)
        except Unreadable as unreadable:
            ids = [number for number in unreadable.ids if self.waits_for(number)]
            text = "sent an answer that cannot be read: it is no JSON."
            for number in [asked] if asked is not None else (ids or self._open.only())[:1]:
                self.fail(number, server_error(self.server, text, "unreadable"))
            return []
        self.lenient = self.lenient or not (strict or not messages)
        return messages

    def receive(self, message: Json, asked: int | None = None) -> None:
        """Handle one message of the server. Never raises: an invalid message is ignored.

        `asked` is the request that it answers if its own id is none of ours. A server that asks
        more than it reads answers is stopped.
        """
        if self._end is not None:
            return
        method = message.get("method")
        if method is None:
            number = request_id(message.get("id"))
            self._open.answer(number if self._open.get(number) else asked, message)
        elif isinstance(method, str):
            params = as_object(message.get("params"))
            if message.get("id") is None:
                self._noted(method, params)
            elif len(self._answering) < _MOST_UNANSWERED:
                self._in_background(self._answer(message["id"], method, params))
            else:
                text = f"asked more than {_MOST_UNANSWERED} things at once and was stopped."
                self.closed(server_error(self.server, text, "too_many"))
                self._in_background(self.close())

    def closed(self, error: KodeError) -> None:
        """Fail every waiting and later request with `error`, because the channel ended."""
        self._end = self._end or error
        self._open.fail_all(error)

    def fail(self, number: int, error: KodeError) -> None:
        """Fail one request, which will get no answer."""
        self._open.fail(number, error)

    def waits_for(self, number: int) -> bool:
        """Return whether this request still waits for its answer."""
        return self._open.get(number) is not None

    async def retire(self) -> None:
        """Close once the requests that still wait have their answers."""
        await self._open.finished()
        await self.close()

    async def close(self) -> None:
        """End the conversation."""
        for task in self._answering - {asyncio.current_task()}:
            task.cancel()
        if self._channel is not None:
            await self._channel.close()
        text = "was disconnected before it answered."
        self.closed(server_error(self.server, text, "ended", retryable=True))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _discover(self) -> bool:
        """Try the stateless generation; return False if the server does not speak it."""
        self.version, self.probed = MODERN, True
        try:
            result = await self._discovered()
        except KodeError as error:
            self.version = ""
            if self._end is not None or reason(error) == "http":
                raise
            return False
        supported = result.get("supportedVersions")
        if not isinstance(supported, list) or MODERN not in supported:
            self.version = ""
            return False
        self.capabilities = as_object(result.get("capabilities"))
        self.instructions = str(result.get("instructions") or "")
        meta = as_object(result.get("_meta"))
        self.server_info = as_object(result.get("serverInfo") or meta.get(f"{_META}serverInfo"))
        if self._wanted_changes():
            self._in_background(self._listen())
        return True

    def _wanted_changes(self) -> Json:
        """Return the changes that a server of the stateless generation announces on request."""
        return {
            f"{each}ListChanged": True
            for each in _LISTS
            if as_object(self.capabilities.get(each)).get("listChanged") is True
        }

    async def _listen(self) -> None:
        """Ask for changes of the lists; the answer comes at the end of the subscription."""
        for attempt in range(_LISTEN_TIMES):
            with suppress(KodeError):
                params: Json = {"notifications": self._wanted_changes()}
                await self._ask("subscriptions/listen", params, None, None)
            if self._end is not None:
                return
            await asyncio.sleep(2.0**attempt)
            self._list_changed()  # what changed meanwhile was announced to nobody

    async def _discovered(self) -> Json:
        try:
            return await self._ask("server/discover", {}, _PROBE_SECONDS, None)
        except KodeError as error:
            details = error.details or {}
            supported = as_object(details.get("data")).get("supported")
            if details.get("code") != _UNSUPPORTED_VERSION or MODERN not in (supported or ()):
                raise
            return await self._ask("server/discover", {}, _PROBE_SECONDS, None)

    async def _initialize(self) -> None:
        params = {
            "protocolVersion": STATEFUL[0],
            "capabilities": self._capabilities(),
            "clientInfo": CLIENT,
        }
        result = await self._ask("initialize", params, None, None)
        version = str(result.get("protocolVersion"))
        if version not in STATEFUL:
            raise server_error(
                self.server,
                f"speaks the protocol version {one_line(version)[:40]}, which this program does "
                "not: update one of them.",
                "version",
            )
        self.version = version
        self.capabilities = as_object(result.get("capabilities"))
        self.server_info = as_object(result.get("serverInfo"))
        self.instructions = str(result.get("instructions") or "")
        await self._send({"method": "notifications/initialized"})

    def _capabilities(self) -> Json:
        able: Json = {} if self.modern else {"roots": {"listChanged": False}}
        if self._host.elicit is not None:
            able["elicitation"] = {"form": {}, "url": {}}
        return able

    async def _ask(
        self,
        method: str,
        params: Json,
        seconds: float | None,
        progress: Progress | None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        one = self._open.begin(seconds, progress)
        number = one.number
        try:
            async with one.limit:
                await self._send(
                    {"id": number, "method": method, "params": self._with_meta(params, one)},
                    headers,
                )
                return self._result(method, await one.answer)
        except TimeoutError:
            await self._give_up(number, "timed out")
            raise server_error(
                self.server,
                f"did not answer {method} within {seconds:g} seconds.",
                "timeout",
                retryable=True,
            ) from None
        except asyncio.CancelledError:
            await self._give_up(number, "cancelled by the user")
            raise
        finally:
            self._open.drop(number)

    def _with_meta(self, params: Json, one: OpenRequest) -> Json:
        meta: Json = dict(as_object(params.get("_meta")))
        if one.progress is not None:
            meta["progressToken"] = one.number
        if self.modern:
            meta[f"{_META}protocolVersion"] = self.version
            meta[f"{_META}clientCapabilities"] = self._capabilities()
            meta[f"{_META}clientInfo"] = CLIENT
        return {**params, "_meta": meta} if meta else params

    def _result(self, method: str, message: Json) -> Json:
        error = message.get("error")
        if error is None:
            return as_object(message.get("result"))
        code, why = error_words(message)
        data = as_object(error).get("data")
        raise server_error(
            self.server,
            f"refused {method}. {quoted(why)}",
            "refused",
            code=cleaned(code),
            data=cleaned(data) if len(msgspec.json.encode(data)) < _MOST_ERROR_DATA else None,
        )

    async def _send(self, message: Json, headers: Mapping[str, str] | None = None) -> None:
        if self._end is not None:
            raise self._end
        assert self._channel is not None, "opened first"
        await self._channel.send(
            {"jsonrpc": "2.0", **message}, version=self.version, headers=headers
        )

    async def _give_up(self, number: int, why: str) -> None:
        if self._channel is None or self._end is not None:
            return
        with suppress(KodeError):
            if not await self._channel.cancel(number, modern=self.modern):
                params = {"requestId": number, "reason": why}
                await self._send({"method": "notifications/cancelled", "params": params})

    def _noted(self, method: str, params: Json) -> None:
        if method == "notifications/progress":
            one = self._open.get(request_id(params.get("progressToken")))
            if one is not None and one.progress is not None:
                one.prolong()
                one.progress(
                    str(params.get("message") or ""),
                    _number(params.get("progress")),
                    _number(params.get("total")),
                )
        elif method in _LIST_CHANGED:
            self._list_changed()

    async def _answer(self, number: object, method: str, params: Json) -> None:
        """Answer one request of a server of the stateful generation."""
        answer: Json
        try:
            answer = {"result": await self._asked(method, params)}
        except KodeError as error:
            code = _METHOD_NOT_FOUND if error.code == "MethodNotFound" else _INVALID_PARAMS
            answer = {"error": {"code": code, "message": error.message}}
        with suppress(KodeError):
            await self._send({"id": number, **answer})

    async def _asked(self, method: str, params: Json) -> Json:
        if method == "ping":
            return {}
        if method == "roots/list":
            return {"roots": [{"uri": uri} for uri in self._host.roots()]}
        if method == "elicitation/create" and self._host.elicit is not None:
            return await self._elicited(params)
        raise KodeError("MethodNotFound", f"This client does not serve {method}.")

    async def _elicited(self, params: Json) -> Json:
        assert self._host.elicit is not None
        schema = as_object(params.get("requestedSchema"))
        message = str(params.get("message") or "")
        by_address = params.get("mode") == "url"
        if by_address:  # the user opens it, and says when that is done
            schema = {}
            message = f"{message}\nOpen this address, and agree there: {address_to_open(params)}"
        found = await self._host.elicit(message, schema)
        if found is None:
            return {"action": "cancel"}
        return {"action": "accept", **({} if by_address else {"content": found})}

    async def _visited(self, error: KodeError) -> None:
        """Have the user open the addresses without which a call is refused; raises `error`."""
        asked: Any = as_object((error.details or {}).get("data")).get("elicitations")
        found = cast(list[object], asked) if isinstance(asked, list) else []
        wanted = [as_object(one) for one in found]
        for one in wanted:
            answer = await self._asked("elicitation/create", {**one, "mode": "url"})
            if answer["action"] != "accept":
                raise error
        if not wanted:
            raise error

    async def _inputs(self, result: Json) -> Json:
        """Answer the questions in an `input_required` result (stateless generation)."""
        asked = as_object(result.get("inputRequests"))
        return {
            key: await self._asked(
                str(as_object(one).get("method")), as_object(as_object(one).get("params"))
            )
            for key, one in asked.items()
        }


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
