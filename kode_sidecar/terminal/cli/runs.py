"""`kode-sidecar runs`: shows jobs from their records."""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from kode_sidecar.core.domain.run import RunRecord
from kode_sidecar.core.settings import load_settings
from kode_sidecar.core.text.shown_text import visible
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.run_records import (
    RUN_FILE,
    RUNS_FOLDER,
    list_runs,
    read_run,
)


def runs_command(options: argparse.Namespace) -> int:
    """Run the command; return the exit code. Raises KodeError."""
    if options.runs_command == "list":
        return list_command(json=options.json, folder=options.folder)
    return show_command(options.run, json=options.json)


def list_command(*, json: bool, folder: Path | None = None) -> int:
    """Print the runs of the state folder, or below `folder`, newest first; return the exit code.

    A run that cannot be read is reported on stderr; the others are still printed.
    """
    code = 0
    rows: list[RunRecord] = []
    for found in list_runs(folder or _runs_folder()):
        if isinstance(found, KodeError):
            sys.stderr.write(f"kode-sidecar: {visible(found.message)}\n")
            code = 1
        else:
            rows.append(found)
    if json:
        sys.stdout.write(f"{msgspec.json.encode({'runs': rows}).decode()}\n")
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
        "conversation": record.conversation_id,
        "created": record.created_at,
        "ended": record.completed_at or "",
        "records": str(folder),
    }
    sys.stdout.writelines(f"{label:<12}  {text}\n" for label, text in rows.items() if text)
    return 0


def _state(record: RunRecord) -> str:
    return "dry run" if record.dry_run and record.status == "pending" else record.status


def _runs_folder() -> Path:
    return load_settings(os.environ).settings.storage_root / RUNS_FOLDER
