"""The folder that a one-file program is unpacked into, and its mark of being in use.

Such a program is two processes (PyInstaller): the first unpacks, starts the second, forwards
signals to it, waits for it and removes the folder. We are the second.
"""

import os
import sys

if sys.platform != "win32":
    import fcntl

MARKER = "_build.json"
"""Lies in the package of everything that was built; held open by who runs from an unpacked one."""

UNPACKED_PREFIX = "_MEI"


def unpacked_folder() -> str | None:
    """Where this program was unpacked to; None if it is no one-file program."""
    folder: str | None = getattr(sys, "_MEIPASS", None)
    if folder is None or not os.path.basename(folder).startswith(UNPACKED_PREFIX):
        return None
    return folder


def hold_unpacked() -> None:
    """Keep `leftovers` of other processes from our folder, until this one ends."""
    folder = unpacked_folder()
    if folder is None:
        return
    # On Windows an open file cannot be removed; elsewhere it takes a lock.
    marker = os.open(os.path.join(folder, "kode_sidecar", MARKER), os.O_RDONLY)
    if sys.platform != "win32":
        fcntl.flock(marker, fcntl.LOCK_SH)
