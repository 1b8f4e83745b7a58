"""`models.json` in the state folder: which model ids a host no longer serves (A2)."""

from pathlib import Path

import msgspec

from kode_sidecar.records.json_text import DECODE_ERRORS, encode_json
from kode_sidecar.records.storage_error import not_saved
from kode_sidecar.records.whole_file import replace_file


class RetiredModels:
    """Host → ids that it answered with "no such model". A hint only: it may be deleted.

    Every question to a model looks here, so the file is read once: what another process adds
    later is found out again.
    """

    def __init__(self, storage_root: Path) -> None:
        self._path = storage_root / "models.json"
        self._known: dict[str, list[str]] | None = None

    def ids(self, host: str) -> frozenset[str]:
        """What is known of a host; empty when the file is missing or damaged."""
        if self._known is None:
            self._known = self._read()
        return frozenset(self._known.get(host, ()))

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        known = self._read()
        ids = sorted({*known.get(host, ()), model_id})
        self._known = known = {**known, host: ids}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_saved(self._path.name, error) from None
        replace_file(self._path, encode_json(known), durable=False)

    def _read(self) -> dict[str, list[str]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, list[str]])
        except (OSError, *DECODE_ERRORS):
            return {}
