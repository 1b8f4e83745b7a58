"""What a session's folder holds of its messages, whichever way they are kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.domain.message import Message
from kode_sidecar.core.kernel import block_events, message_added, message_completed
from kode_sidecar.infrastructure.records.journal import Journal
from kode_sidecar.infrastructure.records.message_storage import messages_in


def read_records(folder: Path) -> list[bytes]:
    """The records as they stand there."""
    return list(messages_in(folder).records(folder))


def read_messages(folder: Path) -> list[dict[str, Any]]:
    """The same, decoded."""
    return [json.loads(record) for record in read_records(folder)]


def write_records(folder: Path, records: Sequence[bytes]) -> None:
    """Let these be all that is kept; nobody has it open."""
    storage = messages_in(folder)
    storage.open(folder)[0].close()  # what a process that ended left in a log
    storage.replace(folder, records)


def report(journal: Journal, message: Message) -> None:
    """Write the events by which a finished message is told."""
    events = [message_added(message, "")]
    for block in message.content:
        events += block_events(block, "", message.id)
    for event in [*events, message_completed(message, "")]:
        journal.append(msgspec.structs.replace(event, seq=journal.last_seq + 1, ts="2026"))
