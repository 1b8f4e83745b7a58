"""Whatever comes from outside is read or refused by name; it never breaks its reader.

True samples are damaged: bytes changed, cut out, doubled, spliced with those of another one; values
of JSON replaced by others. The seed is that of the run, printed at its end.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kode_sidecar.agent.context.skill_front_matter import read_front_matter, split_skill
from kode_sidecar.core.protocol.base_protocol import FrameDecoder, FramingError, LineDecoder
from kode_sidecar.core.text.apply_patch import parse_patch
from kode_sidecar.core.text.file_patch import PatchError
from kode_sidecar.core.text.unified_patch import unified_readings
from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.event_stream import McpEventDecoder
from kode_sidecar.infrastructure.mcp.peer import Peer
from kode_sidecar.infrastructure.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.infrastructure.providers.openai_chat import ChatDecoder
from kode_sidecar.infrastructure.providers.openai_responses import ResponsesDecoder
from kode_sidecar.infrastructure.providers.sse import SseDecoder
from kode_sidecar.infrastructure.records.journal import Journal, read_events
from kode_sidecar.servers.acp import types as acp_types
from kode_sidecar.servers.lsp.codec import ParamsDecoder, decode_incoming
from tests.conftest import FULL
from tests.support.program import ROOT

EXAMPLES = 2_000 if FULL else 100
FRAMES = [path.read_bytes() for path in sorted((ROOT / "protocol" / "examples").glob("*.json"))]
STREAM = (
    b'data: {"id":"r","choices":[{"index":0,"delta":{"content":"Hi","tool_calls":[{"index":0,'
    b'"id":"c","function":{"name":"read_file","arguments":"{}"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}\n\n'
    b"data: [DONE]\n\n"
)
MESSAGES = [
    b'{"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":3}}}',
    b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t",'
    b'"name":"read_file","input":{}}}',
    b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",'
    b'"partial_json":"{}"}}',
    b'{"type":"content_block_stop","index":0}',
    b'{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}',
    b'{"type":"message_stop"}',
]
RESPONSE = [
    b'{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress"}}',
    b'{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call",'
    b'"id":"f","call_id":"c","name":"read_file","arguments":""}}',
    b'{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f",'
    b'"delta":"{}"}',
    b'{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call",'
    b'"id":"f","call_id":"c","name":"read_file","arguments":"{}"}}',
    b'{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning",'
    b'"id":"s","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"g"}}',
    b'{"type":"response.completed","response":{"id":"r","status":"completed",'
    b'"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],'
    b'"usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}}',
]
SKILL = b"---\nname: a\ndescription: What it does\nallowed-tools: [read_file]\n---\n# A\ntext\n"
YAML = (
    "a: &x [1, 2.5, true, null]\nb:\n  c: 'text'\n  d: |\n    more\nservers: {s: {command: [a]}}\n"
)
PATCHES = [
    "*** Begin Patch\n*** Update File: a.txt\n@@ def f():\n-old\n+new\n*** End Patch\n",
    "*** Begin Patch\n*** Add File: b\n+x\n*** Delete File: c\n*** End Patch\n",
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
]
RECORDINGS = [
    (ROOT / "tests" / "transcripts" / name / "tape.jsonl").read_bytes()[:20_000]
    for name in ("edits_decide_undo", "hung_scout")
]
ODD: Any = st.sampled_from([None, True, -1, 2**70, 1e400, "", "\ud800", [], {}, [[]], {"": None}])


@st.composite
def damaged(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample with up to six wounds."""
    data = bytearray(draw(st.sampled_from(list(samples))))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["replace", "cut", "double", "splice", "flip"])):
            case "replace":
                data[at:end] = draw(st.binary(max_size=8))
            case "cut":
                del data[at:end]
            case "double":
                data[at:at] = data[at:end]
            case "splice":
                data[at:end] = draw(st.sampled_from(list(samples)))[at : at + 40]
            case _:
                if at < len(data):
                    data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


@st.composite
def replaced(draw: st.DrawFn, value: Any) -> Any:
    """The same JSON with some values that are something else."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ODD)
    if isinstance(value, dict):
        return {key: draw(replaced(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [draw(replaced(item)) for item in value]
    return value


def in_pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@contextmanager
def refused_as(*codes: str) -> Iterator[None]:
    """It is read, or refused with one of these codes."""
    try:
        yield
    except KodeError as error:
        if error.code not in codes:
            raise


CUTS = st.lists(st.integers(0, 300), max_size=5)
FRAMED = [b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in FRAMES]


@settings(max_examples=EXAMPLES)
@given(damaged(FRAMED), CUTS, st.sampled_from([FrameDecoder, LineDecoder]))
def test_frames(data: bytes, cuts: list[int], decoder: Callable[[], Any]) -> None:
    reading = decoder()
    try:
        bodies = [body for piece in in_pieces(data, cuts) for body in reading.feed(piece)]
    except FramingError:
        return
    for body in bodies:
        with refused_as("ParseError", "InvalidRequest"):
            decode_incoming(body)


@settings(max_examples=EXAMPLES)
@given(
    damaged([STREAM, *(b"\n\n".join(b"data: " + e for e in one) for one in (MESSAGES, RESPONSE))]),
    CUTS,
)
def test_streams_of_models(data: bytes, cuts: list[int]) -> None:
    decoder, events = SseDecoder(), McpEventDecoder()
    pieces = in_pieces(data, cuts)
    found = [one for piece in pieces for one in decoder.feed(piece)] + decoder.finish()
    for piece in pieces:
        events.feed(piece)
    for reader in (ChatDecoder(), MessagesDecoder(), ResponsesDecoder()):
        # An error body ends the answer at once: then there is nothing to finish.
        assert [*reader.feed_many(found), *reader.finish()]


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_answers_with_other_values(data: st.DataObject) -> None:
    chunks = [json.loads(line[6:]) for line in STREAM.split(b"\n\n")[:2]]
    chat, messages = ChatDecoder(), MessagesDecoder()
    chat.feed_many([_json(data.draw(replaced(chunk))) for chunk in chunks])
    assert chat.finish()
    messages.feed_many([_json(data.draw(replaced(json.loads(one)))) for one in MESSAGES])
    assert messages.finish()
    responses = ResponsesDecoder()
    responses.feed_many([_json(data.draw(replaced(json.loads(one)))) for one in RESPONSE])
    assert responses.finish()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@settings(max_examples=EXAMPLES)
@given(
    data=damaged(
        [
            b"".join(
                _json({"seq": n, "type": "message.completed", "messageId": "m"}) + b"\n"
                for n in range(1, 5)
            )
        ]
    )
)
def test_journals(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    path.write_bytes(data)
    read_events(path)
    journal = Journal(path)
    events = list(journal.take_events())
    assert [one.seq for one in events] == sorted({one.seq for one in events})
    journal.close()


@settings(max_examples=EXAMPLES)
@given(data=damaged(RECORDINGS))
def test_recordings(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("recording") / "a.jsonl"
    path.write_bytes(data)
    with refused_as("Storage"):
        read_recording(path)


@settings(max_examples=EXAMPLES)
@given(damaged([SKILL]))
def test_skills(data: bytes) -> None:
    for read in (split_skill, read_front_matter):
        with refused_as("SkillInvalid"):
            read(data, "SKILL.md")


@settings(max_examples=EXAMPLES)
@given(damaged([one.encode() for one in (*PATCHES, YAML)]))
def test_patches_and_yaml(data: bytes) -> None:
    text = data.decode(errors="replace")
    for parse in (parse_patch, unified_readings):
        try:
            parse(text)
        except PatchError:
            continue
    with suppress(YamlProblem):
        read_yaml(text)


MCP = [
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}},
    {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}},
]


@settings(max_examples=EXAMPLES)
@given(replaced(MCP))
def test_messages_of_mcp_servers(messages: Any) -> None:
    async def hear() -> None:
        peer = Peer("s", host=None)  # type: ignore[arg-type]
        for message in messages if isinstance(messages, list) else []:
            if isinstance(message, dict) and "id" not in message:
                peer.receive(message)

    asyncio.run(hear())


PARAMS = [
    kind
    for kind in vars(acp_types).values()
    if isinstance(kind, type)
    and issubclass(kind, msgspec.Struct)
    and kind.__name__.endswith(("Request", "Response"))
]


@settings(max_examples=EXAMPLES)
@given(damaged(FRAMES), st.sampled_from(PARAMS))
def test_params(data: bytes, kind: type) -> None:
    with refused_as("InvalidParams"):
        ParamsDecoder(kind).decode(msgspec.Raw(data))
