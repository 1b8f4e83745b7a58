"""Frames in and out: any cut of the bytes yields the same bodies."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kode_sidecar.core.protocol.base_protocol import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    FrameDecoder,
    encode_frame,
)

BODIES = st.lists(st.binary(max_size=60), max_size=6)
HEADERS = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\r\n\r\n",
        b"CONTENT-LENGTH :  %d  \r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"X-Unknown: a:b\r\nContent-Length: %d\r\nX:\r\n\r\n",
        b"Content-Length: 00%d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n",
    ]
)


def feed(stream: bytes, cuts: list[int]) -> tuple[list[bytes], FrameDecoder]:
    decoder = FrameDecoder()
    bodies: list[bytes] = []
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, stop in itertools.pairwise(edges):
        bodies += decoder.feed(stream[start:stop])
    return bodies, decoder


@settings(max_examples=100)
@given(BODIES, st.lists(HEADERS, min_size=6, max_size=6), st.lists(st.integers(0, 999)))
def test_any_cut_gives_the_same_bodies(
    bodies: list[bytes], headers: list[bytes], cuts: list[int]
) -> None:
    # W1: case-insensitive headers, optional spaces, unknown headers
    stream = b""
    for body, header in zip(bodies, headers, strict=False):
        stream += header % ((len(body),) * header.count(b"%d")) + body
    got, decoder = feed(stream, cuts)
    assert got == bodies
    assert decoder.failure is None


@given(BODIES)
def test_encoded_frames_decode(bodies: list[bytes]) -> None:
    assert FrameDecoder().feed(b"".join(map(encode_frame, bodies))) == bodies


@pytest.mark.parametrize(
    "stream",
    [
        b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"hello\n",
        b"Content-Length: 2\n\n{}",
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: -2\r\n\r\n{}",
        b"Content-Length: +2\r\n\r\n{}",
        b"Content-Length: \xb2\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"Content-Length: 1000000000000000000\r\n\r\n",
        b"Content-Length: " + b"9" * 6000 + b"\r\n\r\n",
        b"X" * (MAX_HEADER_BYTES + 1),
        b"X: " + b"x" * MAX_HEADER_BYTES + b"\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_lost_framing_is_final_and_keeps_what_came_before(stream: bytes, size: int) -> None:
    # W1: header cap, body cap, lost framing
    decoder = FrameDecoder()
    whole = encode_frame(b'{"a":1}') + stream
    bodies: list[bytes] = []
    for start in range(0, len(whole), size):
        bodies += decoder.feed(whole[start : start + size])
    assert bodies == [b'{"a":1}']
    assert decoder.failure is not None
    assert decoder.feed(encode_frame(b"{}")) == []


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_garbage_never_raises(stream: bytes) -> None:
    FrameDecoder().feed(stream)


def test_a_large_body_in_small_chunks() -> None:
    body = b"x" * 5_000_000
    decoder = FrameDecoder()
    frame = encode_frame(body)
    got = [b for i in range(0, len(frame), 65536) for b in decoder.feed(frame[i : i + 65536])]
    assert got == [body]
