"""What answers used, read from `messages.jsonl` without the rest of what it holds."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kode_sidecar.domain.message import Cost, Usage
from kode_sidecar.records.json_text import DECODE_ERRORS
from kode_sidecar.records.storage_error import not_read

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


def read_spending(path: Path) -> list[Spent]:
    """Every answer that the host told the usage of; a missing file has none.

    Raises KodeError `Storage` when the file cannot be read.
    """
    decode = msgspec.json.Decoder(_Record).decode
    found: list[Spent] = []
    try:
        with path.open("rb") as file:
            for line in file:
                if _MARK not in line:
                    continue
                try:
                    record = decode(line.strip(b" \t\r\n\0"))
                except DECODE_ERRORS:
                    continue
                if record.usage is not None:
                    found.append(_spent(record, record.usage))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise not_read(path.name, error) from None
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
