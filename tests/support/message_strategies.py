"""Hypothesis strategies for messages and blocks."""

from hypothesis import strategies as st

from kode_sidecar.core.domain.message import (
    Block,
    Cost,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)

texts = st.text(max_size=12) | st.sampled_from(["", " \n", "a\u2028b\u0085c", "中文😀", "\x00\x1b"])
ids = st.sampled_from(["call:0", "call:1", "call:2"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(
    texts | st.sampled_from(["toolUseId", "tool_use_id", "isError", "media_type", "type"]),
    json_values,
    max_size=3,
)
numbers = st.integers(min_value=0, max_value=10**9)
text_blocks = st.builds(TextBlock, id=texts, text=texts)
images = st.builds(ImageBlock, media_type=st.just("image/png"), data=st.just("aGk="))
thinking = st.builds(ThinkingBlock, text=texts, signature=st.none() | texts)
resources = st.builds(
    ResourceBlock,
    uri=texts,
    text=st.none() | texts,
    language_id=st.none() | texts,
    start_line=st.none() | numbers,
    end_line=st.none() | numbers,
)
tool_uses = st.builds(
    ToolUseBlock, tool_use_id=ids, name=texts, input=json_objects, invalid_input=st.none() | texts
)
tool_results = st.builds(
    ToolResultBlock,
    tool_use_id=ids,
    content=st.lists(text_blocks | images, max_size=2).map(tuple),
    is_error=st.booleans(),
    status=st.sampled_from(["ok", "error", "cancelled", "denied"]),
    summary=texts,
)
blocks: st.SearchStrategy[Block] = (
    text_blocks | images | thinking | resources | tool_uses | tool_results
)
usages = st.builds(
    Usage,
    input_tokens=numbers,
    output_tokens=numbers,
    total_tokens=numbers,
    cached_tokens=numbers,
)
messages = st.builds(
    Message,
    id=texts,
    session_id=st.just("s-1"),
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=st.lists(blocks, max_size=4).map(tuple),
    parent_id=st.none() | texts,
    depth=numbers,
    version=numbers,
    created_at=texts,
    meta=json_objects,
    usage=st.none() | usages,
    cost=st.none() | st.builds(Cost, amount=st.floats(0, 100), currency=st.just("CNY")),
    cost_usd=st.none() | st.floats(0, 100),
    duration_ms=st.none() | numbers,
    response_id=st.none() | texts,
    model=st.none() | texts,
    is_api_error_message=st.booleans(),
)
