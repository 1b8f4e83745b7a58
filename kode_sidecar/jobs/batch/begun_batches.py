"""Records which batches the user began or trusts, in the file `batches` of the state folder.

The folder of a batch says which configuration its tasks run with, which file its variables come
from and which scheduler gets them. Whoever made the folder chose all that, so `resume` goes on only
with a plan that the user made or said yes to.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.jobs.batch.batch_folder import BatchFolder, BatchRecord

BATCHES_FILE = "batches"


class BegunBatches:
    """The trusted plans, one per line. A plan that cannot be saved is not trusted later."""

    def __init__(self, storage_root: Path) -> None:
        self._path = storage_root / BATCHES_FILE

    def add(self, folder: BatchFolder, record: BatchRecord) -> None:
        """Save a plan as trusted."""
        line = _fingerprint(folder, record)
        if line in self._lines():
            return
        with suppress(OSError):
            make_private(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with open(os.open(self._path, flags, 0o600), "a", encoding="ascii") as file:
                file.write(f"{line}\n")

    def check(self, folder: BatchFolder) -> None:
        """Raise KodeError `Denied` for a plan that is not trusted."""
        record = folder.record
        if _fingerprint(folder, record) in self._lines():
            return
        variables = f", the variables of {record.env_file}" if record.env_file else ""
        place = f" at the scheduler {record.scheduler}" if record.scheduler else ""
        raise KodeError(
            "Denied",
            f"The batch in {folder.path} was not begun from your account here, or was changed "
            f"since. Its tasks would run with {record.config_path}{variables}{place}. If you trust "
            "them, `kode-sidecar batch resume --trust` goes on with it.",
        )

    def _lines(self) -> set[str]:
        try:
            return {*self._path.read_text("ascii", "replace").split("\n")}
        except OSError:
            return set()


def _fingerprint(folder: BatchFolder, record: BatchRecord) -> str:
    """Return a hash of the tasks and settings of a folder; progress and limits do not count."""
    asked = [record.batch_id, record.config_path, record.env_file, record.scheduler]
    tasks = [msgspec.to_builtins(folder.log.tasks[name].task) for name in sorted(folder.log.tasks)]
    return hashlib.sha256(encode_json([asked, tasks])).hexdigest()
