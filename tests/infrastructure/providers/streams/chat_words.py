"""Text and reasoning, in every shape that hosts give them."""

import json

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream
from tests.infrastructure.providers.streams.chat_wire import (
    CALLS,
    DONE,
    ROLE,
    STOP,
    calls,
    chunk,
    piece,
    says,
    stream,
    thinks,
)

TEXT: dict[str, Stream] = {
    "plain": stream(Answer("Hello world"), ROLE, says("Hello "), says("world"), STOP, DONE),
    "white space deltas count": stream(
        Answer("a \n b"), says("a"), says(" "), says("\n"), says(" b"), STOP, DONE
    ),
    "newlines before the answer": stream(Answer("\n\nHi"), says("\n\n"), says("Hi"), STOP, DONE),
    "first chunk all empty": stream(
        Answer("Hi"),
        {**chunk(), "id": "", "model": "", "choices": [], "prompt_filter_results": [{}]},
        says("Hi"),
        STOP,
        DONE,
    ),
    "choices null": stream(Answer("Hi"), {**chunk(), "choices": None}, says("Hi"), STOP, DONE),
    "choices absent": stream(Answer("Hi"), {"id": "c1"}, says("Hi"), STOP, DONE),
    "finish_reason absent": stream(
        Answer("Hi"),
        {**chunk(), "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        STOP,
        DONE,
    ),
    "delta null": stream(
        Answer("Hi"),
        says("Hi"),
        {**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        STOP,
        DONE,
    ),
    "content null": stream(Answer("Hi"), says(None), says("Hi"), STOP, DONE),
    "tool_calls null and empty": stream(
        Answer("Hi"),
        chunk({"content": "Hi", "tool_calls": None}),
        chunk({"tool_calls": []}),
        STOP,
        DONE,
    ),
    "content as a list of parts": stream(
        Answer("Hi you", "Hm so"),
        says([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm so"}]}]),
        says([{"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": [1]}]),
        says(" you"),
        STOP,
        DONE,
    ),
    "thinking part with a plain text": stream(
        Answer("Hi", "Hm"),
        says([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}]),
        STOP,
        DONE,
    ),
    "a refusal": stream(Answer("I can't."), chunk({"refusal": "I can't."}), STOP, DONE),
    "ids as numbers": stream(Answer("Hi"), says("Hi", id=7), chunk(finish="stop", id=7), DONE),
    "a new id for each chunk": stream(
        Answer("Hi you"),
        says("Hi", id="1"),
        says(" you", id="2"),
        chunk(finish="stop", id="3"),
        DONE,
    ),
    "a character cut in two": stream(
        Answer("a🎉b\ufffdc"),
        json.dumps(says("a\ud83c")),
        json.dumps(says("\udf89b")),
        json.dumps(says("\udf89c")),
        STOP,
        DONE,
    ),
    "half a character at the end": stream(
        Answer("a\ufffd"), json.dumps(says("a\ud83c")), STOP, DONE
    ),
    "half a character before a call": stream(
        Answer("a\ufffd", calls=(Call("a", "find", "{}"),), end="tool_calls", raw_end="tool_calls"),
        json.dumps(says("a\ud83c")),
        calls(piece(0, "{}", call="a", name="find")),
        CALLS,
        DONE,
    ),
    "a raw control character": stream(
        Answer("a\tb"), json.dumps(says("a-b")).replace("-b", "\tb"), STOP, DONE
    ),
    "bytes that are not UTF-8": stream(
        Answer("a\ufffdb", notices=("StreamDamaged",)),
        json.dumps(says("a-b")).encode().replace(b"-b", b"\xffb"),
        STOP,
        DONE,
    ),
    "NaN beside the text": stream(
        Answer("Hi"), json.dumps(says("Hi", score=float("nan"))), STOP, DONE
    ),
    "one bad event": stream(
        Answer("ab", notices=("StreamDamaged",)),
        says("a"),
        b'{"id":"c1","choi{"id":"c1"',
        says("b"),
        STOP,
        DONE,
    ),
    "an event with the next one glued to it": stream(
        Answer("ac", notices=("StreamDamaged",)),
        says("a"),
        json.dumps(says("b"))[:-9].encode() + b"data: " + json.dumps(says("b")).encode(),
        says("c"),
        STOP,
        DONE,
    ),
    "two bad events apart": stream(
        Answer("ab", notices=("StreamDamaged",)), says("a"), b"{", says("b"), b"[1", STOP, DONE
    ),
    "two bad events in a row": stream(
        Answer("a", end="incomplete", raw_end=None), says("a"), b"{", b"}", says("b"), STOP, DONE
    ),
    "a second completion glued to the first": stream(
        Answer("Hi"),
        ROLE,
        says("Hi"),
        STOP,
        chunk({"role": "assistant", "content": ""}, id="c2"),
        says("ghost", id="c2"),
        chunk(finish="length", id="c2"),
        DONE,
    ),
    "the answer begins anew in the middle": stream(
        Answer("Hello", drops=1),
        ROLE,
        says("Hel"),
        chunk({"role": "assistant", "content": ""}, id="c2"),
        says("Hello", id="c2"),
        chunk(finish="stop", id="c2"),
        DONE,
    ),
}

REASONING: dict[str, Stream] = {
    "before the answer": stream(
        Answer("Hi", "Let me"), ROLE, thinks("Let "), thinks("me"), says("Hi"), STOP, DONE
    ),
    "empty is there, too": stream(
        Answer("Hi"), chunk({"role": "assistant", "reasoning_content": ""}), says("Hi"), STOP, DONE
    ),
    "null is not": stream(Answer("Hi"), thinks(None), says("Hi"), STOP, DONE),
    "by its other name": stream(
        Answer("Hi", "Hm"), chunk({"reasoning": "Hm"}), says("Hi"), STOP, DONE
    ),
    "by both names at once": stream(
        Answer("Hi", "Hm"),
        chunk({"reasoning": "Hm", "reasoning_content": "Hm"}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "with its details beside it": stream(
        Answer("Hi", "Hm so"),
        chunk({"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}),
        chunk({"reasoning": " so", "reasoning_details": [{"text": " so"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "as details alone": stream(
        Answer("Hi", "Hm so"),
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": " so"}]}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "as tags in the text": stream(
        Answer("\n\nHi", "Hm so"),
        says("<th"),
        says("ink>\nHm"),
        says(" so</thi"),
        says("nk>\n\nHi"),
        STOP,
        DONE,
    ),
    "as empty tags": stream(Answer("\n\nHi"), says("<think>\n\n</think>\n\nHi"), STOP, DONE),
    "tags further on are text": stream(
        Answer("Write <think>x</think>."), says("Write <think>x<"), says("/think>."), STOP, DONE
    ),
    "what only looks like a tag": stream(
        Answer("<thin air"), says("<thin"), says(" air"), STOP, DONE
    ),
    "tags that never close": stream(
        Answer(thinking="Hm", end="EmptyAnswer", raw_end=None), says("<think>Hm"), STOP, DONE
    ),
    "and nothing else": stream(
        Answer(thinking="Hm", end="EmptyAnswer", raw_end=None), thinks("Hm"), STOP, DONE
    ),
    "and nothing else, out of budget": stream(
        Answer(thinking="Hm", end="length", raw_end="length"),
        thinks("Hm"),
        chunk(finish="length"),
        DONE,
    ),
    "the connection drops in the middle of it": stream(
        Answer(thinking="Hm", end="incomplete", raw_end=None), thinks("Hm")
    ),
}
