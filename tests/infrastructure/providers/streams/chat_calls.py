"""Tool calls, in every shape that hosts give them, and those that leak into the text."""

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream
from tests.infrastructure.providers.streams.chat_wire import (
    CALLS,
    DONE,
    ONE,
    ROLE,
    STOP,
    TWO,
    called,
    calls,
    chunk,
    piece,
    says,
    stream,
    thinks,
)

TOOLS: dict[str, Stream] = {
    "in fragments": stream(
        called(*ONE),
        ROLE,
        calls(piece(0, "", call="a", name="find")),
        calls(piece(0, '{"x"')),
        calls(piece(0, ":1}")),
        CALLS,
        DONE,
    ),
    "Kimi's own ids stay": stream(
        called(Call("find:0", "find", "{}"), text="I look.", thinking="Hm"),
        thinks("Hm"),
        says("I look."),
        calls(piece(0, "", call="find:0", name="find")),
        calls(piece(0, "{}")),
        CALLS,
        DONE,
        needs_done=True,
    ),
    "whole in the first fragment": stream(
        called(*ONE), calls(piece(0, '{"x":1}', call="a", name="find")), CALLS, DONE
    ),
    "the type is missing": stream(
        called(*ONE),
        calls({"index": 0, "id": "a", "function": {"name": "find", "arguments": '{"x":1}'}}),
        CALLS,
        DONE,
    ),
    "arguments as an object": stream(
        called(Call("a", "find", '{"x": 1}')),
        calls(piece(0, {"x": 1}, call="a", name="find")),
        CALLS,
        DONE,
    ),
    "arguments never come": stream(
        called(Call("a", "find", "")), calls(piece(0, call="a", name="find")), CALLS, DONE
    ),
    "arguments null": stream(
        called(Call("a", "find", "")),
        calls({"index": 0, "id": "a", "function": {"name": "find", "arguments": None}}),
        CALLS,
        DONE,
    ),
    "a raw control character in the arguments": stream(
        called(Call("a", "find", '{"x":"a\tb"}')),
        calls(piece(0, '{"x":"a\tb"}', call="a", name="find")),
        CALLS,
        DONE,
    ),
    "id and name in every fragment": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a", name="find")),
        calls(piece(0, ":1}", call="a", name="find")),
        CALLS,
        DONE,
    ),
    "id empty in later fragments": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a", name="find")),
        calls(piece(0, ":1}", call="", name="")),
        CALLS,
        DONE,
    ),
    "the name comes late": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a")),
        calls(piece(0, ":1}", name="find")),
        CALLS,
        DONE,
    ),
    "the id comes late": stream(
        called(*ONE),
        calls(piece(0, '{"x"', name="find")),
        calls(piece(0, ":1}", call="a")),
        CALLS,
        DONE,
    ),
    "the id never comes": stream(
        called(Call("functions.find:0", "find", '{"x":1}')),
        calls(piece(0, '{"x":1}', name="find")),
        CALLS,
        DONE,
    ),
    "the name never comes": stream(
        Answer("Hi", end="IncompleteAnswer", raw_end=None),
        says("Hi"),
        calls(piece(0, "{}", call="a")),
        CALLS,
        DONE,
    ),
    "two one after the other": stream(
        called(*TWO),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(1, "{}", call="b", name="read")),
        CALLS,
        DONE,
    ),
    "two interleaved": stream(
        called(*TWO),
        calls(piece(0, '{"x"', call="a", name="find"), piece(1, "{", call="b", name="read")),
        calls(piece(0, ":1}"), piece(1, "}")),
        CALLS,
        DONE,
    ),
    "two under one index": stream(
        called(*TWO),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(0, "{}", call="b", name="read")),
        CALLS,
        DONE,
    ),
    "two of one tool under one index": stream(
        called(*ONE, Call("b", "find", "{}")),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(0, "{}", call="b", name="find")),
        CALLS,
        DONE,
    ),
    "the index is missing, each entry a call": stream(
        called(*TWO),
        calls(
            piece(None, '{"x":1}', call="a", name="find"),
            piece(None, "{}", call="b", name="read"),
        ),
        CALLS,
        DONE,
    ),
    "the index is missing in fragments": stream(
        called(*ONE),
        calls(piece(None, '{"x"', call="a", name="find")),
        calls(piece(None, ":1}")),
        CALLS,
        DONE,
    ),
    "indexes from 1": stream(
        called(*ONE), calls(piece(1, '{"x":1}', call="a", name="find")), CALLS, DONE
    ),
    "the index as text": stream(
        called(*ONE),
        calls({**piece(None, '{"x":1}', call="a", name="find"), "index": "0"}),
        CALLS,
        DONE,
    ),
    "finish stop beside calls": stream(
        called(*ONE, raw_end="stop"),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        STOP,
        DONE,
    ),
    "finish length beside calls": stream(
        called(Call("a", "find", '{"x"'), end="length", raw_end="length"),
        calls(piece(0, '{"x"', call="a", name="find")),
        chunk(finish="length"),
        DONE,
    ),
    "no finish reason, but the end mark": stream(
        called(*ONE, raw_end=None), calls(piece(0, '{"x":1}', call="a", name="find")), DONE
    ),
    "the stream breaks off": stream(
        called(Call("a", "find", '{"x"'), end="incomplete", raw_end=None),
        calls(piece(0, '{"x"', call="a", name="find")),
    ),
    "the arguments are no object": stream(
        called(Call("a", "find", "[1]")),
        calls(piece(0, "[1]", call="a", name="find")),
        CALLS,
        DONE,
    ),
}

OFFERED = frozenset({"find", "read"})


def marked(*given: tuple[str, str], begin: str = "<|tool_calls_section_begin|>") -> str:
    found = (
        f"<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{args}<|tool_call_end|>"
        for n, (name, args) in enumerate(given)
    )
    return f"{begin}{''.join(found)}<|tool_calls_section_end|>"


LEAKED_ONE = called(Call("functions.find:0", "find", '{"x":1}'), text="I look. ", raw_end="stop")
ONE_MARKED = "I look. " + marked(("find", '{"x":1}'))

LEAKS: dict[str, Stream] = {
    "in the text": stream(LEAKED_ONE, says(ONE_MARKED), STOP, DONE, tools=OFFERED),
    "in the text, letter by letter": stream(
        LEAKED_ONE, *map(says, ONE_MARKED), STOP, DONE, tools=OFFERED
    ),
    "in the reasoning": stream(
        called(Call("functions.find:0", "find", "{}"), thinking="Hm. ", raw_end="stop"),
        thinks("Hm. "),
        thinks(marked(("find", "{}"))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "in the reasoning, letter by letter": stream(
        called(Call("functions.find:0", "find", "{}"), raw_end="stop"),
        thinks(""),
        *map(thinks, marked(("find", "{}"))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "two of them": stream(
        called(
            Call("functions.find:0", "find", "{}"),
            Call("functions.read:1", "read", '{"p": "<|x|>"}'),
            raw_end="stop",
        ),
        says(marked(("find", "{}"), ("read", '{"p": "<|x|>"}'))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "what only looks like a marker": stream(
        Answer("a < b <|tool_box|> <"),
        *map(says, "a < b <|tool_box|> <"),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "the start of a marker before a call": stream(
        called(*ONE, text="a <"),
        says("a <"),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        CALLS,
        DONE,
        tools=OFFERED,
    ),
    "the start of a marker in the reasoning": stream(
        Answer("Hi", "a <|tool"), thinks("a <|tool"), says("Hi"), STOP, DONE, tools=OFFERED
    ),
    "a tool that is not on offer": stream(
        Answer(marked(("rm_rf", "{}"))), says(marked(("rm_rf", "{}"))), STOP, DONE, tools=OFFERED
    ),
    "cut off": stream(
        Answer(ONE_MARKED[:70], end="incomplete", raw_end=None),
        says(ONE_MARKED[:70]),
        tools=OFFERED,
    ),
}
