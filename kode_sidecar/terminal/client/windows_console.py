"""Finds out whether a Windows console understands escape sequences."""

import ctypes
import sys
from typing import TextIO

if sys.platform == "win32":
    import msvcrt
    from ctypes import wintypes

    class _Place(ctypes.Structure):
        """COORD."""

        _fields_ = [("x", wintypes.SHORT), ("y", wintypes.SHORT)]

    class _ScreenBuffer(ctypes.Structure):
        """CONSOLE_SCREEN_BUFFER_INFO."""

        _fields_ = [
            ("size", _Place),
            ("cursor", _Place),
            ("attributes", wintypes.WORD),
            ("window", wintypes.SMALL_RECT),
            ("largest", _Place),
        ]


_ENABLE_VIRTUAL_TERMINAL_PROCESSING = 0x0004
_CHANGES_NOTHING = "\x1b[m"


def understands_escapes(out: TextIO) -> bool:
    """Turn on escape sequences in a terminal; return whether it understands them.

    Outside Windows every terminal does. Consoles before Windows 10, in legacy mode and of Wine
    print them instead. Wine claims to understand them, so we try one.
    """
    if sys.platform != "win32":
        return True
    console = wintypes.HANDLE(msvcrt.get_osfhandle(out.fileno()))
    kernel32 = ctypes.windll.kernel32
    mode = wintypes.DWORD()
    if not kernel32.GetConsoleMode(console, ctypes.byref(mode)):
        return False
    wanted = mode.value | _ENABLE_VIRTUAL_TERMINAL_PROCESSING
    if not kernel32.SetConsoleMode(console, wanted):
        return False
    out.flush()
    before, after, written = _ScreenBuffer(), _ScreenBuffer(), wintypes.DWORD()
    count = len(_CHANGES_NOTHING)
    kernel32.GetConsoleScreenBufferInfo(console, ctypes.byref(before))
    kernel32.WriteConsoleW(console, _CHANGES_NOTHING, count, ctypes.byref(written), None)
    kernel32.GetConsoleScreenBufferInfo(console, ctypes.byref(after))
    if before.cursor.x == after.cursor.x:
        return True
    kernel32.FillConsoleOutputCharacterW(
        console, wintypes.WCHAR(" "), count, before.cursor, ctypes.byref(written)
    )
    kernel32.SetConsoleCursorPosition(console, before.cursor)
    kernel32.SetConsoleMode(console, mode)
    return False
