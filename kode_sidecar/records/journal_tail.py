"""Reads on in the journal of a session that another process writes to."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.records.journal import JOURNAL_FILE

# How long nothing is looked at: what another process says is seen about as soon as a person can
# tell, and a session in which nothing happens costs next to nothing.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_READ_BYTES = 1024 * 1024


class JournalTail:
    """The lines that are appended to a journal from now on, by whoever may write.

    Nothing is kept open in between. Where the file was replaced, as by a repair, it begins anew
    with the first line, so a reader passes over the events that it knows.
    """

    def __init__(self, folder: Path) -> None:
        self.session_id = folder.name
        self._path = folder / JOURNAL_FILE
        self._number = self._position = 0
        while self.read():
            pass

    async def grown(self) -> Sequence[bytes] | None:
        """Wait until there are new lines, and return them whole; None when the session is gone.

        It looks again and again, on a thread: no system tells of every file on every disk.
        """
        pause = _SHORTEST_PAUSE
        while (lines := await asyncio.to_thread(self.read)) == []:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return lines

    def read(self) -> list[bytes] | None:
        """Return whole lines that are new, about a megabyte at most; None without the session.

        Blocks.
        """
        try:
            status = os.stat(self._path)
            if status.st_ino != self._number or status.st_size < self._position:
                self._number, self._position = status.st_ino, 0
            if status.st_size == self._position:
                return []
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(_READ_BYTES)
                if not data.endswith(b"\n"):
                    data += file.readline()
        except FileNotFoundError:
            return [] if self._path.parent.is_dir() else None
        except OSError:
            return []  # what a disk refuses now is asked for again
        whole = data.rfind(b"\n") + 1
        self._position += whole
        return data[:whole].split(b"\n")[:-1]
