"""The face for ACP beside the LSP one: its start, its imports, and one streamed delta."""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from statistics import median
from timeit import timeit

from benchmarks.figures import Figure
from benchmarks.programs import ROOT, SIDECAR, Arena
from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.base_protocol import encode_frame, encode_line
from kode_sidecar.servers.acp import ACP
from kode_sidecar.servers.acp.dialect import chunk_head
from kode_sidecar.servers.boot.system import RandomIds
from kode_sidecar.servers.lsp.codec import LSP, RpcDialect

_ROUNDS = 20_000
_IMPORT = """import time, kode_sidecar.servers.boot.app
start = time.process_time()
import kode_sidecar.servers.boot.acp_app
print((time.process_time() - start) * 1e3)"""


def acp(arena: Arena, runs: int) -> list[Figure]:
    """Start to `initialize` of both faces, what the second one imports, one delta in both."""
    del arena
    starts: list[tuple[float, float]] = [(_start_ms("acp"), _start_ms()) for _ in range(runs + 1)]
    ours = median(one for one, _ in starts[1:])
    theirs = median(other for _, other in starts[1:])
    session_id, kind = str(uuid.uuid4()), "agent_message_chunk"
    head = chunk_head(session_id, kind, RandomIds()("message"))
    delta, plain = BlockDelta(head, 0, "word "), BlockDelta("b0123456789", 0, "word ")
    size, least = len(ACP.deltas([delta])), len(_leanest(session_id, kind, "word "))
    lsp = "the LSP face"
    return [
        Figure("acp: spawn to initialize", "ms", {SIDECAR: ours}, 1.3, None, theirs, lsp),
        Figure("acp: imports over the LSP face", "ms", {SIDECAR: _import_ms(runs)}, most=15),
        Figure(
            "acp: encoding a delta",
            "us",
            {SIDECAR: _encode_us(ACP, delta)},
            most_ratio=1,
            base=_encode_us(LSP, plain),
            base_name=lsp,
        ),
        Figure(
            "acp: bytes of a delta alone",
            "B",
            {SIDECAR: size},
            most_ratio=1.2,
            base=least,
            base_name="without a message's id",
        ),
    ]


def _leanest(session_id: str, kind: str, text: str) -> bytes:
    """What no agent can do with less, whose sessions are UUIDs."""
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    params = {"sessionId": session_id, "update": update}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return encode_line(json.dumps(message, separators=(",", ":")).encode())


def _start_ms(*arguments: str) -> float:
    version: dict[str, object] = {
        "protocolVersion": 1,
        "capabilities": {},
        "processId": None,
        "rootUri": None,
    }
    hello: dict[str, object] = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": version,
    }
    body = json.dumps(hello).encode()
    command = [sys.executable, "-m", "kode_sidecar", *arguments]
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_line(body) if arguments else encode_frame(body))
        process.stdin.flush()
        process.stdout.readline()
        passed = time.perf_counter() - start
        process.kill()
    return passed * 1e3


def _import_ms(runs: int) -> float:
    """As it is installed: compiled. The first run compiles, and does not count."""
    command = [sys.executable, "-c", _IMPORT]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        reported = [
            float(subprocess.check_output(command, cwd=ROOT, env=environment))
            for _ in range(runs + 1)
        ]
    return median(reported[1:])


def _encode_us(dialect: RpcDialect, delta: BlockDelta) -> float:
    return timeit(lambda: dialect.deltas([delta]), number=_ROUNDS) / _ROUNDS * 1e6
