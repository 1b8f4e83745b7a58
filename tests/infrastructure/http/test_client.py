"""The HTTP client on real sockets: addresses, TLS, proxies, bodies."""

import asyncio
import base64
import gzip
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.http.request import HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.http.response import HttpResponse
from kode_sidecar.infrastructure.http.transport import describe_os_error, proxy_of
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig, host_of
from tests.support import raw_http
from tests.support.raw_http import (
    HANG_CEILING,
    HEAD,
    LAST_CHUNK,
    RawHttpServer,
    Wait,
    chunk,
    response,
)
from tests.support.tunnel import Tunnel

CERTIFICATE = Path(raw_http.__file__).with_name("loopback_tls.pem")


NewHttp = Callable[..., HttpClient]


@pytest.fixture
async def new_http() -> AsyncIterator[NewHttp]:
    """Builds HTTP clients; closes them in the end."""
    built: list[HttpClient] = []

    def build(url: str, tls: ssl.SSLContext | None = None, **config: Any) -> HttpClient:
        built.append(HttpClient(ProviderConfig(url, "key", **config), tls))
        return built[-1]

    yield build
    for http in built:
        await http.aclose()


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def get(http: HttpClient) -> bytes:
    async with (
        asyncio.timeout(HANG_CEILING),
        http.stream(HttpRequest("GET", "/models")) as found,
    ):
        return await found.read_all(1 << 20)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.moonshot.cn/v1", "api.moonshot.cn"),
        ("https://llm.example:8443/v1", "llm.example:8443"),
        ("http://localhost:1234", "localhost:1234"),
        ("http://127.0.0.1:1234/v1", "127.0.0.1:1234"),
        ("http://[::1]:1234/v1", "::1:1234"),
    ],
)
def test_addresses_we_talk_to(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "http://api.moonshot.cn/v1",
        "http://127.0.0.1.evil.example/v1",
        "http://localhost.evil.example",
        "ftp://api.moonshot.cn",
        "api.moonshot.cn",
        "https://",
        "https://user:secret@api.moonshot.cn",
        "https://api.moonshot.cn:port",
        "",
    ],
)
def test_addresses_we_do_not_talk_to(url: str) -> None:  # W9
    with pytest.raises(KodeError) as caught:
        HttpClient(ProviderConfig(url, "key"))
    assert caught.value.code == "ConfigInvalid"
    assert "KIMI_BASE_URL" in caught.value.message
    assert "secret" not in caught.value.message


def test_an_address_with_a_bad_name_is_no_address() -> None:
    with pytest.raises(KodeError) as caught:
        HttpClient(ProviderConfig("https://\u2488com/v1", "key"))
    assert caught.value.code == "ConfigInvalid"
    assert "KIMI_BASE_URL" in caught.value.message


async def test_headers_that_come_twice_are_one(new_http: NewHttp) -> None:
    answer = response(200, b"", "x-limit: 1", "x-limit: 2")
    async with (
        RawHttpServer(answer) as server,
        new_http(server.url).stream(HttpRequest("GET", "/")) as found,
    ):
        assert found.headers["x-limit"] == "1, 2"


def test_a_config_does_not_show_its_secrets() -> None:  # W14
    shown = repr(ProviderConfig("https://x", "secret", proxy="http://u:secret@p"))
    assert "secret" not in shown


async def test_reads_come_merged_and_whole(new_http: NewHttp) -> None:
    pieces = [b"x" * 50] * 2_000
    async with RawHttpServer([HEAD, b"".join(map(chunk, pieces)), LAST_CHUNK]) as server:
        reads: list[bytes] = []
        async with new_http(server.url).stream(HttpRequest("POST", "/x", {}, b"{}")) as found:
            assert (found.status, found.headers["content-type"]) == (200, "text/event-stream")
            while data := await found.read():
                reads.append(data)
            assert await found.read() == b""
        assert b"".join(reads) == b"".join(pieces)
        assert len(reads) < 200


async def test_a_compressed_body(new_http: NewHttp) -> None:
    packed = gzip.compress(b"hello" * 100)
    async with RawHttpServer(response(200, packed, "content-encoding: gzip")) as server:
        assert await get(new_http(server.url)) == b"hello" * 100


async def test_a_body_is_read_to_a_limit(new_http: NewHttp) -> None:  # W16
    async with (
        RawHttpServer(response(500, b"x" * 100_000)) as server,
        new_http(server.url).stream(HttpRequest("GET", "/")) as found,
    ):
        assert len(await found.read_all(1_000)) == 1_000


BOMB = gzip.compress(b" " * 80_000_000)


async def test_a_packed_bomb_is_not_unpacked(new_http: NewHttp) -> None:  # W16
    async with RawHttpServer(response(200, BOMB, "content-encoding: gzip")) as server:
        http = new_http(server.url)
        async with http.stream(HttpRequest("GET", "/")) as found:
            assert len(await found.read_all(1_000)) == 1_000
        async with http.stream(HttpRequest("GET", "/")) as found:
            with pytest.raises(KodeError) as caught:
                await all_pieces(found)
        assert caught.value.code == "TooLarge"


async def all_pieces(response: HttpResponse) -> None:
    while data := await response.read():
        assert len(data) <= 256 * 1024


UNPACKABLE = {
    "gzip": (b"no gzip at all", "Network"),
    "br": (b"x", "Provider"),
    "gzip, gzip": (gzip.compress(gzip.compress(b"x")), "Provider"),
}


@pytest.mark.parametrize("coding", UNPACKABLE)
async def test_what_cannot_be_unpacked(new_http: NewHttp, coding: str) -> None:  # W16
    body, code = UNPACKABLE[coding]
    async with RawHttpServer(response(200, body, f"content-encoding: {coding}")) as server:
        with pytest.raises(KodeError) as caught:
            await get(new_http(server.url))
        assert caught.value.code == code


async def test_a_body_of_several_packed_parts(new_http: NewHttp) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    async with RawHttpServer(response(200, packed, "content-encoding: gzip")) as server:
        assert await get(new_http(server.url)) == b"one two"


BROKEN = [
    [HEAD, b"5\r\nab"],
    [HEAD, chunk(b"ab"), b"zz\r\n"],
    [b"HTTP/1.1 200 OK\r\ncontent-le"],
    [b"nonsense\r\n\r\n"],
    [b""],
]


@pytest.mark.parametrize("answer", BROKEN)
async def test_broken_answers(new_http: NewHttp, answer: Sequence[bytes]) -> None:
    async with RawHttpServer(answer) as server:
        with pytest.raises(KodeError) as caught:
            await get(new_http(server.url))
        assert (caught.value.code, caught.value.retryable) == ("Network", True)
        assert f"127.0.0.1:{server.port}" in caught.value.message


async def test_nobody_listens(new_http: NewHttp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(KodeError, match="refused") as caught:
        await get(new_http(f"http://127.0.0.1:{port}"))
    assert (caught.value.code, caught.value.retryable) == ("Network", True)
    assert "KIMI_BASE_URL" in caught.value.message, "the address may be the wrong one"


def test_failures_are_told_without_addresses() -> None:
    reported = {
        describe_os_error(socket.gaierror(-2, "Name or service not known")),
        describe_os_error(ConnectionResetError(104, "reset by 10.1.2.3")),
        describe_os_error(OSError("Multiple exceptions: Connect call failed ('10.1.2.3', 443)")),
    }
    assert reported == {
        "its address was not found",
        "the connection was closed",
        "no connection could be made",
    }


async def test_no_handshake_in_time(new_http: NewHttp) -> None:  # W9
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(KodeError, match="TLS handshake"):
            await get(new_http(url, timeouts=HttpTimeouts(connect=0.5)))


async def test_tls_with_a_known_authority(new_http: NewHttp) -> None:
    known = ssl.create_default_context(cafile=str(CERTIFICATE))
    async with RawHttpServer([HEAD, chunk(b"hi"), LAST_CHUNK], tls=server_tls()) as server:
        http = new_http(server.url, known)
        assert [await get(http), await get(http)] == [b"hi", b"hi"]
        assert [request.connection for request in server.requests] == [1, 1]


async def test_a_large_body_over_tls_to_a_slow_reader(new_http: NewHttp) -> None:
    known = ssl.create_default_context(cafile=str(CERTIFICATE))
    pieces = [bytes([n]) * 40_000 for n in range(200)]
    async with RawHttpServer([HEAD, *map(chunk, pieces), LAST_CHUNK], tls=server_tls()) as server:
        async with (
            asyncio.timeout(HANG_CEILING),
            new_http(server.url, known).stream(HttpRequest("GET", "/")) as found,
        ):
            body = bytearray()
            while data := await found.read():
                body += data
                await asyncio.sleep(0)
        assert body == b"".join(pieces)


async def test_tls_with_an_unknown_authority(new_http: NewHttp) -> None:  # W9
    async with RawHttpServer([HEAD, LAST_CHUNK], tls=server_tls()) as server:
        with pytest.raises(KodeError, match="certificate") as caught:
            await get(new_http(server.url))
        assert not caught.value.retryable
        assert server.requests == []


STORE = (
    "from kode_sidecar.infrastructure.http.client import system_tls;"
    "print(system_tls().cert_store_stats()['x509_ca'])"
)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows always has its store")
def test_without_a_system_store_there_are_certificates_all_the_same() -> None:  # W9
    nowhere = {"SSL_CERT_FILE": "/nonexistent/ca.pem", "SSL_CERT_DIR": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", STORE],
        env={**os.environ, **nowhere},
        capture_output=True,
        check=True,
        timeout=HANG_CEILING,
    )
    assert int(done.stdout) > 50


async def test_leaving_early_closes_a_tls_connection(new_http: NewHttp) -> None:
    known = ssl.create_default_context(cafile=str(CERTIFICATE))
    stream = [HEAD, chunk(b"hi"), Wait(asyncio.Event())]
    async with RawHttpServer(stream, tls=server_tls()) as server, asyncio.timeout(HANG_CEILING):
        async with new_http(server.url, known).stream(HttpRequest("GET", "/")) as found:
            assert await found.read() == b"hi"
        await server.hung_up.wait()


async def test_a_proxy_of_the_settings(new_http: NewHttp) -> None:  # A3
    async with RawHttpServer([HEAD, chunk(b"hi"), LAST_CHUNK]) as proxy:
        http = new_http("http://127.0.0.1:9/v1", proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        assert await get(http) == b"hi"
        (sent,) = proxy.requests
        assert sent.target == "http://127.0.0.1:9/v1/models"
        secret = base64.b64encode(b"me:p@ss").decode()
        assert sent.headers["proxy-authorization"] == f"Basic {secret}"


async def test_a_proxy_that_refuses(new_http: NewHttp) -> None:
    async with RawHttpServer(response(407, b"")) as proxy:
        http = new_http("https://llm.example/v1", proxy=f"http://me:secret@127.0.0.1:{proxy.port}")
        with pytest.raises(KodeError, match="proxy refused") as caught:
            await get(http)
        assert "secret" not in caught.value.message
        assert proxy.requests[0].method == "CONNECT"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_tunnel_through_a_proxy(new_http: NewHttp, scheme: str) -> None:  # A3 W9
    known = ssl.create_default_context(cafile=str(CERTIFICATE))
    async with (
        RawHttpServer([HEAD, chunk(b"hi"), LAST_CHUNK], tls=server_tls()) as server,
        Tunnel(server_tls() if scheme == "https" else None) as proxy,
    ):
        address = f"{scheme}://me:secret@127.0.0.1:{proxy.port}"
        http = new_http(server.url, known, proxy=address)
        assert [await get(http), await get(http)] == [b"hi", b"hi"]
        (head,) = proxy.heads
        assert head.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")
        assert base64.b64encode(b"me:secret").decode() in head
        assert [request.target for request in server.requests] == ["/v1/models"] * 2
        assert "proxy-authorization" not in server.requests[0].headers


def test_a_proxy_does_not_show_its_secrets() -> None:  # W14
    proxy = proxy_of("http://me:secret@127.0.0.1:1")
    assert proxy.raw_auth == (b"me", b"secret")
    assert "secret" not in repr(proxy)
    assert base64.b64encode(b"me:secret").decode() not in repr(proxy)


async def test_redirects_are_not_followed(new_http: NewHttp) -> None:  # W9
    async with RawHttpServer(response(302, b"", "location: /elsewhere")) as server:
        async with new_http(server.url).stream(HttpRequest("GET", "/")) as found:
            assert found.status == 302
        assert len(server.requests) == 1


@pytest.mark.parametrize("target", ["data:text/html,hi", "javascript:alert(1)", "http:\\\\a\\"])
async def test_a_redirect_to_no_web_address_is_a_failure(new_http: NewHttp, target: str) -> None:
    async with RawHttpServer(response(302, b"", f"location: {target}")) as server:
        with pytest.raises(KodeError, match="redirects to no web address"):
            async with new_http(server.url).stream(HttpRequest("GET", "/")):
                pass


async def test_a_connection_closed_while_idle_is_not_used(new_http: NewHttp) -> None:
    async with RawHttpServer([HEAD, chunk(b"hi"), LAST_CHUNK]) as first:
        http = new_http(first.url)
        assert await get(http) == b"hi"
    async with RawHttpServer([HEAD, chunk(b"again"), LAST_CHUNK], port=first.port):
        assert await get(http) == b"again"


async def test_a_host_closes_an_idle_connection_half(new_http: NewHttp) -> None:
    """It says that nothing more will come, but would go on listening: nothing is sent there."""
    answers = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answers
        answers += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    http = new_http(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert [await get(http), await get(http)] == [b"hi", b"hi"]
    assert answers == 2
    server.close()


@pytest.mark.parametrize("goes_on", ["closes", "reads"])
async def test_an_answer_before_the_request_is_whole(new_http: NewHttp, goes_on: str) -> None:
    """A host that refuses a long request does not wait for its end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 X\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlong")
        await writer.drain()
        if goes_on == "reads":
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    http = new_http(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with (
        asyncio.timeout(HANG_CEILING),
        http.stream(HttpRequest("POST", "/", {}, b"x" * 2_000_000)) as found,
    ):
        assert (found.status, await found.read_all(100)) == (413, b"long")
    server.close()


@pytest.mark.parametrize("tunneled", [False, True])
async def test_cancelled_in_the_handshake_the_socket_is_closed(
    new_http: NewHttp, tunneled: bool
) -> None:  # W9
    came, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            came.set()
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with Tunnel() as proxy, asyncio.timeout(HANG_CEILING):
        http = new_http(url, proxy=f"http://127.0.0.1:{proxy.port}" if tunneled else None)
        asking = asyncio.create_task(get(http))
        await came.wait()
        asking.cancel()
        await gone.wait()
        await asyncio.wait([asking])
        assert asking.cancelled()
    server.close()


async def test_cancelled_twice_anywhere_no_connection_is_lost(new_http: NewHttp) -> None:  # W9
    answer = [HEAD, *[chunk(b"x" * 50)] * 20, LAST_CHUNK]
    async with RawHttpServer(answer) as server, asyncio.timeout(HANG_CEILING):
        http = new_http(server.url)
        for steps in range(40):
            asking = asyncio.create_task(get(http))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        assert await get(http) == b"x" * 1_000
        await http.aclose()
        await server.all_gone()


async def test_no_cookie_goes_back(new_http: NewHttp) -> None:
    async with RawHttpServer(response(200, b"", "set-cookie: a=b; path=/")) as server:
        http = new_http(server.url)
        await get(http)
        await get(http)
        assert [request.headers.get("cookie") for request in server.requests] == [None, None]
