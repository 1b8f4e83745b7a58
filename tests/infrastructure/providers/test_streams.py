"""Every stream means what it should, whatever way its bytes are cut."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.model_event import ModelEvent
from kode_sidecar.infrastructure.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.infrastructure.providers.dialect import AnswerDecoder
from kode_sidecar.infrastructure.providers.event_decoder import AnswerContext
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder, KimiDecoder
from kode_sidecar.infrastructure.providers.openai_responses import ResponsesDecoder
from tests.conftest import FULL
from tests.infrastructure.providers.streams import anthropic, chat, framing, responses
from tests.infrastructure.providers.streams.answer import answer_of, joined

CHAT = {f"framing: {name}": found for name, found in framing.STREAMS.items()} | chat.STREAMS
ALL = {
    f"{dialect} {name}": found
    for dialect, streams in {
        "chat": CHAT,
        "anthropic": anthropic.STREAMS,
        "responses": responses.STREAMS,
    }.items()
    for name, found in streams.items()
}
RANDOM_CUTS = 1_000 if FULL else 50


def decoder_for(name: str) -> AnswerDecoder:
    found = ALL[name]
    if name.startswith("anthropic "):
        return AnswerDecoder(MessagesDecoder(AnswerContext(tool_names=found.tools)))
    if name.startswith("responses "):
        return AnswerDecoder(ResponsesDecoder(AnswerContext(tool_names=found.tools)))
    decoder = KimiDecoder if found.needs_done else ChatDecoder
    return AnswerDecoder(decoder(AnswerContext(tool_names=found.tools)))


def read(name: str, *pieces: bytes) -> list[ModelEvent]:
    """The events of a stream that comes in these pieces; reading stops where a client's would."""
    decoder = decoder_for(name)
    events: list[ModelEvent] = []
    for data in pieces:
        if decoder.ended:
            break
        events += decoder.feed(data)
    return joined([*events, *decoder.finish()])


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(at for at in cuts if at < len(body)), len(body)]
    return [body[begin:end] for begin, end in pairwise(edges)]


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 80


@pytest.mark.parametrize("name", ALL)
def test_a_stream_means_what_it_should(name: str) -> None:  # C3 C4 C5 D7 W10
    found = ALL[name]
    assert answer_of(read(name, found.body)) == found.says


@pytest.mark.parametrize("name", ALL)
def test_cuts_do_not_matter(name: str, rng: random.Random) -> None:  # D7
    body = ALL[name].body
    whole = read(name, body)
    assert read(name, *(body[at : at + 1] for at in range(len(body)))) == whole
    for _ in range(RANDOM_CUTS):
        cuts = rng.choices(range(len(body) + 1), k=rng.randint(1, 12))
        assert read(name, *cut(body, cuts)) == whole, f"cut at {sorted(cuts)}"


@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(0, 3_000), max_size=20))
def test_cuts_that_hypothesis_finds(name: str, cuts: list[int]) -> None:
    body = ALL[name].body
    assert read(name, *cut(body, cuts)) == read(name, body)


@given(st.sampled_from(sorted(name for name in ALL if "error" not in name)), st.data())
def test_a_stream_cut_short_never_ends_well_without_its_end(name: str, data: st.DataObject) -> None:
    """Whatever is lost: an answer that says it is whole has its finish reason or end mark."""
    found = ALL[name]
    kept = found.body[: data.draw(st.integers(0, len(found.body)))]
    answer = answer_of(read(name, kept))
    ends = [b"_reason", b"[DONE]", b"message_stop"]
    if name.startswith("responses "):
        ends = [b"response.completed", b"response.incomplete"]
    has_end = kept == found.body or any(mark in kept for mark in ends)
    if not has_end and not kept.lstrip().startswith(b"<"):
        assert answer.end == "incomplete"
