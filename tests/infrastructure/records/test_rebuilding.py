"""Messages made again from the events that told them."""

import msgspec

from kode_sidecar.core.domain.agent_event import Event
from kode_sidecar.core.domain.message import Cost, LostUsage, Message, TextBlock, Usage
from kode_sidecar.core.kernel import block_events, message_added, message_completed
from kode_sidecar.infrastructure.records.rebuilding import complete_messages


def test_events_tell_the_whole_message() -> None:
    message = Message(
        id="m2",
        session_id="c-1",
        role="user",
        content=(TextBlock(id="b1", text="again"),),
        parent_id="m0",
        depth=1,
        version=2,
        replaces="m1",
        created_at="2026-01-02T00:00:00.000Z",
        meta={"turnId": "t"},
        usage=Usage(input_tokens=1),
        cost=Cost(amount=0.5, currency="CNY"),
        cost_usd=0.1,
        lost=LostUsage(usage=Usage(output_tokens=2)),
        duration_ms=3,
        response_id="r",
        provider="kimi",
        model="kimi-k2",
        is_api_error_message=True,
    )
    events = [
        message_added(message, "t"),
        *(event for block in message.content for event in block_events(block, "t", message.id)),
        message_completed(message, "t"),
    ]
    stored = [one for one in events if isinstance(one, Event)]
    numbered = [msgspec.structs.replace(one, seq=seq) for seq, one in enumerate(stored, 1)]
    assert complete_messages(numbered, "c-1") == [message]
