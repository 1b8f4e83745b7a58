"""What is left out of a request that does not fit (C10)."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.builder import normalize_messages_for_api
from kode_sidecar.agent.context.fitting import fit, trim
from kode_sidecar.agent.context.token_count import Rates, estimate, message_weight
from kode_sidecar.core.domain.message import (
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import ModelRequest


def said(role: Role, text: str, name: str = "", **meta: str) -> Message:
    return Message(id=name, session_id="s", role=role, content=(TextBlock(text=text),), meta=meta)


def looked_up(name: str, size: int) -> list[Message]:
    call = ToolUseBlock(tool_use_id=name, name="read_file", input={"path": f"{name}.py"})
    found = ToolResultBlock(
        tool_use_id=name, content=(TextBlock(text="x" * size),), summary=f"Read {name}.py"
    )
    thought = ThinkingBlock(text="hm")
    return [
        Message(id=f"{name}-call", session_id="s", role="assistant", content=(thought, call)),
        Message(id=f"{name}-found", session_id="s", role="tool", content=(found,)),
    ]


def turn(name: str, size: int) -> list[Message]:
    return [
        said("user", f"prompt {name} " * 20, f"{name}-prompt"),
        *looked_up(f"{name}1", size),
        *looked_up(f"{name}2", size),
        said("assistant", f"answer {name} " * 60, f"{name}-answer"),
    ]


def output(messages: Sequence[Message], name: str) -> str:
    (message,) = [one for one in messages if one.id == name]
    block = message.content[0]
    assert isinstance(block, ToolResultBlock)
    (part,) = block.content
    assert isinstance(part, TextBlock)
    return part.text


def weight(messages: Sequence[Message]) -> float:
    return sum(map(message_weight, messages))


def cut_to(messages: Sequence[Message], room: float) -> list[Message]:
    return trim(messages, weight(messages) - room, room)


HISTORY = [
    said("user", "summary " * 50, "summary", origin="compaction"),
    *turn("a", 4_000),
    *turn("b", 4_000),
    said("user", "prompt c", "c-prompt"),
    *looked_up("c1", 4_000),
    *looked_up("c2", 4_000),
]


def test_what_fits_stays_as_it_is() -> None:
    assert trim(HISTORY, 0, 1_000) == HISTORY
    assert trim(HISTORY, -5, 1_000) == HISTORY


def test_the_oldest_tool_results_go_first_and_say_so() -> None:
    found = cut_to(HISTORY, weight(HISTORY) - 1_200)
    assert [message.id for message in found] == [message.id for message in HISTORY]
    assert output(found, "a1-found") == (
        "[Left out to make room: 4000 characters. It was: Read a1.py. "
        "Call the tool again if you need them.]"
    )
    assert "Left out" in output(found, "a2-found")
    for kept in ("b1-found", "b2-found", "c1-found", "c2-found"):
        assert output(found, kept) == "x" * 4_000


def test_then_old_answers_then_results_of_this_turn_then_what_users_said() -> None:
    stubbed = cut_to(HISTORY, weight(HISTORY) - 3_000)
    assert len(stubbed) == len(HISTORY)
    without_answers = cut_to(HISTORY, 2_700)
    names = {message.id for message in without_answers}
    assert {"summary", "a-prompt", "b-prompt", "c-prompt", "c1-found", "c2-found"} <= names
    assert "a-answer" not in names
    smallest = cut_to(HISTORY, 10)
    assert [message.id for message in smallest] == [
        "summary",
        "c-prompt",
        "c1-call",
        "c1-found",
        "c2-call",
        "c2-found",
    ]
    assert "Left out" in output(smallest, "c1-found")
    assert output(smallest, "c2-found") == "x" * 4_000


def test_a_request_that_grows_a_little_keeps_its_beginning() -> None:
    """Hosts cache by prefix: not every step may change what is left out."""
    room = weight(HISTORY) - 1_500
    starts: list[list[Message]] = []
    grown = list(HISTORY)
    for number in range(8):
        grown += looked_up(f"step{number}", 40)
        starts.append(cut_to(grown, room)[: len(HISTORY) - 2])
    assert sum(one != other for one, other in pairwise(starts)) <= 1


def check_whole(messages: Sequence[Message]) -> None:
    """Calls and results go together, and the first message is the user's."""
    assert messages[0].role == "user"
    assert messages[-1].role != "assistant"
    for position, message in enumerate(messages):
        asked = [one.tool_use_id for one in message.content if isinstance(one, ToolUseBlock)]
        if asked:
            answer = messages[position + 1]
            given_ = [one.tool_use_id for one in answer.content if isinstance(one, ToolResultBlock)]
            assert answer.role == "tool"
            assert given_ == asked
        if message.role == "tool":
            assert messages[position - 1].role == "assistant"


turns = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3_000), st.booleans()), min_size=1, max_size=8
)


@given(turns, st.floats(0, 1), st.booleans())
def test_whatever_is_left_out_the_request_is_whole(  # C10
    drawn: list[tuple[int, int, bool]], share: float, summed_up: bool
) -> None:
    messages: list[Message] = []
    if summed_up:
        messages.append(said("user", "in short", "summary", origin="compaction"))
    for number, (calls, size, answered) in enumerate(drawn):
        messages.append(said("user", "p" * (size + 1), f"{number}-prompt"))
        for call in range(calls):
            messages += looked_up(f"{number}-{call}", size)
        if answered:
            messages.append(said("assistant", "a" * size, f"{number}-answer"))
            messages.append(said("user", "told", f"{number}-told", origin="reminder"))
    messages = normalize_messages_for_api(messages)
    before = weight(messages)
    found = trim(messages, before * share, before * (1 - share))
    check_whole(found)
    assert weight(found) <= before
    order = [message.id for message in messages]
    kept = [message.id for message in found]
    assert kept == [name for name in order if name in set(kept)]
    last = max(at for at, message in enumerate(messages) if message.is_prompt)
    assert {message.id for message in messages[last:]} <= set(kept)
    assert [m.id for m in messages if m.is_summary] == [m.id for m in found if m.is_summary]
    prompts = [message for message in messages if message.role == "user"]
    if any(message not in found for message in prompts):
        old = messages[:last]
        assert not any(
            message.role == "assistant" for message in found[: found.index(messages[last])]
        )
        assert any(message.role == "user" for message in old)


def request(messages: Sequence[Message], wish: int | None = None) -> ModelRequest:
    return ModelRequest("m", "system " * 100, messages, max_tokens=wish)


def test_the_answer_gets_the_room_that_is_left() -> None:
    def sized(wish: int | None, window: int | None) -> int | None:
        found = fit(request(HISTORY, wish), window, lambda one: estimate(one, {}, Rates()))
        assert found.fits
        assert not found.is_trimmed
        return found.request.max_tokens

    size = round(estimate(request(HISTORY), {}, Rates()).tokens * 1.15)
    assert sized(None, None) is None
    assert sized(99, None) == 99
    assert sized(None, 262_144) is None
    assert sized(99, 262_144) == 99
    assert sized(100_000, 50_000) == 50_000 - size
    assert sized(None, 20_000) == 20_000 - size


def test_a_request_is_cut_to_the_window() -> None:
    found = fit(request(HISTORY), 6_000, lambda one: estimate(one, {}, Rates()))
    assert found.is_trimmed
    assert found.is_due
    assert found.fits
    assert found.size.safe <= 6_000 * 0.96
    assert found.request.max_tokens == 6_000 - found.size.safe
    assert found.request.prompt_tokens == found.size.safe
    check_whole(list(found.request.messages))
    hopeless = fit(
        request([said("user", "x" * 60_000)]), 6_000, lambda one: estimate(one, {}, Rates())
    )
    assert not hopeless.fits
    assert hopeless.request.max_tokens == 256


def test_what_is_pinned_stays_when_all_else_goes() -> None:  # F12
    pinned = {"a1-call", "a1-found", "b-prompt"}
    found = trim(HISTORY, weight(HISTORY), 1.0, pinned)
    assert pinned <= {message.id for message in found}
    assert output(found, "a1-found") == "x" * 4_000
    assert "a-prompt" not in {message.id for message in found}
    check_whole(normalize_messages_for_api(found))
