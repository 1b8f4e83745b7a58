"""Chunks of one read become one, and the HTTP library reads the same body."""

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.infrastructure.providers.http_connection import ChunkMerger

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunks(*pieces: bytes, extension: bytes = b"") -> bytes:
    return b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)


def merged(reads: list[bytes]) -> list[bytes]:
    merger = ChunkMerger()
    return [out for read in reads if (out := merger.feed(read))]


def body(reads: list[bytes]) -> bytes | None:
    """What h11 makes of the bytes; None where it finds a fault."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    found = bytearray()
    try:
        for read in [*reads, b""]:
            client.receive_data(read)
            while True:
                event = client.next_event()
                if isinstance(event, h11.Data):
                    found += event.data
                elif isinstance(event, h11.EndOfMessage):
                    return bytes(found)
                elif event is h11.NEED_DATA:
                    break
    except h11.RemoteProtocolError:
        return None
    return bytes(found)


def test_one_chunk_per_read() -> None:
    reads = [HEAD + chunks(b"a", b"bb"), chunks(*[b"x" * 30] * 100), b"0\r\n\r\n"]
    assert merged(reads) == [
        HEAD + b"3\r\nabb\r\n",
        b"bb8\r\n" + b"x" * 3000 + b"\r\n",
        b"0\r\n\r\n",
    ]


def test_nothing_waits_for_the_rest_of_a_chunk() -> None:
    assert merged([HEAD + b"a\r\n12345", b"67", b"890\r", b"\n0\r\n\r\n"]) == [
        HEAD + b"5\r\n12345\r\n",
        b"2\r\n67\r\n",
        b"3\r\n890\r\n",
        b"0\r\n\r\n",
    ]


UNTOUCHED = [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n2\r\nab\r\n1\r", id="length"),
    pytest.param(b"HTTP/1.1 200 OK\r\n\r\n2\r\nab\r\n1\r\nc\r\n", id="until the end"),
    pytest.param(b"HTTP/1.1 101 Switching\r\n\r\nanything", id="another protocol"),
    pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n2\r\nab\r\n", id="no HTTP"),
    pytest.param(b"x" * 70_000, id="endless head"),
    pytest.param(HEAD + b"0\r\nTrailer: x\r\n\r\n", id="trailers"),
]


@pytest.mark.parametrize("stream", UNTOUCHED)
def test_all_else_passes_as_it_is(stream: bytes) -> None:
    assert b"".join(merged([stream])) == stream


ODD = [
    pytest.param(b"zz\r\nab\r\n", id="size is no number"),
    pytest.param(b"0x2\r\nab\r\n", id="size in another notation"),
    pytest.param(b"-2\r\nab\r\n", id="negative size"),
    pytest.param(b"2\r\nabXX2\r\ncd\r\n0\r\n\r\n", id="no line end after the data"),
    pytest.param(b"\r\n2\r\nab\r\n", id="empty line"),
    pytest.param(b"2" * 2_000, id="endless size"),
]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_stays_odd(odd: bytes) -> None:
    stream = HEAD + chunks(b"ok") + odd
    assert body([stream]) is None
    assert body(merged([stream])) is None
    assert body(merged([stream[i : i + 1] for i in range(len(stream))])) is None


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.sampled_from([b"", b";name=value", b" ;x"]),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\na: b\r\n\r\n"]),
    st.lists(st.integers(0, 500)),
)
def test_any_cut_gives_the_same_body(
    pieces: list[bytes], extension: bytes, interim: bytes, cuts: list[int]
) -> None:
    stream = interim + HEAD + chunks(*pieces, extension=extension) + b"0\r\n\r\n"
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reads = [stream[a:b] for a, b in pairwise(edges)]
    assert body(merged(reads)) == b"".join(pieces)


def test_the_next_response_begins_anew() -> None:
    merger = ChunkMerger()
    answer = HEAD + chunks(b"a", b"b") + b"0\r\n\r\n"
    first = merger.feed(answer)
    merger.begin_request()
    assert merger.feed(answer) == first == HEAD + b"2\r\nab\r\n0\r\n\r\n"
