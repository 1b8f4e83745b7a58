"""What answers used, read from the records of messages without the rest of what they hold."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from kode_sidecar.domain.message import Cost, Usage
from kode_sidecar.records.json_text import DECODE_ERRORS

# Most lines are prompts and tool results: they are passed over undecoded.
_MARK = b'"usage"'


class _DiskUsage(Struct, frozen=True):
    """`domain.message.Usage` as it stands on disk."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class _Record(Struct, frozen=True):
    """All that is wanted of a message."""

    id: str
    usage: _DiskUsage | None = None
    created_at: str | None = None
    meta: dict[str, Any] | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    model: str | None = None


class Spent(Struct, frozen=True, kw_only=True):
    """What one answer used. `turn_id` is empty for what was asked for outside turns."""

    message_id: str
    turn_id: str
    created_at: str
    model: str | None
    usage: Usage
    cost: Cost | None
    cost_usd: float | None


def read_spending(records: Iterable[bytes]) -> list[Spent]:
    """Every answer that the host told the usage of; what is damaged is passed over."""
    decode = msgspec.json.Decoder(_Record).decode
    found: list[Spent] = []
    for line in records:
        if _MARK not in line:
            continue
        try:
            record = decode(line)
        except DECODE_ERRORS:
            continue
        if record.usage is not None:
            found.append(_spent(record, record.usage))
    return found


def _spent(record: _Record, usage: _DiskUsage) -> Spent:
    return Spent(
        message_id=record.id,
        turn_id=str((record.meta or {}).get("turnId", "")),
        created_at=record.created_at or "",
        model=record.model,
        usage=Usage(**msgspec.structs.asdict(usage)),
        cost=record.cost,
        cost_usd=record.cost_usd,
    )
