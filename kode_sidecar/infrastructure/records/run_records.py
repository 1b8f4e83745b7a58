"""The files of a run (B5): `run.json` has its state, the others are appended to or written once.

Only `run.json` decides whether a run is over.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.run import FINAL_STATES, RunEvent, RunRecord, run_error
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import (
    make_folder,
    not_made,
    not_read,
    not_saved,
    replace_file,
)
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, encode_json
from kode_sidecar.infrastructure.records.jsonl import JsonlFile, read_records
from kode_sidecar.infrastructure.records.session_lock import SessionLock, is_held

RUNS_FOLDER = "runs"
"""The folder in the state folder with a folder per run, unless the user named another one."""
RUN_FILE = "run.json"
EVENTS_FILE = "events.jsonl"
TRANSCRIPT_FILE = "transcript.md"
TOOLS_FILE = "logs/tools.jsonl"
ERRORS_FILE = "logs/errors.jsonl"


class RunRecords:
    """The records of one run, which only this process writes.

    Makes `folder` and takes its lock. Raises KodeError `ReadOnly` if it already contains a run,
    `Storage`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._logs: dict[str, JsonlFile] = {}
        try:
            make_private(folder / "logs")
        except OSError as error:
            raise not_made(folder, error) from None
        try:
            self._lock = SessionLock(folder)
        except KodeError as error:
            raise _taken() if error.code == "ReadOnly" else error from None
        if (folder / RUN_FILE).exists():
            self._lock.release()
            raise _taken()

    def write(self, record: RunRecord, *, durable: bool) -> None:
        """Replace `run.json`; with `durable`, after everything appended before was saved.

        Blocks. Raises KodeError `Storage`.
        """
        if durable:
            for log in self._logs.values():
                log.sync()
        data = msgspec.json.format(encode_json(record), indent=2) + b"\n"
        replace_file(self.folder / RUN_FILE, data, durable=durable)

    def append(self, name: str, line: Struct) -> None:
        """Append a line to one of the logs. Raises KodeError `Storage`."""
        if name not in self._logs:
            self._logs[name] = JsonlFile(self.folder / name)
        self._logs[name].append(encode_json(line))

    def append_text(self, name: str, text: str) -> None:
        """Append to a text file, LF line ends. Raises KodeError `Storage`."""
        try:
            with (self.folder / name).open("a", encoding="utf-8", newline="\n") as file:
                file.write(fix_surrogates(text))
        except OSError as error:
            raise not_saved(name, error) from None

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file. Raises KodeError `Storage`."""
        replace_file(self.folder / name, fix_surrogates(text).encode(), durable=False)

    def save_artifact(self, name: str, text: str) -> int:
        """Save a text as `archive/artifacts/{name}`; return its length in bytes.

        Raises KodeError `Storage`.
        """
        folder = self.folder / "archive" / "artifacts"
        data = fix_surrogates(text).encode()
        make_folder(folder, "archive/artifacts")
        replace_file(folder / name, data, durable=False)
        return len(data)

    def close(self) -> None:
        """Release the logs and the lock; harmless when repeated."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._lock.release()


def read_run(folder: Path) -> RunRecord:
    """Return the contents of `run.json`; an unfinished run whose process is gone has failed.

    Raises KodeError `RunNotFound`, `Storage`.
    """
    record = _read(folder)
    if record.status in FINAL_STATES or record.completed_at is not None:
        return record
    if is_held(folder):
        return record
    # It may have ended and released its lock since the first read.
    record = _read(folder)
    if record.status in FINAL_STATES or record.completed_at is not None:
        return record
    error = failure(
        "RunDied",
        f"The process {record.pid} of this run ended during the step `{record.step}` without "
        "finishing the run; start it again under another run id.",
    )
    return replace(
        record,
        status="failed",
        governance="failed",
        failure_reason=error.code,
        error=run_error(error),
    )


def read_events(folder: Path) -> list[RunEvent]:
    """Return the events of a run, in order, without a line that a crash cut off.

    Raises KodeError `Storage`.
    """
    return read_records(folder / EVENTS_FILE, msgspec.json.Decoder(RunEvent).decode)[0]


def list_runs(folder: Path) -> Iterator[RunRecord | KodeError]:
    """Return the runs below a folder, newest first; for an unreadable run, its error."""
    found: list[tuple[str, RunRecord | KodeError]] = []
    try:
        below = [path for path in folder.iterdir() if (path / RUN_FILE).is_file()]
    except FileNotFoundError:
        below = []
    except OSError as error:
        raise not_read(folder.name, error) from None
    for path in below:
        try:
            record = read_run(path)
            found.append((record.created_at, record))
        except KodeError as error:
            found.append(("", KodeError(error.code, f"{path.name}: {error.message}")))
    found.sort(key=lambda one: one[0], reverse=True)
    return (one for _, one in found)


def _read(folder: Path) -> RunRecord:
    try:
        return msgspec.json.decode((folder / RUN_FILE).read_bytes(), type=RunRecord)
    except (FileNotFoundError, NotADirectoryError):
        raise KodeError("RunNotFound", f"There is no run {folder.name}.") from None
    except OSError as error:
        raise not_read(RUN_FILE, error) from None
    except DECODE_ERRORS as error:
        raise KodeError("Storage", f"{RUN_FILE} is damaged: {error}") from None


def _taken() -> KodeError:
    return KodeError(
        "ReadOnly", "There is a run in this folder already; name another folder or another run id."
    )
