"""The folder that a one-file program is unpacked into, and the marker that it is in use.

Such a program is two processes (PyInstaller): the first unpacks, starts the second, forwards
signals to it, waits for it and removes the folder. We are the second.
"""

import _thread
import os
import sys
import time
from collections.abc import Callable

if sys.platform == "win32":
    import _winapi
else:
    import fcntl

MARKER = "_build.json"
"""A file in every built package; a process that runs from an unpacked one holds it open."""

UNPACKED_PREFIX = "_MEI"

_POLL_SECONDS = 2.0


def unpacked_folder() -> str | None:
    """Return where this program was unpacked to; None if it is not a one-file program."""
    folder: str | None = getattr(sys, "_MEIPASS", None)
    if folder is None or not os.path.basename(folder).startswith(UNPACKED_PREFIX):
        return None
    return folder


def hold_unpacked(orphaned: Callable[[], None]) -> None:
    """Protect our folder from the `leftovers` of other processes until this process ends.

    Calls `orphaned()` on a thread of its own when the process that unpacked us is gone.
    """
    folder = unpacked_folder()
    if folder is None:
        return
    # On Windows an open file cannot be removed; other systems need a lock.
    marker = os.open(os.path.join(folder, "kode_sidecar", MARKER), os.O_RDONLY)
    if sys.platform != "win32":
        fcntl.flock(marker, fcntl.LOCK_SH)
    _thread.start_new_thread(_watch_parent, (os.getppid(), orphaned))


def _watch_parent(process_id: int, gone: Callable[[], None]) -> None:
    if sys.platform == "win32":
        synchronize = 0x00100000
        try:
            handle = _winapi.OpenProcess(synchronize, False, process_id)
            _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
        except OSError:
            pass  # it is gone already
    else:
        while os.getppid() == process_id:
            time.sleep(_POLL_SECONDS)
    gone()
