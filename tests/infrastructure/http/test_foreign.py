"""Addresses that somebody else has named: which are asked, and how much is believed (W19)."""

import asyncio
import gzip
import socket
import tracemalloc
from typing import Any

import pytest

from kode_sidecar.infrastructure.http.foreign import MAX_ANSWER, ForeignHttp, is_public
from kode_sidecar.infrastructure.http.response import NetworkError
from tests.support.raw_http import HANG_CEILING, RawHttpServer, Wait, response

NOT_PUBLIC = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "fd00:ec2::254"),
    *(
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        *("64:ff9b:1::a00:1", "::7f00:1", "::10.0.0.1", "::ffff:0:127.0.0.1", "5f00::1", "3fff::1"),
        *("168.63.129.16", "192.0.0.9", "192.88.99.1"),
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
    ),
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ftp://example.com/",
        "//example.com/",
        "https://",
        "https://user:secret@example.com/",
        "https://exam ple.com/",
        "https://example.com/\x1b[2J",
        "https://example.com/\n",
        "https://example.com\\@127.0.0.1/",
        "https://еxample.com/",
        "https://[::1/",
        "https://example.com:port/",
        "https://example.com/" + "x" * 9_000,
    ],
)
async def test_what_is_no_web_address(url: str) -> None:
    with pytest.raises(NetworkError, match="is no web address") as caught:
        await ForeignHttp(set(), "login_hosts").check(url)
    assert caught.value.message.isprintable()
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_other_service_of_this_machine_is_asked(host: str, scheme: str) -> None:
    async with RawHttpServer(response(200, {})) as server:
        http = ForeignHttp({f"127.0.0.1:{server.port + 1}", "mcp.example"}, "login_hosts")
        with pytest.raises(NetworkError, match="login_hosts") as caught:
            await http.ask("GET", f"{scheme}://{host}:{server.port}/", {})
        assert not caught.value.retryable
        assert server.requests == []


async def test_the_users_own_host_is_asked() -> None:
    async with RawHttpServer(response(200, {"a": 1})) as server:
        for own in (f"127.0.0.1:{server.port}", "127.0.0.1"):
            http = ForeignHttp({own}, "login_hosts")
            asked = await http.ask("POST", f"{server.url}/x?y=1#z", {"accept": "a/b"}, b"body")
            assert asked == (200, b'{"a": 1}')
        sent = server.requests[0]
        assert (sent.method, sent.target, sent.body) == ("POST", "/v1/x?y=1", b"body")
        assert sent.headers["host"] == f"127.0.0.1:{server.port}"


async def test_plain_http_is_for_this_machine_only() -> None:
    with pytest.raises(NetworkError, match="https://"):
        await ForeignHttp({"10.1.2.3"}, "login_hosts").check("http://10.1.2.3/")


async def test_the_address_that_was_checked_is_the_one_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that leads elsewhere at the second look gains nothing: there is no second look."""
    looked: list[str] = []
    loop = asyncio.get_running_loop()

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        looked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async with RawHttpServer(response(200, b"ok")) as server:
        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        name = f"mcp.example:{server.port}"
        http = ForeignHttp({name}, "login_hosts")
        assert await http.ask("GET", f"http://{name}/", {}) == (200, b"ok")
        assert server.requests[0].headers["host"] == name
        assert looked == ["mcp.example"]
        with pytest.raises(NetworkError, match="not on the public internet"):
            await http.ask("GET", f"http://other.example:{server.port}/", {})
        assert len(server.requests) == 1


async def test_a_name_with_one_address_of_this_network_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        found = ("1.1.1.1", "192.168.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    with pytest.raises(NetworkError, match="not on the public internet"):
        await ForeignHttp(set(), "login_hosts").check("https://rebinding.example/")


async def test_a_redirect_is_not_followed() -> None:
    async with (
        RawHttpServer(response(200, {})) as other,
        RawHttpServer(response(302, b"", f"location: {other.url}")) as server,
    ):
        http = ForeignHttp({f"127.0.0.1:{server.port}"}, "login_hosts")
        assert await http.ask("GET", server.url, {}) == (302, b"")
        assert other.requests == []


BOMB = gzip.compress(b" " * 40_000_000) * 10


@pytest.mark.parametrize(
    ("body", "headers"), [(BOMB, ("content-encoding: gzip",)), (b"x" * 2 * MAX_ANSWER, ())]
)
async def test_a_large_answer_is_given_up(body: bytes, headers: tuple[str, ...]) -> None:
    async with RawHttpServer(response(200, body, *headers)) as server:
        http = ForeignHttp({"127.0.0.1"}, "login_hosts")
        tracemalloc.start()
        with pytest.raises(NetworkError, match="more than 1,000,000 bytes"):
            await http.ask("GET", server.url, {})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12_000_000 + len(body)


async def test_what_is_packed_in_another_way_is_refused() -> None:
    async with RawHttpServer(response(200, b"x", "content-encoding: br")) as server:
        with pytest.raises(NetworkError, match="nobody asked for"):
            await ForeignHttp({"127.0.0.1"}, "login_hosts").ask("GET", server.url, {})


@pytest.mark.parametrize("drips", [False, True])
async def test_a_slow_answer_is_given_up(drips: bool) -> None:
    waits = [Wait(asyncio.Event()) for _ in range(100)]
    steps = [step for wait in waits for step in (b"x", wait)] if drips else [Wait(asyncio.Event())]

    async def tick() -> None:
        for wait in waits:
            await asyncio.sleep(0.05)
            wait.event.set()

    ticking = asyncio.create_task(tick())
    async with RawHttpServer([b"HTTP/1.1 200 OK\r\n\r\n", *steps]) as server:
        http = ForeignHttp({"127.0.0.1"}, "login_hosts", seconds=0.4)
        with pytest.raises(NetworkError, match=r"did not answer in 0\.4 seconds"):
            async with asyncio.timeout(HANG_CEILING):
                await http.ask("GET", server.url, {})
        await server.hung_up.wait()
    ticking.cancel()


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NetworkError, match="connection refused"):
        await ForeignHttp({"localhost"}, "login_hosts").ask("GET", f"http://localhost:{port}/", {})
