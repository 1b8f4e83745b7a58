"""The fake model server of `floor/`, as a process of its own."""

import json
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any

FLOOR = Path(__file__).resolve().parent / "floor"

PROMPT = "BENCHGO say something"
"""Requests whose body holds BENCHGO get the planned answer."""


class Model:
    """One server for all programs; a plan holds for one turn of one of them at a time."""

    program = FLOOR / "model_server.py"

    def __enter__(self) -> "Model":
        self._process = subprocess.Popen(
            [sys.executable, str(self.program)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        self._control = HTTPConnection("127.0.0.1", self.port)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def plan(self, **plan: Any) -> None:
        """What the next turn gets: `n` deltas of `size` bytes, `gap_ms` apart, after tools."""
        self._ask("POST", "/__ctl", json.dumps({"prebuild": "chat", **plan}))

    def request_times(self) -> list[int]:
        """When each request since the last plan arrived, on the monotonic clock in ns."""
        log = json.loads(self._ask("GET", "/__log", None))
        return [entry["t"] for entry in log if entry["e"] == "main"]

    def _ask(self, method: str, path: str, body: str | None) -> bytes:
        self._control.request(method, path, body)
        return self._control.getresponse().read()
