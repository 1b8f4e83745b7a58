"""Put on PYTHONPATH, this makes an asyncio process note how long its event loop worked at a time.

A line is written for each step of more than a millisecond, in nanoseconds of the loop's own
processor time: what else the machine does is not counted.
"""

import asyncio
import os
from time import thread_time_ns

_fd = os.open(os.environ["BENCH_STEP_LOG"], os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
_run = asyncio.Handle._run  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def _timed(handle: asyncio.Handle) -> None:
    begun = thread_time_ns()
    _run(handle)
    taken = thread_time_ns() - begun
    if taken > 1_000_000:
        os.write(_fd, b"%d\n" % taken)


asyncio.Handle._run = _timed  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
