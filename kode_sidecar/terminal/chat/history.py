"""Stores the prompts of earlier sessions, for the arrow keys and Ctrl-R."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from kode_sidecar.core.whole_files import make_private, move_over, write_beside

FILE = "chat-history.jsonl"
MOST_BYTES = 1_000_000
"""Above this size the older half is dropped."""


class PromptHistory(History):
    """Saves prompts in a file of the state folder, one a line, that only the user can read.

    `folder` is set before the first one is loaded; without it nothing is saved. If the file cannot
    be read or written, only the history is missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder: Path | None = None

    def load_history_strings(self) -> Iterable[str]:
        """Return the prompts, newest first."""
        prompts: list[str] = []
        for line in reversed(self._lines()):
            with suppress(ValueError):
                prompt = json.loads(line)
                if isinstance(prompt, str) and prompt not in prompts[-1:]:
                    prompts.append(prompt)
        return prompts

    def store_string(self, string: str) -> None:
        """Append a prompt; several chats may append to the file at once."""
        if self.folder is None:
            return
        record = json.dumps(string).encode() + b"\n"
        with suppress(OSError):
            make_private(self.folder)
            file = os.open(self.folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, record)
                size = os.fstat(file).st_size
            finally:
                os.close(file)
            if size > MOST_BYTES:
                self._shorten()

    def _shorten(self) -> None:
        lines = self._lines()
        path = (self.folder or Path()) / FILE
        shorter = b"".join(line + b"\n" for line in lines[len(lines) // 2 :])
        move_over(write_beside(path, shorter, durable=False), path)

    def _lines(self) -> list[bytes]:
        if self.folder is None:
            return []
        try:
            return (self.folder / FILE).read_bytes().split(b"\n")[:-1]
        except OSError:
            return []
