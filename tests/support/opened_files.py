"""Which files the process opens meanwhile, heard from the interpreter itself."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_EVENTS = ("open", "sqlite3.connect")

_opened: list[tuple[str, bool]] | None = None


def _receive(event: str, args: tuple[Any, ...]) -> None:
    if event in _EVENTS and _opened is not None and isinstance(args[0], str | os.PathLike):
        on_loop = threading.current_thread() is threading.main_thread()
        _opened.append((os.path.basename(os.fspath(args[0])), on_loop))


sys.addaudithook(_receive)  # it cannot be taken back


@contextmanager
def opened_files() -> Generator[list[tuple[str, bool]]]:
    """The names of files that are opened meanwhile, each with whether the event loop did it."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None
