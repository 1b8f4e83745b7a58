"""What the model gets of a conversation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.builder import (
    PromptContext,
    cut_window,
    normalize_messages_for_api,
)
from kode_sidecar.core.domain.message import (
    Block,
    Message,
    ResourceBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import Sampling, ToolSpec

# Few and small, so that calls and results often meet.
BLOCKS: list[Block] = [
    TextBlock(text="hello"),
    TextBlock(text=" \n"),
    ThinkingBlock(text="hm"),
    ResourceBlock(uri="file:///a"),
    *(ToolUseBlock(tool_use_id=name, name="read_file") for name in "ab"),
    *(ToolResultBlock(tool_use_id=name) for name in "abc"),
]
messages = st.builds(
    Message,
    id=st.just("m"),
    session_id=st.just("s"),
    role=st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool"]),
    content=st.lists(st.sampled_from(BLOCKS), max_size=4).map(tuple),
    is_api_error_message=st.sampled_from([False, False, False, True]),
)


def said(role: Role, *content: Block | str, name: str = "") -> Message:
    blocks = tuple(TextBlock(text=item) if isinstance(item, str) else item for item in content)
    return Message(id=name, session_id="s", role=role, content=blocks)


def call(tool_use_id: str) -> ToolUseBlock:
    return ToolUseBlock(tool_use_id=tool_use_id, name="read_file")


def result(tool_use_id: str, text: str = "out") -> ToolResultBlock:
    return ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),))


def shape(found: Sequence[Message]) -> list[tuple[str, ...]]:
    """Role and blocks of each message, short enough to compare at a glance."""
    return [(message.role, *map(_short, message.content)) for message in found]


def _short(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ToolUseBlock(tool_use_id=tool_use_id):
            return f"call {tool_use_id}"
        case ToolResultBlock(tool_use_id=tool_use_id, status=status):
            return f"{status} {tool_use_id}"
        case _:
            return type(block).__name__


def check_valid(found: Sequence[Message]) -> None:
    """Kimi's rules for a request's messages, and those of stricter hosts."""
    dialogue = [message for message in found if message.role != "system"]
    assert not dialogue or dialogue[0].role == "user"
    assert not found or found[-1].role != "assistant"
    for before, message in zip([None, *found], found, strict=False):
        assert not message.is_api_error_message
        assert message.content
        assert not any(isinstance(b, TextBlock) and not b.text.strip() for b in message.content)
        asked = _calls(before) if before is not None else []
        answered = [b.tool_use_id for b in message.content if isinstance(b, ToolResultBlock)]
        assert answered == asked
        assert (message.role == "tool") == bool(asked)
        if message.role == "assistant":
            assert before is None or before.role != "assistant"
            assert any(isinstance(b, TextBlock | ToolUseBlock) for b in message.content)
        else:
            assert not _calls(message)


def _calls(message: Message) -> list[str]:
    return [block.tool_use_id for block in message.content if isinstance(block, ToolUseBlock)]


@given(st.lists(messages, max_size=12))
def test_any_sequence_becomes_valid(stored: list[Message]) -> None:  # C9
    before = msgspec.json.encode(stored)
    found = normalize_messages_for_api(stored)
    check_valid(found)
    assert msgspec.json.encode(stored) == before
    assert normalize_messages_for_api(found) == found
    kept = Counter(
        block.text
        for message in stored
        if message.role == "user" and not message.is_api_error_message
        for block in message.content
        if isinstance(block, TextBlock) and block.text.strip()
    )
    there = Counter(
        block.text for message in found for block in message.content if isinstance(block, TextBlock)
    )
    assert kept <= there


@given(st.lists(messages, max_size=12), st.none() | st.integers(0, 14))
def test_any_window_becomes_valid_and_holds_the_newest(  # A5
    path: list[Message], limit: int | None
) -> None:
    window = cut_window(path, limit)
    assert window == path[len(path) - len(window) :]
    assert not window or window[0].role != "tool"
    if limit is not None:
        missing = path[max(0, len(path) - limit) : len(path) - len(window)]
        assert all(message.role == "tool" for message in missing)
    check_valid(normalize_messages_for_api(window))


def test_a_healthy_history_stays_as_it_is() -> None:
    resource = ResourceBlock(uri="file:///a.py", text="x = 1")
    history = [
        said("user", "hi", resource, name="1"),
        said("assistant", ThinkingBlock(text=""), "look", call("a"), call("b"), name="2"),
        said("tool", result("a"), result("b"), name="3"),
        said("user", "reminder", name="4"),
        said("assistant", "done", name="5"),
        said("user", "more", name="6"),
    ]
    assert normalize_messages_for_api(history) == history


def test_errors_and_empty_messages_are_dropped() -> None:  # C8 C9
    error = replace_error(said("assistant", "The provider failed"))
    history = [
        said("user", "hi"),
        error,
        said("user"),
        said("assistant", ThinkingBlock(text="hm")),
        said("assistant", " \n"),
        said("user", "again", " "),
    ]
    assert shape(normalize_messages_for_api(history)) == [("user", "hi"), ("user", "again")]


def replace_error(message: Message) -> Message:
    return msgspec.structs.replace(message, is_api_error_message=True)


def test_unanswered_calls_get_a_result_in_call_order() -> None:  # C9 W10
    history = [
        said("user", "hi"),
        said("assistant", call("a"), call("b"), call("c")),
        said("tool", result("c"), result("x"), name="t1"),
        said("user", "wait"),
        said("tool", result("a", "late"), name="t2"),
        said("assistant", call("a")),
    ]
    found = normalize_messages_for_api(history)
    assert shape(found) == [
        ("user", "hi"),
        ("assistant", "call a", "call b", "call c"),
        ("tool", "ok a", "cancelled b", "ok c"),
        ("user", "wait"),
        ("assistant", "call a"),
        ("tool", "cancelled a"),
    ]
    assert found[2].id == "t1"
    made_up = found[2].content[1]
    assert isinstance(made_up, ToolResultBlock)
    assert made_up.is_error


def test_ids_that_repeat_belong_to_the_answer_before_them() -> None:
    """Hosts count calls anew in each answer, so an id alone names no call."""
    history = [
        said("user", "hi"),
        said("assistant", call("f:0")),
        said("tool", result("f:0", "one")),
        said("assistant", call("f:0"), call("f:0")),
        said("tool", result("f:0", "two"), result("f:0", "three")),
        said("user", "go"),
    ]
    assert normalize_messages_for_api(history) == history


def test_neighbouring_tool_messages_become_one() -> None:  # C9
    history = [
        said("user", "hi"),
        said("assistant", call("a"), call("b")),
        said("tool", result("b")),
        said("tool", result("a")),
    ]
    assert shape(normalize_messages_for_api(history))[2:] == [("tool", "ok a", "ok b")]


def test_a_history_that_begins_or_ends_with_an_answer_gets_a_note() -> None:
    found = normalize_messages_for_api([said("assistant", "one"), said("assistant", "two")])
    assert [message.role for message in found] == ["user", "assistant"] * 2 + ["user"]
    assert "left out" in _short(found[0].content[0])


def test_the_window_holds_the_most_recent_messages_of_any_role() -> None:  # A5
    path = [said("user" if n % 2 == 0 else "assistant", str(n)) for n in range(50)]
    assert cut_window(path, 20) == path[30:]
    assert cut_window(path, None) == path
    assert cut_window(path, 99) == path
    assert cut_window(path, 0) == []


def test_the_window_never_tears_a_call_from_its_results() -> None:  # A5
    path = [
        said("user", "hi"),
        said("assistant", call("a"), call("b")),
        said("tool", result("a")),
        said("user", "reminder"),
        said("tool", result("b")),
    ]
    for limit in (1, 2, 3):
        assert cut_window(path, limit) == path[1:]
    assert cut_window(path, 5) == path
    assert cut_window(path[2:], 3) == path[3:]
    assert cut_window(path[2:], 1) == []


def test_a_request_holds_the_window_and_the_turn() -> None:  # A5
    window = [said("user", "old"), said("assistant", "answer")]
    context = PromptContext(session_id="s", model="ide-chat", system="be good")
    spec = ToolSpec("read_file", "", {})
    prompt = said("user", "new")
    first = context.request([*window, prompt], [spec], "auto")
    assert first.messages == [*window, prompt]
    assert (first.model, first.system, first.cache_key) == ("ide-chat", "be good", "s")
    assert (first.tools, first.tool_choice) == ([spec], "auto")
    step = [*window, prompt, said("assistant", call("a")), said("tool", result("a"))]
    second = replace(context, sampling=Sampling(None)).request(step, [spec], "none")
    assert second.messages[: len(first.messages)] == first.messages
    assert (second.tools, second.tool_choice, second.sampling.temperature) == ([spec], "none", None)
