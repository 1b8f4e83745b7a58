"""The files of the open folders, so far as a recording holds them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kode_sidecar.recording.secret_mask import masked_bytes
from kode_sidecar.recording.transcript import FilesLeftOut, FileState
from kode_sidecar.workspace.credentials import is_secret_path
from kode_sidecar.workspace.listing import list_tree
from kode_sidecar.workspace.paths import Location, make_roots

MAX_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 20_000_000

_Status = tuple[int, int]


class Snapshot:
    """Knows which state of each file was told. What is ignored, too large or secret is left out.

    Blocking. A file counts as changed when its size or its time does.
    """

    def __init__(self, roots: Sequence[Path], secrets: Sequence[str]) -> None:
        self._roots = make_roots(roots)
        self._secrets = secrets
        self._told: dict[tuple[int, str], _Status] = {}
        self._left_out: dict[int, int] = {}
        self._bytes = 0

    def changes(self) -> Iterator[FileState | FilesLeftOut]:
        """What is not as it was told last; everything, the first time."""
        found: set[tuple[int, str]] = set()
        for number, root in enumerate(self._roots):
            start = Location(root, root.path, root.real, (), root.name)
            left_out = 0
            for file in list_tree(start, lambda _: True, MAX_FILES, lambda: False).files:
                key = (number, "/".join(file.parts))
                if file.is_link or is_secret_path(file.parts):
                    left_out += 1
                    continue
                found.add(key)
                state = self._changed(key, root.real.joinpath(*file.parts))
                left_out += state is False
                if isinstance(state, FileState):
                    yield state
            if self._left_out.get(number, 0) != left_out:
                self._left_out[number] = left_out
                yield FilesLeftOut(root=number, count=left_out)
        for root_number, path in [*self._told.keys() - found]:
            del self._told[root_number, path]
            yield FileState(root=root_number, path=path)

    def _changed(self, key: tuple[int, str], path: Path) -> FileState | bool:
        """The file's state if it is news; False when it has no place here."""
        try:
            status = os.stat(path)
            now = (status.st_mtime_ns, status.st_size)
            if self._told.get(key) == now:
                return True
            if status.st_size > MAX_FILE_BYTES or self._bytes + status.st_size > MAX_BYTES:
                return False
            data = path.read_bytes()
        except OSError:
            return False
        self._told[key] = now
        self._bytes += len(data)
        data = masked_bytes(data, self._secrets)
        try:
            return FileState(root=key[0], path=key[1], text=data.decode())
        except UnicodeDecodeError:
            return FileState(root=key[0], path=key[1], base64=data)
