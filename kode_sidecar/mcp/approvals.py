"""Which servers of projects the user has said yes to: kept on disk, by fingerprint.

A fingerprint holds every word of an entry and its folder, so a changed command waits again.
"""

from pathlib import Path

import msgspec

from kode_sidecar.errors import KodeError
from kode_sidecar.records.disk import replace_file
from kode_sidecar.whole_files import make_private


class Approvals:
    """The yeses and noes of the user; None keeps them for this process only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._decided: dict[str, bool] = {}

    def get(self, fingerprint: str) -> bool | None:
        """What was decided on a server; None while it waits. Other processes decide, too."""
        return self._read().get(fingerprint)

    def put(self, fingerprint: str, *, allowed: bool) -> None:
        """Remember what was decided. Raises KodeError `Storage`."""
        self._decided = {**self._read(), fingerprint: allowed}
        if self._path is None:
            return
        try:
            make_private(self._path.parent)
            replace_file(self._path, msgspec.json.encode(self._decided), durable=False)
        except OSError as error:
            text = f"The answer cannot be kept in {self._path}: {error.strerror}."
            raise KodeError("Storage", text) from None

    def _read(self) -> dict[str, bool]:
        if self._path is not None:
            try:
                self._decided = msgspec.json.decode(self._path.read_bytes(), type=dict[str, bool])
            except FileNotFoundError:
                pass
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                self._decided = {}
        return self._decided
