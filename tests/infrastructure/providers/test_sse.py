"""The event stream decoder: every framing met in real streams, and any cut of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.sse import SseDecoder

CASES: dict[str, tuple[bytes, list[bytes]]] = {
    "LF": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "CR": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\rdata: c\r\r\n", [b"a", b"b", b"c"]),
    "several data lines": (b"data: a\ndata: b\n\n", [b"a\nb"]),
    "no space": (b"data:a\n\n", [b"a"]),
    "only one space goes": (b"data:  a\n\n", [b" a"]),
    "comments": (b": OPENROUTER PROCESSING\n\n: x\ndata: a\n\n:\n\n", [b"a"]),
    "other fields": (b"event: message\nid: 7\nretry: 3000\ndata: a\n\n", [b"a"]),
    "event without data": (b"retry: 3000\n\nevent: ping\n\ndata: a\n\n", [b"a"]),
    "UTF-8": ("data: 你好🎉\n\n".encode(), ["你好🎉".encode()]),
    "line separators are no line ends": (
        "data: a\u2028b\u0085c\x0bd\n\n".encode(),
        ["a\u2028b\u0085c\x0bd".encode()],
    ),
    "BOM": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "BOM only at the start": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
    "no empty line at the end": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "one line end at the end": (b"data: a\n\ndata: b\n", [b"a", b"b"]),
    "many empty lines": (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [b"a", b"b"]),
    "done, then more": (b"data: [DONE]\n\ndata: x\n\n", [b"[DONE]", b"x"]),
    "nothing": (b"", []),
    "part of a BOM": (b"\xef\xbb", []),
}


def decode(pieces: list[bytes]) -> list[bytes]:
    decoder = SseDecoder()
    found = [data for piece in pieces for data in decoder.feed(piece)]
    return found + decoder.finish()


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_framing(case: tuple[bytes, list[bytes]]) -> None:
    stream, expected = case
    assert decode([stream]) == expected
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == expected


@given(
    st.lists(st.sampled_from([*(case[0] for case in CASES.values()), b"\r", b"\n", b"data"])),
    st.lists(st.integers(0, 400)),
)
def test_any_cut_gives_the_same(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert decode(pieces) == decode([stream])


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"data: " + b"x" * 2_000 + b"\n\n"], id="in one read"),
        pytest.param([b"data: "] + [b"x" * 100] * 20, id="line without end"),
        pytest.param([b"data: x\n"] * 200, id="event without end"),
        pytest.param([b"data: a\n\n", b"data: " + b"x" * 600, b"x" * 600 + b"\n\n"], id="later"),
    ],
)
def test_endless_event(pieces: list[bytes]) -> None:  # W16
    decoder = SseDecoder(max_event_bytes=1_000)
    with pytest.raises(KodeError) as caught:
        list(map(decoder.feed, pieces))
    assert caught.value.code == "TooLarge"


def test_many_small_events_are_no_endless_one() -> None:
    decoder = SseDecoder(max_event_bytes=1_000)
    assert len(decoder.feed(b"data: x\n\n" * 500)) == 500


def test_a_large_event_in_small_reads() -> None:
    line = b"data: " + b"x" * 8_000_000 + b"\n\n"
    pieces = [line[i : i + 1_000] for i in range(0, len(line), 1_000)]
    assert decode(pieces) == [b"x" * 8_000_000]
