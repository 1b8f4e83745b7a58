"""Bytes to typed messages: what msgspec refuses, and how failures are named."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct

from kode_sidecar.core.protocol.base_protocol import BadMessage, read_message
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.codec import (
    ParamsDecoder,
    decode_incoming,
    document_uri,
    encode,
    encode_result,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ENVELOPES = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "other"]),
    JSON | st.just("2.0") | st.floats(),
)


def verdict(read: Callable[[bytes], Any], body: bytes) -> tuple[Any, Any]:
    """Method and id, or the code and id of the refusal."""
    try:
        message = read(body)
    except BadMessage as error:
        return error.code, error.request_id
    if isinstance(message, dict):
        return message.get("method", UNSET), message.get("id", UNSET)
    return message.method, message.id


@settings(max_examples=300)
@given(ENVELOPES | JSON)
def test_both_readers_agree(value: Any) -> None:
    # the fast one and the standard one accept and refuse the same messages
    body = json.dumps(value).encode()
    assert verdict(decode_incoming, body) == verdict(read_message, body)


@settings(max_examples=200)
@given(st.binary(max_size=40))
def test_any_bytes_are_refused_politely(body: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_incoming(body)


def test_lone_surrogates_become_replacement_characters() -> None:
    body = rb'{"jsonrpc":"2.0","id":"\ud800","method":"m","params":{"t":"a\udc00b\ud83d\ude00"}}'
    incoming = decode_incoming(body)
    assert incoming.id == "\ufffd"
    assert isinstance(incoming.params, Raw)
    params = ParamsDecoder(dict[str, str]).decode(incoming.params)
    assert params == {"t": "a\ufffdb😀"}


def test_bad_utf8_hidden_in_params_is_seen_at_once() -> None:
    # W1
    with pytest.raises(BadMessage) as caught:
        decode_incoming(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}')
    assert caught.value.code == "ParseError"
    assert caught.value.request_id is None


@pytest.mark.parametrize(
    ("params", "path"),
    [
        (b"{}", "$.sessionId"),
        (b'{"sessionId":5,"input":[]}', "$.sessionId"),
        (b'{"sessionId":"s"}', "$.input"),
        (b'{"sessionId":"s","input":[{"type":"text"}]}', "$.input[0].text"),
        (b'{"sessionId":"s","input":[{"type":"nope"}]}', "$.input[0].type"),
        (b'{"sessionId":"s","input":{}}', "$.input"),
        (b'["s",[]]', "$"),
        (b'"s"', "$"),
        (b"null", "$.sessionId"),
    ],
)
def test_bad_params_name_the_json_path(params: bytes, path: str) -> None:
    with pytest.raises(KodeError) as caught:
        ParamsDecoder(TurnStartParams).decode(Raw(params))
    assert caught.value.rpc_code == -32602
    assert f"`{path}`" in caught.value.message
    assert caught.value.details == {"path": path}


def test_absent_params_count_as_empty() -> None:
    decoder = ParamsDecoder(dict[str, int])
    assert decoder.decode(UNSET) == {}
    assert decoder.decode(Raw(b" null ".strip())) == {}


class _Text(Struct):
    text: str


def test_lone_surrogates_can_be_encoded() -> None:
    assert json.loads(encode(_Text("a\ud800b"))) == {"text": "a\ufffdb"}
    assert json.loads(encode_result(1, {"k\udfff": ["\ud83d\ude00"]}))["result"] == {
        "k\ufffd": ["😀"]
    }


@pytest.mark.parametrize(
    ("params", "uri"),
    [
        (b'{"textDocument":{"uri":"file:///a"},"contentChanges":5}', "file:///a"),
        (b'{"textDocument":{"uri":5}}', None),
        (b'{"textDocument":[]}', None),
        (b"[]", None),
        (b"5", None),
    ],
)
def test_the_uri_of_broken_sync_params(params: bytes, uri: str | None) -> None:
    assert document_uri(Raw(params)) == uri
