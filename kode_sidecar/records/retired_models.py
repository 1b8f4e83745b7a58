"""`models.json` in the state folder: which model ids a host no longer serves (A2)."""

import os
from pathlib import Path

import msgspec

from kode_sidecar.records.disk import not_saved, replace_file
from kode_sidecar.records.json_record import DECODE_ERRORS, encode_json


class RetiredModels:
    """Host → ids that it answered with "no such model". A hint only: it may be deleted.

    Every question to a model looks here, so the file is only read again when it has changed.
    """

    def __init__(self, storage_root: Path) -> None:
        self._path = storage_root / "models.json"
        self._name = str(self._path)
        self._read_state: tuple[int, int, int] | None = None
        self._known: dict[str, list[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """What is known of a host; empty when the file is missing or damaged."""
        return frozenset(self._read().get(host, ()))

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        known = self._read()
        ids = sorted({*known.get(host, ()), model_id})
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_saved(self._path.name, error) from None
        replace_file(self._path, encode_json({**known, host: ids}), durable=False)

    def _read(self) -> dict[str, list[str]]:
        try:
            status = os.stat(self._name)
            state = (status.st_ino, status.st_mtime_ns, status.st_size)
            if state != self._read_state:
                data = self._path.read_bytes()
                self._known = msgspec.json.decode(data, type=dict[str, list[str]])
                self._read_state = state
        except (OSError, *DECODE_ERRORS):
            self._known, self._read_state = {}, None
        return self._known
