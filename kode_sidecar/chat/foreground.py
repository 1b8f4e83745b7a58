"""Ctrl-C once, and not twice, in a program that is two processes.

The terminal sends SIGINT to its whole foreground group, and the first process of a one-file program
forwards every signal it gets to the second, which is us: a group of our own leaves the first out.
Ctrl-Z then means nothing, as the shell would not be told that we stopped. Source: POSIX, General
Terminal Interface.
"""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from kode_sidecar.boot.unpacked import unpacked_folder


@contextmanager
def own_foreground() -> Generator[None, None, None]:
    """Have the terminal on standard input to ourselves, where that is needed and can be."""
    if sys.platform == "win32" or unpacked_folder() is None or not os.isatty(0):
        yield
        return
    before = os.tcgetpgrp(0)
    if before != os.getpgrp() or os.getpid() == before:
        yield  # started in the background, or on our own
        return
    stopped = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    with suppress(OSError):
        os.setpgid(0, 0)
        _give_terminal(os.getpgrp())
    try:
        yield
    finally:
        with suppress(OSError):  # hung up
            _give_terminal(before)
        signal.signal(signal.SIGTSTP, stopped)


def _give_terminal(group: int) -> None:
    if sys.platform != "win32":
        # Who is not in the foreground would be stopped by it.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)
