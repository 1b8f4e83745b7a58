"""Bodies in chunks, and what looks like them, on real sockets: hosts send each delta as a chunk."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.http.request import HttpRequest
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from tests.support.raw_http import HANG_CEILING, RawHttpServer, Step, Wait

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunks(*pieces: bytes, extension: bytes = b"") -> bytes:
    return b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)


@asynccontextmanager
async def asking(
    *answers: Sequence[Step],
) -> AsyncGenerator[tuple[HttpClient, RawHttpServer]]:
    async with RawHttpServer(*answers) as server, asyncio.timeout(HANG_CEILING):
        http = HttpClient(ProviderConfig(server.url, "key"))
        yield http, server
        await http.aclose()


async def body(*reads: Step) -> bytes | None:
    """What the client makes of the bytes; None where it finds a fault."""
    async with asking(reads) as (http, _):
        return await got(http)


async def got(http: HttpClient) -> bytes | None:
    try:
        async with http.stream(HttpRequest("GET", "/")) as found:
            return await found.read_all(1 << 20)
    except KodeError as error:
        return None if error.code == "Network" else error.message.encode()


async def test_chunks_that_came_together_are_read_together() -> None:
    go = asyncio.Event()
    many = chunks(b"a", b"bb") + chunks(*[b"x" * 30] * 100)
    async with (
        asking([HEAD + many, Wait(go), LAST_CHUNK]) as (http, _),
        http.stream(HttpRequest("GET", "/")) as found,
    ):
        assert await found.read() == b"abb" + b"x" * 3000
        go.set()
        assert await found.read() == b""


async def test_nothing_waits_for_the_rest_of_a_chunk() -> None:
    waits = [Wait(asyncio.Event()) for _ in range(2)]
    cut = [HEAD + b"a\r\n12345", waits[0], b"67", waits[1], b"890\r", b"\n0\r\n\r\n"]
    async with asking(cut) as (http, _), http.stream(HttpRequest("GET", "/")) as found:
        assert await found.read() == b"12345"
        waits[0].event.set()
        assert await found.read() == b"67"
        waits[1].event.set()
        assert await found.read() == b"890"
        assert await found.read() == b""


LIKE_CHUNKS = b"2\r\nab\r\n1\r\nc\r\n"
UNTOUCHED = [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", LIKE_CHUNKS[:9], id="length"),
    pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", LIKE_CHUNKS, id="until the end"),
    pytest.param(b"HTTP/1.0 200 OK\r\n\r\n", LIKE_CHUNKS, id="HTTP/1.0"),
]


@pytest.mark.parametrize(("head", "sent"), UNTOUCHED)
async def test_what_only_looks_like_chunks_is_a_body(head: bytes, sent: bytes) -> None:
    assert await body(head + sent) == sent


async def test_trailers_are_no_body() -> None:
    assert await body(HEAD + chunks(b"ab") + b"0\r\nTrailer: x\r\n\r\n") == b"ab"


NO_ANSWERS = [
    pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n2\r\nab\r\n", id="no HTTP"),
    pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000, id="endless head"),
    pytest.param(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\nanything", id="another protocol"),
]


@pytest.mark.parametrize("sent", NO_ANSWERS)
async def test_what_is_no_answer(sent: bytes) -> None:
    assert await body(sent) is None


ODD = [
    pytest.param(b"zz\r\nab\r\n", id="size is no number"),
    pytest.param(b"0x2\r\nab\r\n", id="size in another notation"),
    pytest.param(b"-2\r\nab\r\n", id="negative size"),
    pytest.param(b"2\r\nabXX2\r\ncd\r\n0\r\n\r\n", id="no line end after the data"),
    pytest.param(b"\r\n2\r\nab\r\n", id="empty line"),
    pytest.param(b"2" * 2_000, id="endless size"),
    pytest.param(b"2 ;x\r\nab\r\n0\r\n\r\n", id="a blank before an extension, which h11 refuses"),
]


@pytest.mark.parametrize("odd", ODD)
async def test_what_is_odd_is_a_fault(odd: bytes) -> None:
    stream = HEAD + chunks(b"ok") + odd
    assert await body(stream) is None
    assert await body(*[stream[i : i + 1] for i in range(len(stream))]) is None


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.sampled_from([b"", b";name=value", b"; x", b"  "]),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\na: b\r\n\r\n"]),
    st.lists(st.integers(0, 500)),
)
def test_any_cut_gives_the_same_body(
    pieces: list[bytes], extension: bytes, interim: bytes, cuts: list[int]
) -> None:
    stream = interim + HEAD + chunks(*pieces, extension=extension) + LAST_CHUNK
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reads = [stream[a:b] for a, b in pairwise(edges)]
    assert asyncio.run(body(*reads)) == b"".join(pieces)


async def test_the_next_response_begins_anew() -> None:
    answer = [HEAD + chunks(b"a", b"b") + LAST_CHUNK]
    async with asking(answer) as (http, server):
        assert await got(http) == await got(http) == b"ab"
        assert [request.connection for request in server.requests] == [1, 1]
