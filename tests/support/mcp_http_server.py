"""A raw MCP server over HTTP, good or bad. Standard library only and nothing of ours.

`bad_server("dies")` serves on this machine while its block runs. It speaks 2025-11-25.
"""

# pyright: basic

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.served import served

TOOL = {"name": "go", "inputSchema": {"type": "object"}}
LETS_IN = "the-token-that-was-kept-1234"
MEGABYTE = b"x" * 1_000_000


class BadServer(ThreadingHTTPServer):
    """`asked` are the requests as (method, headers); `other` is where it redirects to.

    `lost` is the status and body by which a server in the mode `sessions` says after its first
    call that it has forgotten the session.
    """

    daemon_threads = True

    def __init__(self, mode: str, other: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode, self.other = mode, other
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent, self.owed = 0, 0
        self.lost, self.session = (404, ""), 1
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is what is tried here."""


@contextmanager
def bad_server(mode: str, other: str = "") -> Iterator[BadServer]:
    server = BadServer(mode, other)
    with served(server):
        try:
            yield server
        finally:
            server.over.set()


class _Handler(BaseHTTPRequestHandler):
    server: BadServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(("GET", dict(self.headers)))
        if self.headers["last-event-id"] == "7":
            content = {"content": [{"type": "text", "text": "at last"}]}
            said = {"jsonrpc": "2.0", "id": self.server.owed, "result": content}
            self.begin("text/event-stream")
            self.chunk(f"id: 8\ndata: {json.dumps(said)}\n\n".encode())
            self.chunk(b"")
        else:
            self.plain(405)

    do_DELETE = do_GET

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method", "")
        self.server.asked.append((method, dict(self.headers)))
        mode = self.server.mode
        if mode == "locked" and self.headers["authorization"] != f"Bearer {LETS_IN}":
            self.plain(401)
        elif mode == "no_start" or (mode == "silent" and method == "tools/call"):
            self.server.over.wait()
        elif mode == "redirect_at_once" or (mode == "redirect" and method == "tools/call"):
            self.plain(307, location=self.server.other)
        elif mode == "fails_at_once":
            self.plain(503, "out of cheese")
        elif mode == "slash" and not self.path.endswith("/"):
            self.plain(self.server.lost[0], location=self.server.other)
        elif mode == "sessions" and "id" in message and self.forgotten(method):
            status, body = self.server.lost
            kind = "text/event-stream" if body.startswith("data:") else "application/json"
            body = body.replace("@ID", str(message["id"]))
            self.plain(status, body, **{"content-type": kind})
        elif method == "tools/call":
            getattr(self, f"call_{mode}", self.call_well)(message["id"])
        elif method == "initialize":
            able = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            result = {**able, "serverInfo": {"name": "bad", "version": "1"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            session = {"mcp-session-id": f"s{self.server.session}"} if mode == "sessions" else {}
            self.plain(200, body, **session)
        elif method == "tools/list":
            self.answer(message["id"], self.page(message.get("params", {}).get("cursor")))
        elif "id" in message:
            error = {"code": -32601, "message": "no such method"}
            self.plain(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        else:
            self.plain(202)

    def forgotten(self, method: str) -> bool:
        session = self.headers["mcp-session-id"]
        return (
            method not in ("initialize", "server/discover") and session != f"s{self.server.session}"
        )

    def call_sessions(self, number: int) -> None:
        self.answer(number, {"content": [{"type": "text", "text": f"in s{self.server.session}"}]})
        self.server.session = 2

    def page(self, cursor: str | None) -> dict[str, Any]:
        if self.server.mode != "many":
            return {"tools": [TOOL]}
        start = int(cursor or 0)
        tools = [{**TOOL, "name": f"tool_{n}"} for n in range(start, start + 100)]
        return {"tools": tools, **({"nextCursor": str(start + 100)} if start < 400 else {})}

    def call_well(self, number: int) -> None:
        self.answer(number, {"content": [{"type": "text", "text": "well"}]})

    def call_huge(self, number: int) -> None:
        self.stream("application/json", b'{"jsonrpc":"2.0","id":%d,"result":"' % number)

    def call_huge_event(self, number: int) -> None:
        self.stream("text/event-stream", b'data: {"jsonrpc":"2.0","id":%d,"result":"' % number)

    def stream(self, kind: str, head: bytes) -> None:
        """100 MB, as fast as they are taken."""
        self.begin(kind)
        self.chunk(head)
        for _ in range(100):
            self.chunk(MEGABYTE)
            self.server.sent += 1

    def call_dies(self, number: int) -> None:
        """In the middle of a stream."""
        self.begin("text/event-stream")
        note = {"method": "notifications/message", "params": {"level": "info", "data": number}}
        self.chunk(f"data: {json.dumps({'jsonrpc': '2.0', **note})}\n\ndata: {{".encode())
        self.hang_up()

    def call_resumes(self, number: int) -> None:
        """The answer comes to who takes the broken stream up again."""
        self.server.owed = number
        self.begin("text/event-stream")
        self.chunk(b"id: 7\nretry: 1\ndata: \n\n")
        self.hang_up()

    def call_cut(self, _: int) -> None:
        """In the middle of a body whose length it told."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"jsonrpc"')
        self.hang_up()

    def call_junk(self, _: int) -> None:
        self.plain(200, "<html>Welcome!</html>")

    def call_fails(self, _: int) -> None:
        self.plain(503, "out of cheese")

    def answer(self, number: int, result: dict[str, Any]) -> None:
        self.plain(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))

    def plain(self, status: int, text: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        body = text.encode()
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""
