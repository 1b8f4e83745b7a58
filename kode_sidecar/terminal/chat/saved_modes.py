"""Remembers the mode that the user chose last in each folder."""

import json
from contextlib import suppress
from pathlib import Path
from typing import cast

from kode_sidecar.core.whole_files import make_private, move_over, write_beside

FILE = "chat-modes.json"
_MOST_FOLDERS = 100


class SavedModes:
    """The mode that the user chose last in each folder. A hint that may be lost."""

    def __init__(self, state_folder: Path, root: Path) -> None:
        self._path, self._root = state_folder / FILE, str(root)

    def last(self) -> str | None:
        """Return the mode of this folder; None if none was chosen."""
        return self._modes().get(self._root)

    def keep(self, mode: str) -> None:
        """Save the mode of this folder, the latest at the end."""
        modes = [(root, one) for root, one in self._modes().items() if root != self._root]
        data = json.dumps(dict([*modes, (self._root, mode)][-_MOST_FOLDERS:])).encode()
        with suppress(OSError):
            make_private(self._path.parent)
            move_over(write_beside(self._path, data, durable=False), self._path)

    def _modes(self) -> dict[str, str]:
        try:
            modes: object = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        known = cast(dict[str, object], modes) if isinstance(modes, dict) else {}
        return {root: mode for root, mode in known.items() if isinstance(mode, str)}
