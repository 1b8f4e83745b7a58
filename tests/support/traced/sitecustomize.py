"""Put on PYTHONPATH, this lets a test ask a Python process which of our files it enters.

It connects to KODE_TEST_TRACE_PORT on the loopback and answers lines. `begin FILE` forgets what was
entered and waits until that file is, if one is named. `end` lists what was entered since: each file
with the moment of the first time (`time.monotonic_ns`) and the functions. `modules` lists what is
imported. Only a process with that variable is traced.
"""

import _thread
import json
import os
import socket
import sys
import threading
import time
from types import FrameType
from typing import Any

# Threads that have their own business, beside whatever a test looks at.
_BESIDE = ("json-log", "kode-loader", "kode-watchdog")
_PACKAGE = os.sep + "kode_sidecar" + os.sep
_entered: dict[str, tuple[int, set[str]]] = {}
_traced = False
_first = ""


def _note(frame: FrameType, event: str, _argument: Any) -> None:
    global _first
    if not _traced or event != "call":
        return
    code = frame.f_code
    if _PACKAGE not in code.co_filename or not code.co_filename.endswith(_first):
        return
    if threading.current_thread().name.startswith(_BESIDE):
        return
    _first = ""
    found = _entered.get(code.co_filename)
    if found is None:
        found = _entered[code.co_filename] = (time.monotonic_ns(), set())
    found[1].add(code.co_qualname)


def _answer(question: str) -> Any:
    global _traced, _first
    if question == "modules":
        return sorted(sys.modules)
    word, _, file = question.partition(" ")
    _traced, _first = word == "begin", file.replace("/", os.sep)
    entered = {path: (at, sorted(names)) for path, (at, names) in dict(_entered).items()}
    _entered.clear()
    return entered


def _serve(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for line in connection.makefile("r", encoding="ascii"):
            connection.sendall(json.dumps(_answer(line.strip())).encode() + b"\n")


if "KODE_TEST_TRACE_PORT" in os.environ:
    # Children of the process are none of it.
    _thread.start_new_thread(_serve, (int(os.environ.pop("KODE_TEST_TRACE_PORT")),))
    threading.setprofile(_note)
    sys.setprofile(_note)
