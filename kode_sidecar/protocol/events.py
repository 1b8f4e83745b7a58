"""The two notifications of the stream."""

from msgspec import Struct

from kode_sidecar.domain.agent_event import BlockDelta, Event


class EventParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`kode/event`: durable events of one session, in `seq` order."""

    session_id: str
    events: tuple[Event, ...]


class DeltaParams(Struct, frozen=True):
    """`kode/delta`: growth of open blocks; a block id names its session by itself."""

    deltas: tuple[BlockDelta, ...]
