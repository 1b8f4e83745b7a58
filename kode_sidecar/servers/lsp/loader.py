"""Imports heavy modules on a thread, while the process already answers."""

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

_SWITCH_SECONDS = 0.0005
# lsprotocol makes each of its 550 classes twice, which leaves 8 MB of garbage. Only young objects
# are collected: the rest lives forever.
_COLLECT_YOUNG = (700, 10, 1_000)


@dataclass(frozen=True)
class LoadStep:
    """One step: `load()` runs on the loader's thread, then `ready(result)` on the loop."""

    name: str
    load: Callable[[], Any]
    ready: Callable[[Any], None]


async def load(steps: Sequence[LoadStep], on_failure: Callable[[str, Exception], None]) -> None:
    """Load the steps one by one: a second thread would slow down the first.

    Meanwhile threads switch often so that requests wait little, and only young garbage is
    collected; the loaded objects are then excluded from later collections. `on_failure(name,
    error)` is called on the loop; nothing more is loaded after it.
    """
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "kode-loader")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_COLLECT_YOUNG)
    gc.enable()
    try:
        for step in steps:
            try:
                loaded = await loop.run_in_executor(thread, step.load)
            except Exception as error:
                on_failure(step.name, error)
                return
            loop.call_soon(step.ready, loaded)
    finally:
        thread.shutdown(wait=False)
        gc.freeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def import_language_server() -> Any:
    """Import and return `build_language_server`, which imports pygls and lsprotocol."""
    from kode_sidecar.servers.lsp.language_server import build_language_server  # noqa: PLC0415

    return build_language_server
