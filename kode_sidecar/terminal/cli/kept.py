"""What is kept on disk: `kode-sidecar runs list`, `runs show` and `sessions migrate`."""

import os
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec

from kode_sidecar.core.domain.run import RunRecord
from kode_sidecar.core.settings import load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.messages import StorageName, name_in
from kode_sidecar.infrastructure.records.run_records import (
    RUN_FILE,
    RUNS_FOLDER,
    list_runs,
    read_run,
)
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.sqlite_messages import move_messages


def list_command(*, json: bool, folder: Path | None = None) -> int:
    """Print the runs of the state folder, or below `folder`, newest first; the exit code.

    A run that cannot be read is told on stderr, and the others all the same.
    """
    code = 0
    rows: list[RunRecord] = []
    for found in list_runs(folder or _runs_folder()):
        if isinstance(found, KodeError):
            sys.stderr.write(f"kode-sidecar: {found.message}\n")
            code = 1
        else:
            rows.append(found)
    if json:
        sys.stdout.writelines(f"{msgspec.json.encode(row).decode()}\n" for row in rows)
        return code
    width = max((len(row.run_id) for row in rows), default=0)
    for row in rows:
        cells = (f"{row.run_id:<{width}}", f"{_state(row):<10}", row.created_at, row.profile_id)
        sys.stdout.write("  ".join([*cells, row.failure_reason or ""]).rstrip() + "\n")
    if not rows and not code:
        sys.stdout.write("There are no runs yet.\n")
    return code


def show_command(name: str, *, json: bool) -> int:
    """Print one run, by its id or its folder. Raises KodeError `RunNotFound`, `Storage`."""
    folder = Path(name)
    if folder.name == name and not (folder / RUN_FILE).is_file():
        folder = _runs_folder() / name
    record = read_run(folder)
    if json:
        sys.stdout.write(f"{msgspec.json.encode(record).decode()}\n")
        return 0
    rows = {
        "run": record.run_id,
        "state": f"{_state(record)} in step {record.step}",
        "governance": record.governance or "",
        "error": f"{record.error.code}: {record.error.message}" if record.error else "",
        "profile": f"{record.profile_id} ({record.config_fingerprint[:12]})",
        "engine": f"{record.engine} with {record.model}",
        "session": record.session_id,
        "task": record.task_id,
        "created": record.created_at,
        "ended": record.completed_at or "",
        "records": str(folder),
    }
    sys.stdout.writelines(f"{label:<10}  {text}\n" for label, text in rows.items() if text)
    return 0


def _state(record: RunRecord) -> str:
    return "dry run" if record.dry_run and record.status == "pending" else record.status


def _runs_folder() -> Path:
    return load_settings(os.environ).settings.storage_root / RUNS_FOLDER


Outcome = Literal["moved", "there already", "skipped", "failed"]


def migrate_command(to: StorageName, env_file: str | None, *, dry_run: bool) -> int:
    """Print a line a session that is not kept so already, and a sum; return the exit code.

    Sessions that a sidecar has open are skipped. With `dry_run` nothing is changed, and "moved"
    means that it would be. Raises KodeError `Storage` when the sessions cannot be listed.
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
                told = f"{outcome}: {reason}" if reason else outcome
                sys.stdout.write(f"[{number}/{len(ids)}] {session_id} {told}\n")
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
    """Return what became of a session, and why where all is not well."""
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
