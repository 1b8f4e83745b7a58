"""Large tool output, kept whole as `conversations/{id}/artifacts/{name}.txt`."""

import os
from collections.abc import Callable
from pathlib import Path

from kode_sidecar.records.json_text import clean_text
from kode_sidecar.records.storage_error import not_saved

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Artifacts:
    """The artifacts of one conversation; its folder appears with the first of them."""

    def __init__(self, conversation_folder: Path, new_id: Callable[[], str]) -> None:
        self._folder = conversation_folder / "artifacts"
        self._new_id = new_id

    def save(self, text: str) -> str:
        """Write a text and return its file name. Raises KodeError `Storage`."""
        name = f"{self._new_id()}.txt"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(self._folder / name, _FLAGS, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(clean_text(text).encode())
        except OSError as error:
            raise not_saved(f"artifacts/{name}", error) from None
        return name
