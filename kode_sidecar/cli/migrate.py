"""`kode-sidecar sessions migrate`: every kept session to one way of keeping messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kode_sidecar.errors import KodeError
from kode_sidecar.records.conversation_store import ConversationStore
from kode_sidecar.records.messages import StorageName, name_in
from kode_sidecar.records.saver import Saver
from kode_sidecar.records.sqlite_messages import move_messages

Outcome = Literal["moved", "there already", "skipped", "failed"]


@dataclass(frozen=True)
class Migrated:
    """What became of one session, the `number`th of `count`; `reason` is empty when all is well."""

    session_id: str
    number: int
    count: int
    outcome: Outcome
    reason: str = ""


def migrate_sessions(storage_root: Path, to: StorageName, *, dry_run: bool) -> Iterator[Migrated]:
    """One session after the other. Those that a sidecar has open are skipped.

    With `dry_run` nothing is changed, and "moved" means that it would be. Blocks; raises KodeError
    `Storage` when the sessions cannot be listed.
    """
    saver = Saver()
    try:
        store = ConversationStore(storage_root, saver)
        ids = store.list_ids()
        for number, session_id in enumerate(ids, start=1):
            outcome, reason = _migrate(store, session_id, to, dry_run)
            yield Migrated(session_id, number, len(ids), outcome, reason)
    finally:
        saver.close()


def _migrate(
    store: ConversationStore, session_id: str, to: StorageName, dry_run: bool
) -> tuple[Outcome, str]:
    try:
        with store.locked(session_id) as folder:
            due = name_in(folder) != to
            if due and not dry_run:
                move_messages(folder, to)
    except KodeError as error:
        if error.code == "ReadOnly":
            return "skipped", "a sidecar has it open: close it there and run this again"
        return "failed", error.message
    return ("moved" if due else "there already"), ""
