"""The processes of a Windows machine (`CreateToolhelp32Snapshot`, Wine has it as well)."""

import ctypes
import sys
from collections.abc import Iterator

_PROCESSES = 0x2
# Started by whatever process first needs a console or, under Wine, a desktop.
_SYSTEM = ("conhost.exe", "explorer.exe")


class _Entry(ctypes.Structure):
    """PROCESSENTRY32W"""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("process_id", ctypes.c_uint32),
        ("heap", ctypes.c_size_t),
        ("module", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("parent_id", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_wchar * 260),
    )


def processes() -> Iterator[tuple[int, int]]:
    """Each one's id and its parent's; a console's own process belongs to the system."""
    assert sys.platform == "win32"
    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    snapshot = ctypes.c_void_p(kernel.CreateToolhelp32Snapshot(_PROCESSES, 0))
    entry = _Entry(size=ctypes.sizeof(_Entry))
    more = kernel.Process32FirstW(snapshot, ctypes.byref(entry))
    while more:
        if entry.name.lower() not in _SYSTEM:
            yield entry.process_id, entry.parent_id
        more = kernel.Process32NextW(snapshot, ctypes.byref(entry))
    kernel.CloseHandle(snapshot)
