"""Stores log-ins, approvals and tool lists on disk, by the fingerprint of a server's configuration.

A changed command makes another server: it needs a new approval, and its tools are unknown.
"""

from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import ServerListing
from kode_sidecar.infrastructure.records.disk import replace_file

T = TypeVar("T")
_MOST_BYTES = 4_000_000


class ServerStore(Generic[T]):
    """Stores one value per server in a file that only the user can read; None: memory only.

    Other processes write the file, too. A damaged file counts as empty.
    """

    def __init__(self, path: Path | None, kind: type[T], *, durable: bool) -> None:
        self._path = path
        self._durable = durable
        self._values: dict[str, T] = {}
        self._decoder = msgspec.json.Decoder(dict[str, kind])

    def get(self, fingerprint: str) -> T | None:
        """Return the stored value of a server, or None."""
        if self._path is not None:
            try:
                self._values = self._decoder.decode(self._path.read_bytes())
            except OSError:
                pass  # missing, or locked by another process: use what was read last
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._values = {}
        return self._values.get(fingerprint)

    def put(self, fingerprint: str, value: T) -> None:
        """Save a value in place of the one before. Raises KodeError `Storage`."""
        self.get(fingerprint)
        self._values[fingerprint] = value
        if self._path is None:
            return
        try:
            make_private(self._path.parent)
        except OSError as error:
            text = f"Nothing can be saved in {self._path}: {error.strerror}."
            raise KodeError("Storage", text) from None
        replace_file(self._path, msgspec.json.encode(self._values), durable=self._durable)


class Approvals(ServerStore[bool]):
    """Stores the user's yes or no to each server of a project.

    The fingerprint of such a server covers every word of its entry, and its folder.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, bool, durable=False)


class RememberedLists:
    """Stores what servers offered the last time, so that the model sees tools without a start.

    One file per server, in one folder; None stores nothing on disk. An unreadable file counts as
    missing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, ServerListing | None] = {}

    def get(self, fingerprint: str) -> ServerListing | None:
        """Return what a server offered the last time, or None."""
        if fingerprint not in self._known:
            self._known[fingerprint] = None
            if self._folder is not None:
                path = self._folder / f"{fingerprint}.json"
                with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                    if path.stat().st_size <= _MOST_BYTES:
                        data = path.read_bytes()
                        self._known[fingerprint] = msgspec.json.decode(data, type=ServerListing)
        return self._known[fingerprint]

    def put(self, fingerprint: str, listing: ServerListing) -> None:
        """Save a list; if it cannot be written, remember it until this process ends."""
        self._known[fingerprint] = listing
        if self._folder is not None:
            with suppress(OSError, KodeError):
                make_private(self._folder)
                path = self._folder / f"{fingerprint}.json"
                replace_file(path, msgspec.json.encode(listing), durable=False)
