"""`kode-sidecar sessions migrate`: moves the messages of all sessions to another storage."""

import os
import sys
from collections import Counter
from contextlib import closing
from typing import Literal

from kode_sidecar.core.settings import load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.message_storage import move_messages, name_in
from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.infrastructure.records.saver import Saver

Outcome = Literal["moved", "there already", "skipped", "failed"]


def migrate_command(to: StorageName, env_file: str | None, *, dry_run: bool) -> int:
    """Print a line per session that is stored otherwise, and a sum; return the exit code.

    Sessions that a sidecar has open are skipped. With `dry_run` nothing is changed, and "moved"
    means "would be moved". Raises KodeError `Storage` if the sessions cannot be listed.
    """
    loaded = load_settings(os.environ, env_file=env_file)
    loaded.require_valid()
    counts: Counter[Outcome] = Counter()
    with closing(Saver()) as saver:
        store = ConversationStore(loaded.settings.storage_root, saver)
        ids = store.list_ids()
        for number, session_id in enumerate(ids, start=1):
            outcome, reason = _migrate(store, session_id, to, dry_run)
            counts[outcome] += 1
            if outcome != "there already":
                reported = f"{outcome}: {reason}" if reason else outcome
                sys.stdout.write(f"[{number}/{len(ids)}] {session_id} {reported}\n")
                sys.stdout.flush()
    verb = "to be moved" if dry_run else "moved"
    sys.stdout.write(
        f"{counts['moved']} {verb} to {to}, {counts['there already']} there already, "
        f"{counts['skipped']} skipped, {counts['failed']} failed\n"
    )
    return 1 if counts["failed"] else 0


def _migrate(
    store: ConversationStore, session_id: str, to: StorageName, dry_run: bool
) -> tuple[Outcome, str]:
    """Move one session; return the outcome, and the reason if it was not moved."""
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
