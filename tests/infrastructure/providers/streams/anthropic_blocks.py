"""Text, thinking and tool calls, in every shape that they come in."""

from tests.infrastructure.providers.streams.answer import Call, Stream
from tests.infrastructure.providers.streams.anthropic_wire import (
    FOUND,
    HI,
    PING,
    called,
    closed,
    ending,
    grown,
    opened,
    said,
    start,
    stream,
    text,
    thinking,
    tool,
)

BLOCKS: dict[str, Stream] = {
    "text": stream(said(), start(), *HI, *ending()),
    "pings anywhere": stream(
        said(), PING, start(), PING, HI[0], PING, *HI[1:], PING, *ending(), PING
    ),
    "text in the start of its block": stream(
        said(),
        start(),
        opened(0, "text", text="Hel"),
        grown(0, "text_delta", text="lo"),
        closed(0),
        *ending(),
    ),
    "two text blocks": stream(said(), start(), *text(0, "Hel"), *text(1, "lo"), *ending()),
    "citations beside the text": stream(
        said(),
        start(),
        *HI[:2],
        grown(0, "citations_delta", citation={"type": "char_location", "cited_text": "x"}),
        *HI[2:],
        *ending(),
    ),
    "thinking with its seal": stream(
        said(thinking="Let me", sealed=("s1",)),
        start(),
        *thinking(0, "Let ", "me", signature="s1"),
        *text(1, "Hello"),
        *ending(),
    ),
    "thinking that is not shown": stream(
        said(sealed=("s1",)), start(), *thinking(0, signature="s1"), *text(1, "Hello"), *ending()
    ),
    "two thinking blocks": stream(
        said(thinking="ab", sealed=("s1", "s2")),
        start(),
        *thinking(0, "a", signature="s1"),
        *thinking(1, "b", signature="s2"),
        *text(2, "Hello"),
        *ending(),
    ),
    "thinking without a seal": stream(
        said(thinking="Hm", sealed=("",)),
        start(),
        opened(0, "thinking", thinking=""),
        grown(0, "thinking_delta", thinking="Hm"),
        closed(0),
        *text(1, "Hello"),
        *ending(),
    ),
    "redacted thinking": stream(
        said(thinking="Hm", sealed=("s1", "hidden")),
        start(),
        *thinking(0, "Hm", signature="s1"),
        opened(1, "redacted_thinking", data="hidden"),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "blocks we do not know": stream(
        said(),
        start(),
        opened(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        grown(0, "input_json_delta", partial_json='{"query": "x"}'),
        closed(0),
        opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "blocks of the future": stream(
        said(),
        start(),
        opened(0, "hologram", text={"not": "a text"}),
        grown(0, "hologram_delta", text=["nor", "this"]),
        closed(0),
        *text(1, "Hello"),
        *ending(),
    ),
    "compaction and fallback": stream(
        said(),
        start(),
        opened(0, "compaction", content=None),
        grown(0, "compaction_delta", content="a summary"),
        closed(0),
        opened(1, "fallback", **{"from": {"model": "a"}, "to": {"model": "b"}}),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "events we do not know": stream(
        said(),
        start(),
        {"type": "weather", "delta": "sunny", "index": "x", "message": [1]},
        *HI,
        *ending(),
    ),
    "the stop of a block is missing": stream(
        said(thinking="Hm", sealed=("s1",)),
        start(),
        *thinking(0, "Hm", signature="s1")[:-1],
        *text(1, "Hello")[:-1],
        *ending(),
    ),
    "the start of a block is missing": stream(said(), start(), *HI[1:], *ending()),
    "indexes are missing": stream(
        said(),
        start(),
        *({key: value for key, value in event.items() if key != "index"} for event in HI),
        *ending(),
    ),
}

TOOLS: dict[str, Stream] = {
    "in fragments": stream(
        called(FOUND), start(), *tool(0, "", '{"x"', ": 1}"), *ending("tool_use")
    ),
    "no input at all": stream(
        called(Call("toolu_1", "find", "")), start(), *tool(0), *ending("tool_use")
    ),
    "only empty input": stream(
        called(Call("toolu_1", "find", "")), start(), *tool(0, "", ""), *ending("tool_use")
    ),
    "input whole in the start": stream(
        called(FOUND),
        start(),
        opened(0, "tool_use", id="toolu_1", name="find", input={"x": 1}),
        closed(0),
        *ending("tool_use"),
    ),
    "input in the start and in fragments": stream(
        called(FOUND),
        start(),
        opened(0, "tool_use", id="toolu_1", name="find", input={"x": 2}),
        grown(0, "input_json_delta", partial_json='{"x": 1}'),
        closed(0),
        *ending("tool_use"),
    ),
    "after text and thinking": stream(
        called(FOUND, text="I look.", thinking="Hm", sealed=("s1",)),
        start(),
        *thinking(0, "Hm", signature="s1"),
        *text(1, "I look."),
        *tool(2, '{"x": 1}'),
        *ending("tool_use"),
    ),
    "two in parallel": stream(
        called(FOUND, Call("toolu_2", "read", "{}")),
        start(),
        *tool(0, '{"x": 1}'),
        *tool(1, "{}", call="toolu_2", name="read"),
        *ending("tool_use"),
    ),
    "another id form": stream(
        called(Call("find:0", "find", "{}")),
        start(),
        *tool(0, "{}", call="find:0"),
        *ending("tool_use"),
    ),
    "no id": stream(
        called(Call("toolu_0", "find", "{}")),
        start(),
        *tool(0, "{}", call=""),
        *ending("tool_use"),
    ),
    "no name": stream(
        said("Hello", usage=(3, 5, 0), end="IncompleteAnswer", raw_end=None),
        start(),
        *HI,
        *tool(1, "{}", name=""),
        *ending("tool_use"),
    ),
    "end_turn beside calls": stream(
        called(FOUND, raw_end="end_turn"), start(), *tool(0, '{"x": 1}'), *ending()
    ),
    "max_tokens in the middle of a call": stream(
        called(Call("toolu_1", "find", '{"x"'), end="length", raw_end="max_tokens"),
        start(),
        *tool(0, '{"x"'),
        *ending("max_tokens"),
    ),
    "broken off in a call": stream(
        called(Call("toolu_1", "find", '{"x"'), end="incomplete", raw_end=None, usage=(3, 1, 0)),
        start(),
        *tool(0, '{"x"')[:-1],
    ),
    "leaked into the text": stream(
        called(Call("functions.find:0", "find", "{}"), raw_end="end_turn"),
        start(),
        *text(
            0,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argu",
            "ment_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        ),
        *ending(),
        tools=frozenset({"find"}),
    ),
}
