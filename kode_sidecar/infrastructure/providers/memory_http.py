"""Memory in a service of the user's: a client of `protocol/memory-http.md` (B10).

It follows no redirect, uses no system proxy, reads an answer up to a limit, and never retries: the
caller continues without memory. No message contains the key or the service's words.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.memory import MAX_CONTENT_CHARS, MemoryItem, check_memory
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.providers.error_words import ErrorWords, seconds_to_wait
from kode_sidecar.infrastructure.providers.provider_config import host_of

if TYPE_CHECKING:
    from kode_sidecar.infrastructure.providers.endpoint import Host

MAX_ANSWER_BYTES = 1_000_000
_ASKER = "memory"

T = TypeVar("T")


@dataclass(frozen=True)
class MemoryHost:
    """The address of the service. An empty `key` is not sent. A call takes at most `timeout` s.

    `url_name` and `key_name` name the settings of address and key.
    """

    base_url: str
    key: str = field(default="", repr=False)
    timeout: float = 10.0
    proxy: str | None = field(default=None, repr=False)
    url_name: str = "memory_url"
    key_name: str = "KODE_MEMORY_KEY"

    @property
    def timeouts(self) -> HttpTimeouts:
        """The limit of each step; the call as a whole has the same limit."""
        each = self.timeout
        return HttpTimeouts(connect=each, first_byte=each, idle=each, write=each)

    def host(self) -> str:
        """Return the host. Raises KodeError `ConfigInvalid` unless https or local http."""
        return host_of(self.base_url, self.url_name)


class _Recall(Struct, frozen=True):
    query: str
    scope: str
    limit: int


class _Recalled(Struct, frozen=True):
    memories: list[MemoryItem]


class _Write(Struct, frozen=True):
    content: str
    scope: str
    tags: Sequence[str]


class _Written(Struct, frozen=True):
    id: str


class HttpMemory:
    """`context.memory.Memory` over HTTP; lives as long as the process.

    `open_http` builds the HTTP client; it is called in a thread, on first use.
    """

    def __init__(self, host: MemoryHost, open_http: "Callable[[MemoryHost], Host]") -> None:
        self._host = host
        self._open_http = open_http
        self._http: Host | None = None
        self._opening = asyncio.Lock()

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        """Return at most `limit` items in the service's order; too long contents are cut.

        Raises KodeError `MemoryUnavailable`, `MemoryRefused`, `ConfigInvalid`.
        """
        found = await self._post("/recall", _Recall(query, scope, limit), _Recalled)
        return [
            msgspec.structs.replace(item, content=item.content[:MAX_CONTENT_CHARS])
            for item in found.memories[:limit]
            if item.scope == scope and item.state == "accepted"
        ]

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        """Save one item; the service has it when this returns. Raises as `recall` does."""
        check_memory(content, scope, tags)
        written = await self._post("/write", _Write(content, scope, tags), _Written)
        return MemoryItem(id=written.id, content=content, scope=scope, tags=tuple(tags))

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()

    async def _post(self, path: str, body: Struct, answer: type[T]) -> T:
        name = self._host.host()
        async with self._opening:
            if self._http is None:
                self._http = await asyncio.to_thread(self._open_http, self._host)
        try:
            async with asyncio.timeout(self._host.timeout):
                return await self._ask(self._http, path, body, answer)
        except TimeoutError:
            text = (
                f"The memory service {name} did not answer within {self._host.timeout:g} seconds."
            )
            raise KodeError("MemoryUnavailable", text) from None
        except KodeError as error:
            if error.code != "Network":
                raise
            raise KodeError(
                "MemoryUnavailable", f"Memory: {error.message}", retryable=error.retryable
            ) from None

    async def _ask(self, http: "Host", path: str, body: Struct, answer: type[T]) -> T:
        name = self._host.host()
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._host.key:
            headers["authorization"] = f"Bearer {self._host.key}"
        sent = msgspec.json.encode(body)
        async with http.stream(HttpRequest("POST", path, headers, sent, _ASKER)) as response:
            if response.status not in (200, 201):
                raise self._refused(name, path, response.status, dict(response.headers))
            data = await response.read_all(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES:
            text = f"The memory service {name} sent more than {MAX_ANSWER_BYTES:,} bytes."
            raise KodeError("MemoryRefused", text)
        try:
            return msgspec.json.decode(data, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = (
                f"The memory service {name} answered {path} with something else than the contract "
                f"says: check {self._host.url_name}."
            )
            raise KodeError("MemoryRefused", text) from None

    def _refused(self, name: str, path: str, status: int, headers: dict[str, str]) -> KodeError:
        if status in (408, 425, 429) or status >= 500:
            after = seconds_to_wait(headers, ErrorWords("", "", status))
            return KodeError(
                "MemoryUnavailable",
                f"The memory service {name} cannot answer now (HTTP {status}): try again later.",
                http_status=status,
                retry_after_ms=None if after is None else round(after * 1000),
            )
        advice = {
            401: f"check {self._host.key_name}",
            403: f"check {self._host.key_name}",
            404: f"there is no {path} below {self._host.url_name}",
        }.get(status, "it does not keep the contract")
        if 300 <= status < 400:
            advice = f"it redirects, which is not followed: check {self._host.url_name}"
        text = f"The memory service {name} refused (HTTP {status}): {advice}."
        return KodeError("MemoryRefused", text, http_status=status)
