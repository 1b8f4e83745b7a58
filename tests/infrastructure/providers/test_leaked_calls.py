"""Tool calls in the text of an answer, as models write them."""

import json
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.infrastructure.providers.answer_events import LeakedCallScanner
from kode_sidecar.infrastructure.providers.event_decoder import AnswerContext
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder

TOOLS = frozenset({"read_file", "list_files"})


def call(
    name: str = "read_file", args: str = '{"path": "a"}', end: str = "<|tool_call_end|>"
) -> str:
    return f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{args}{end}"


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


READ = ("functions.read_file:0", "read_file", '{"path": "a"}')

CASES: dict[str, tuple[str, str, list[tuple[str, str, str]]]] = {
    "plain text": ("a < b, <|x|> and <", "a < b, <|x|> and <", []),
    "one call": ("Look: " + section(call()), "Look: ", [READ]),
    "two calls": (
        section(call(), call("list_files", "{}")),
        "",
        [READ, ("functions.list_files:0", "list_files", "{}")],
    ),
    "white space around the id": (
        section(
            "<|tool_call_begin|> functions.read_file:12 <|tool_call_argument_begin|>{}"
            "<|tool_call_end|>"
        ),
        "",
        [("functions.read_file:12", "read_file", "{}")],
    ),
    "no section": (call(), "", [READ]),
    "text after the section": (section(call()) + " Done.", "Done.", [READ]),
    "section without end": ("<|tool_calls_section_begin|>" + call(), "", [READ]),
    "call without end, but whole": (
        "<|tool_calls_section_begin|>" + call(end=""),
        "",
        [READ],
    ),
    "call cut off": (
        "Look: <|tool_calls_section_begin|>" + call(args='{"pa', end=""),
        "Look: <|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0"
        '<|tool_call_argument_begin|>{"pa',
        [],
    ),
    "one call whole, one cut off": (
        section(call()) + "<|tool_call_begin|>functions.re",
        section(call()) + "<|tool_call_begin|>functions.re",
        [],
    ),
    "a tool that is not on offer": (
        section(call("rm_rf")),
        section(call("rm_rf")),
        [],
    ),
    "marker cut off": ("Hi <|tool_calls_sec", "Hi <|tool_calls_sec", []),
}


def scan(pieces: list[str]) -> tuple[str, list[tuple[str, str, str]]]:
    scanner = LeakedCallScanner(TOOLS)
    passed = "".join(scanner.feed(piece) for piece in pieces)
    calls, rest = scanner.finish(take_calls=True)
    return passed + rest, [tuple(call) for call in calls]  # type: ignore[misc]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_whole_and_letter_by_letter(case: tuple[str, str, list[tuple[str, str, str]]]) -> None:
    text, shown, calls = case
    assert scan([text]) == (shown, calls)
    assert scan(list(text)) == (shown, calls)


@given(st.sampled_from(list(CASES.values())), st.lists(st.integers(0, 200)))
def test_any_cut(case: tuple[str, str, list[tuple[str, str, str]]], cuts: list[int]) -> None:
    text, shown, calls = case
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert scan(pieces) == (shown, calls)


def test_text_is_not_held_back_longer_than_needed() -> None:
    scanner = LeakedCallScanner(TOOLS)
    assert scanner.feed("if a <") == "if a "
    assert scanner.feed("= b: <|tool") == "<= b: "
    assert scanner.feed("box|>") == "<|toolbox|>"


def answer(*deltas: Mapping[str, object], tools: frozenset[str] = TOOLS) -> list[ModelEvent]:
    found: list[ModelEvent] = []
    decoder = ChatDecoder(AnswerContext(tool_names=tools))
    for fields in deltas:
        found += decoder.feed_many((json.dumps({"choices": [{"delta": fields}]}).encode(),))
    found += decoder.feed_many((b'{"choices":[{"delta":{},"finish_reason":"stop"}]}',))
    found += decoder.feed_many((b"[DONE]",))
    return found + decoder.finish()


def test_a_leak_becomes_a_call() -> None:
    assert answer({"content": "Look: " + section(call())}) == [
        ResponseStarted(None, None),
        TextDelta("Look: "),
        ToolUseStarted(0, "functions.read_file:0", "read_file"),
        ToolUseDelta(0, '{"path": "a"}'),
        ResponseFinished("tool_calls", "stop"),
    ]


def test_a_leak_in_the_reasoning_is_no_empty_answer() -> None:
    assert answer({"reasoning_content": "Hm. " + section(call(args="{}"))}) == [
        ResponseStarted(None, None),
        ThinkingDelta("Hm. "),
        ToolUseStarted(0, "functions.read_file:0", "read_file"),
        ToolUseDelta(0, "{}"),
        ResponseFinished("tool_calls", "stop"),
    ]


def test_beside_real_calls_a_leak_is_text() -> None:
    real = {"index": 0, "id": "a", "function": {"name": "list_files", "arguments": "{}"}}
    found = answer({"content": section(call())}, {"tool_calls": [real]})
    assert [event for event in found if isinstance(event, ToolUseStarted)] == [
        ToolUseStarted(0, "a", "list_files")
    ]
    assert TextDelta(section(call())) in found


def test_without_tools_nothing_is_held_back() -> None:
    found = answer({"content": section(call())}, tools=frozenset())
    assert TextDelta(section(call())) in found


DSML = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"
DEEPSEEK_OLD = (
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
    '```json\n{"path": "a"}\n```<｜tool▁call▁end｜>'
)
DEEPSEEK_NEW = '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
ALSO = ("functions.list_files:1", "list_files", '{"depth": 2, "under": "a b"}')

OTHERS: dict[str, tuple[str, str, list[tuple[str, str, str]]]] = {
    "qwen": (
        'Look:\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
        "Look:\n",
        [READ],
    ),
    "qwen coder, two calls": (
        "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n"
        "</tool_call>\n<tool_call>\n<function=list_files>\n<parameter=depth>\n2\n</parameter>\n"
        "<parameter=under>\na b\n</parameter>\n</function>\n</tool_call>",
        "",
        [READ, ALSO],
    ),
    "glm": (
        "\n<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>\n",
        "\n",
        [READ],
    ),
    "deepseek": ("Hm. " + DSML.format(DEEPSEEK_NEW), "Hm. ", [READ]),
    "deepseek with a fence": (DSML.format(DEEPSEEK_OLD), "", [READ]),
    "mistral, a list": (
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a"}}]',
        "",
        [READ],
    ),
    "mistral, by name": (
        '[TOOL_CALLS]read_file[ARGS]{"path": "a"}[TOOL_CALLS]list_files[ARGS]'
        '{"depth": 2, "under": "a b"}',
        "",
        [READ, ALSO],
    ),
    "gpt-oss": (
        "Hm. <|channel|>commentary to=functions.read_file <|constrain|>json<|message|>"
        '{"path": "a"}<|call|>',
        "Hm. ",
        [READ],
    ),
    "gpt-oss, the receiver first": (
        "<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>"
        '{"path": "a"}',
        "",
        [READ],
    ),
    "gpt-oss, its marks not printed": (
        'So:\ncommentary to=functions.read_file json{"path": "a"}',
        "So:\n",
        [READ],
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n'
        "</invoke>\n</minimax:tool_call>",
        "",
        [READ],
    ),
    "function_calls": (
        'Look:\n<function_calls>\n<invoke name="read_file">\n'
        '<parameter name="path">a</parameter>\n</invoke>\n<invoke name="list_files">\n'
        '<parameter name="depth">2</parameter>\n<parameter name="under">a b</parameter>\n'
        "</invoke>\n</function_calls>",
        "Look:\n",
        [READ, ALSO],
    ),
    "invoke without a frame": (
        '<invoke name="read_file"><parameter name="path">a</parameter></invoke>',
        "",
        [READ],
    ),
    "deepseek 3.2, a text that looks like a number": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter '
        'name="path" string="true">12</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        "",
        [("functions.read_file:0", "read_file", '{"path": "12"}')],
    ),
    "kimi without its head line": (
        section(
            '<|tool_call_begin|>{"name": "read_file", "arguments": {"path": "a"}}<|tool_call_end|>'
        ),
        "",
        [READ],
    ),
    "kimi without the mark of arguments": (
        section('<|tool_call_begin|>functions.read_file:0 {"path": "a"}<|tool_call_end|>'),
        "",
        [READ],
    ),
    "gpt-oss, cut off": (
        '<|channel|>commentary to=functions.read_file <|message|>{"pa',
        '<|channel|>commentary to=functions.read_file <|message|>{"pa',
        [],
    ),
    "gpt-oss, a tool of its own host": (
        '<|channel|>commentary to=browser.open <|message|>{"id": 1}<|call|>',
        '<|channel|>commentary to=browser.open <|message|>{"id": 1}<|call|>',
        [],
    ),
    "words in front of the same words": (
        'It writes commentary to=functions.read_file json{"path": "a"}',
        'It writes commentary to=functions.read_file json{"path": "a"}',
        [],
    ),
    "an invoked example, and words after it": (
        '<invoke name="read_file"><parameter name="path">a</parameter></invoke> is XML.',
        '<invoke name="read_file"><parameter name="path">a</parameter></invoke> is XML.',
        [],
    ),
    "written about": (
        "Qwen writes <tool_call>{} and then </tool_call>, Mistral a list: [TOOL_CALLS].",
        "Qwen writes <tool_call>{} and then </tool_call>, Mistral a list: [TOOL_CALLS].",
        [],
    ),
    "an example, and words after it": (
        '<tool_call>{"name": "read_file", "arguments": {}}</tool_call>\nis what it writes.',
        '<tool_call>{"name": "read_file", "arguments": {}}</tool_call>\nis what it writes.',
        [],
    ),
    "cut off": (
        '<tool_call>\n{"name": "read_file", "argum',
        '<tool_call>\n{"name": "read_file", "argum',
        [],
    ),
    "broken JSON": (
        DSML.format(DEEPSEEK_NEW.replace("}", "")),
        DSML.format(DEEPSEEK_NEW.replace("}", "")),
        [],
    ),
    "nobody's tool": (
        '[TOOL_CALLS][{"name": "rm_rf", "arguments": {}}]',
        '[TOOL_CALLS][{"name": "rm_rf", "arguments": {}}]',
        [],
    ),
    "lists and comparisons": ("x[0] < y[TOOL] <tool", "x[0] < y[TOOL] <tool", []),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=list(OTHERS))
def test_calls_as_other_models_write_them(
    case: tuple[str, str, list[tuple[str, str, str]]],
) -> None:
    text, shown, calls = case
    assert scan([text]) == (shown, calls)
    assert scan(list(text)) == (shown, calls)


@given(st.sampled_from(list(OTHERS.values())), st.lists(st.integers(0, 200)))
def test_any_cut_of_theirs(
    case: tuple[str, str, list[tuple[str, str, str]]], cuts: list[int]
) -> None:
    text, shown, calls = case
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    assert scan([text[a:b] for a, b in pairwise(edges)]) == (shown, calls)


STRAYS = {
    "at the beginning": ("</think>\n\nHello", "Hello"),
    "on its own line": ("It is so.\n</think>\n\nHello", "It is so.\nHello"),
    "at the very end": ("It is so.\n</think>", "It is so.\n"),
    "in a sentence": ("Models write </think> there.\n", "Models write </think> there.\n"),
    "once": ("</think>\nA\n</think>\nB", "A\n</think>\nB"),
    "something else": ("a\n</thing>\n<b>", "a\n</thing>\n<b>"),
    "cut off": ("a\n</thi", "a\n</thi"),
}


@pytest.mark.parametrize("case", STRAYS.values(), ids=list(STRAYS))
def test_an_end_of_thought_that_nothing_began_is_taken_out(case: tuple[str, str]) -> None:
    text, shown = case
    for pieces in ([text], list(text)):
        found = answer(*({"content": piece} for piece in pieces))
        assert "".join(one.text for one in found if isinstance(one, TextDelta)) == shown


CHANNELS = {
    "thought and answer": (
        "<|channel|>analysis<|message|>A sum.<|end|><|start|>assistant<|channel|>final<|message|>"
        "Four.<|return|>",
        "A sum.",
        "Four.",
    ),
    "an answer only": ("<|channel|>final<|message|>Four < five.", "", "Four < five."),
    "said before a call, without one": (
        "\n<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>",
        "",
        "I look.",
    ),
    "marks not printed": ("analysisWe need a sum.assistantfinalFour.", "We need a sum.", "Four."),
    "a text that begins like a thought": ("analysisWe is no word.", "", "analysisWe is no word."),
    "a text that begins with a word": ("analysis of it", "", "analysis of it"),
    "a header that never ends": ("<|channel|>of the river", "", "<|channel|>of the river"),
}


@pytest.mark.parametrize("case", CHANNELS.values(), ids=list(CHANNELS))
@pytest.mark.parametrize("tools", [TOOLS, frozenset[str]()], ids=["tools", "no tools"])
def test_the_channels_of_gpt_oss(case: tuple[str, str, str], tools: frozenset[str]) -> None:
    text, thought, shown = case
    for pieces in ([text], list(text)):
        found = answer(*({"content": piece} for piece in pieces), tools=tools)
        assert "".join(one.text for one in found if isinstance(one, ThinkingDelta)) == thought
        assert "".join(one.text for one in found if isinstance(one, TextDelta)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>analysis<|message|>I read.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.read_file <|constrain|>json<|message|>{"path": "a"}<|call|>',
        'analysisI read.assistantcommentary to=functions.read_file json{"path": "a"}',
    ],
    ids=["marks", "no marks"],
)
def test_a_call_after_a_thought_of_gpt_oss(text: str) -> None:
    for pieces in ([text], list(text)):
        found = answer(*({"content": piece} for piece in pieces))
        thought = [one.text for one in found if isinstance(one, ThinkingDelta)]
        assert "".join(thought) == "I read."
        assert ToolUseStarted(0, "functions.read_file:0", "read_file") in found
        assert ToolUseDelta(0, '{"path": "a"}') in found
        assert not [one for one in found if isinstance(one, TextDelta)]
