"""The memory service's client on real sockets: the contract, and all ways to break it (B10)."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import pytest

from kode_sidecar.core.domain.memory import MAX_CONTENT_CHARS
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient, system_tls
from kode_sidecar.infrastructure.providers import memory_http
from kode_sidecar.infrastructure.providers.memory_http import (
    MAX_ANSWER_BYTES,
    HttpMemory,
    MemoryHost,
)
from tests.support.raw_http import HANG_CEILING, Never, RawHttpServer, Repeat

KEY = "memory-key-0123456789"
Connect = Callable[..., HttpMemory]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Builds clients; closes them in the end."""
    tls = system_tls()
    built: list[HttpMemory] = []

    def build(url: str, key: str = KEY, **more: Any) -> HttpMemory:
        built.append(HttpMemory(MemoryHost(url, key, **more), partial(HttpClient, tls=tls)))
        return built[-1]

    yield build
    for memory in built:
        await memory.aclose()


def answer(
    body: bytes | str, status: str = "200 OK", headers: Mapping[str, str] | None = None
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = {"content-type": "application/json", **(headers or {}), "content-length": len(data)}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data


def memories(*items: Mapping[str, Any]) -> bytes:
    shown = [{"id": f"m{n}", "content": "x", "scope": "s", **one} for n, one in enumerate(items)]
    return answer(json.dumps({"memories": shown, "more": "ignored"}))


async def failure(memory: HttpMemory) -> KodeError:
    """What recalling and writing both say."""
    with pytest.raises(KodeError) as caught:
        async with asyncio.timeout(HANG_CEILING):
            await memory.recall("q", "s", 5)
    with pytest.raises(KodeError) as again:
        async with asyncio.timeout(HANG_CEILING):
            await memory.write("c", "s", [])
    assert caught.value.code == again.value.code
    assert caught.value.category in ("memory", "config")
    assert KEY not in caught.value.message + again.value.message + repr(memory)
    return caught.value


async def test_the_contract(connect: Connect) -> None:
    recall = memories({"tags": ["a"], "created_at": "2026-01-02T03:04:05Z"}, {"content": "记住"})
    async with RawHttpServer([recall], [answer('{"id": "n1"}', "201 Created")]) as server:
        memory = connect(server.url)
        found = await memory.recall("how?", "s", 5)
        written = await memory.write("Tests 测试", "s", ["a", "b"])
    assert [(item.id, item.content, item.tags) for item in found] == [
        ("m0", "x", ("a",)),
        ("m1", "记住", ()),
    ]
    assert (written.id, written.state) == ("n1", "accepted")
    asked, wrote = server.requests
    assert (asked.method, asked.target) == ("POST", "/v1/recall")
    assert asked.json == {"query": "how?", "scope": "s", "limit": 5}
    assert (wrote.method, wrote.target) == ("POST", "/v1/write")
    assert wrote.json == {"content": "Tests 测试", "scope": "s", "tags": ["a", "b"]}
    for request in (asked, wrote):
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"
    assert asked.connection == wrote.connection


async def test_without_a_key_none_is_sent(connect: Connect) -> None:
    async with RawHttpServer([memories()]) as server:
        assert await connect(server.url, "").recall("q", "s", 5) == []
    assert "authorization" not in server.requests[0].headers


async def test_what_was_not_asked_for_is_left_out(connect: Connect) -> None:  # W16
    items = [
        {"scope": "other"},
        {"state": "candidate"},
        {"content": "x" * 9_999},
        *[{"id": f"n{number}"} for number in range(20)],
    ]
    async with RawHttpServer([memories(*items)]) as server:
        found = await connect(server.url).recall("q", "s", 5)
    assert [item.id for item in found] == ["m2", "n0", "n1"]
    assert len(found[0].content) == MAX_CONTENT_CHARS


REFUSALS = [
    ("401 Unauthorized", "MemoryRefused", "check KODE_MEMORY_KEY"),
    ("403 Forbidden", "MemoryRefused", "check KODE_MEMORY_KEY"),
    ("404 Not Found", "MemoryRefused", "no /recall below memory_url"),
    ("400 Bad Request", "MemoryRefused", "does not keep the contract"),
    ("204 No Content", "MemoryRefused", "does not keep the contract"),
    ("500 Oops", "MemoryUnavailable", "HTTP 500"),
    ("503 Busy", "MemoryUnavailable", "HTTP 503"),
    ("429 Slow down", "MemoryUnavailable", "HTTP 429"),
]


@pytest.mark.parametrize(("status", "code", "reported"), REFUSALS)
async def test_refusals_are_typed_and_never_repeat_what_was_said(
    connect: Connect, status: str, code: str, reported: str
) -> None:  # W14
    said = f"your key {KEY} is bad" if "204" not in status else ""
    async with RawHttpServer([answer(said, status, {"retry-after": "7"})]) as server:
        error = await failure(connect(server.url))
        assert len(server.requests) == 2  # nothing is asked twice
    assert error.code == code
    assert reported in error.message
    assert "is bad" not in error.message
    assert error.http_status == int(status[:3])
    assert error.retryable == (code == "MemoryUnavailable")
    assert error.retry_after_ms == (7_000 if error.retryable else None)


async def test_a_redirect_is_not_followed(connect: Connect) -> None:  # W9
    async with RawHttpServer([memories()]) as other:
        moved = answer("", "307 Temporary Redirect", {"location": f"{other.url}/recall"})
        async with RawHttpServer([moved]) as server:
            error = await failure(connect(server.url))
        assert other.requests == []
    assert error.code == "MemoryRefused"
    assert "redirects, which is not followed" in error.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>not what you wanted</html>",
        b"[]",
        b'{"memories": [{"id": 1, "content": "x", "scope": "s"}]}',
        b'{"memories": [{"content": "x", "scope": "s"}]}',
        b'{"memories": ["x"]}',
        b"\xff\xfe",
        b'{"memories":' + b"[" * 5_000,
        b'{"id": null, "memories": null}',
    ],
)
async def test_garbage_is_refused(connect: Connect, body: bytes) -> None:
    async with RawHttpServer([answer(body)]) as server:
        error = await failure(connect(server.url))
    assert error.code == "MemoryRefused"
    assert "something else than the contract says" in error.message


async def test_an_endless_answer_is_cut_off(connect: Connect) -> None:  # W16
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with RawHttpServer([head, Repeat(b" " * 400_000)]) as server:
        error = await failure(connect(server.url, timeout=HANG_CEILING))
        await asyncio.wait_for(server.hung_up.wait(), HANG_CEILING)
    assert error.code == "MemoryRefused"
    assert f"more than {MAX_ANSWER_BYTES:,} bytes" in error.message


async def test_a_small_answer_that_unpacks_to_much_is_cut_off(connect: Connect) -> None:  # W16
    bomb = gzip.compress(b" " * 30_000_000)
    async with RawHttpServer([answer(bomb, headers={"content-encoding": "gzip"})]) as server:
        error = await failure(connect(server.url, timeout=HANG_CEILING))
    assert error.code == "MemoryRefused"


async def test_silence_ends_in_time_and_the_connection_is_closed(connect: Connect) -> None:
    async with RawHttpServer([Never()]) as server:
        error = await failure(connect(server.url, timeout=1))
        await asyncio.wait_for(server.hung_up.wait(), HANG_CEILING)
    assert error.code == "MemoryUnavailable"
    assert "1 seconds" in error.message


async def test_dripping_does_not_make_it_longer(connect: Connect) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with RawHttpServer([head, Repeat(b" ")]) as server:
        error = await failure(connect(server.url, timeout=0.3))
    assert error.code == "MemoryUnavailable"


async def test_a_broken_answer_and_nobody_there(connect: Connect) -> None:
    async with RawHttpServer([b'HTTP/1.1 200 OK\r\n\r\n{"memories": [']) as server:
        url = server.url
        assert (await failure(connect(url))).code == "MemoryRefused"
    async with RawHttpServer(
        [b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"']
    ) as server:
        assert (await failure(connect(server.url))).code == "MemoryUnavailable"
    error = await failure(connect(url))
    assert error.code == "MemoryUnavailable"
    assert "check memory_url" in error.message


async def test_cancelling_closes_the_connection(connect: Connect) -> None:
    async with RawHttpServer([Never()]) as server:
        asking = asyncio.create_task(connect(server.url, timeout=HANG_CEILING).recall("q", "s", 1))
        await asyncio.wait_for(server.asked.wait(), HANG_CEILING)
        asking.cancel()
        await asyncio.wait_for(server.hung_up.wait(), HANG_CEILING)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_proxies_of_the_system_are_ignored(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:  # W9
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with RawHttpServer([memories()]) as server:
        assert await connect(server.url).recall("q", "s", 5) == []


@pytest.mark.parametrize(
    "url", ["", "http://memory.example.com", "ftp://x", "https://u:p@x.example"]
)
async def test_no_other_addresses(connect: Connect, url: str) -> None:  # W9
    error = await failure(connect(url))
    assert error.code == "ConfigInvalid"
    assert "memory_url" in error.message


def test_a_key_is_in_no_repr() -> None:  # W14
    assert KEY not in repr(MemoryHost("https://memory.example.com", KEY, proxy=f"http://{KEY}@p"))
    assert memory_http.HttpMemory.__repr__ is object.__repr__
