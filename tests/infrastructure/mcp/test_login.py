"""A log-in by the browser: agreed to once, kept for later processes, refreshed when it is old."""

import asyncio
import json
import stat
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import user_servers
from kode_sidecar.infrastructure.mcp.contracts import NO_ACCESS, TOKENS, McpHost
from kode_sidecar.infrastructure.mcp.oauth import OAuth, TokenFile
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists, ServerStore
from tests.support.program import ROOT
from tests.support.served import served
from tests.support.sidecar import HANG_SECONDS


class Guarded(BaseHTTPRequestHandler):
    """An MCP server that lets in who has the newest token, and the log-in server beside it."""

    newest, agreed = "", 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path.startswith("/.well-known/oauth-protected-resource"):
            self.say({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]})
        elif place.path == "/.well-known/oauth-authorization-server":
            ends = {f"{name}_endpoint": f"{self.base}/{name}" for name in ("token", "registration")}
            ends["authorization_endpoint"] = f"{self.base}/authorize"
            self.say({"issuer": self.base, "code_challenge_methods_supported": ["S256"], **ends})
        elif place.path == "/authorize":
            Guarded.agreed += 1
            asked = {name: values[0] for name, values in parse_qs(place.query).items()}
            back = urlencode({"code": "c1", "state": asked["state"]})
            self.say({}, 302, location=f"{asked['redirect_uri']}?{back}")
        else:
            self.say({}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/registration":
            self.say({"client_id": "us", "token_endpoint_auth_method": "none"}, 201)
        elif self.path == "/token":
            asked = parse_qs(body.decode())
            assert "code_verifier" in asked or asked["refresh_token"] == ["r"]
            Guarded.newest = f"token-{time.monotonic_ns()}"
            self.say({"access_token": Guarded.newest, "refresh_token": "r"})
        elif self.headers["authorization"] != f"Bearer {Guarded.newest}" or not Guarded.newest:
            where = f"{self.base}/.well-known/oauth-protected-resource"
            self.say({}, 401, **{"www-authenticate": f'Bearer resource_metadata="{where}"'})
        else:
            self.answer(json.loads(body))

    def answer(self, message: dict[str, Any]) -> None:
        known: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        }
        if "id" not in message:
            self.say({}, 202)
        elif message["method"] in known:
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": known[message["method"]]})
        else:
            error = {"code": -32601, "message": "no such method"}
            self.say({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def say(self, value: dict[str, Any], status: int = 200, **headers: str) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        fixed = {"content-type": "application/json", "content-length": str(len(data))}
        for name, text in {**fixed, **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Guarded.newest, Guarded.agreed = "", 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    with served(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"


async def test_a_login_is_agreed_to_once_and_kept(address: str, tmp_path: Path) -> None:
    raw = {"web": {"url": address}}
    (tmp_path / "config.yaml").write_text(json.dumps({"mcp": raw}), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kode_sidecar", "mcp", "login", "web"),
        cwd=ROOT,
        env={"KODE_HOME": str(tmp_path), "PATH": "", "PYTHONUTF8": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(HANG_SECONDS):
        while not (line := await process.stdout.readline()).startswith(b"http"):
            assert line
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as browser:
            page = await browser.get(line.decode().strip())
        assert "can be closed" in page.text
        said = await process.stdout.read()
    assert (await process.wait(), said.strip()) == (0, b"web lets you in, and has 1 tools.")
    kept = tmp_path / "mcp" / TOKENS
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    async def tools() -> int:
        (config,) = user_servers(raw, {})
        login = OAuth(config, TokenFile(kept), None)
        server = Server(
            config,
            McpHost(),
            RememberedLists(None),
            environment={},
            now=time.monotonic,
            access=(NO_ACCESS[0], login.authorize),
        )
        try:
            return len((await server.listing()).tools)
        finally:
            await server.close()

    assert await tools() == 1
    Guarded.newest = "another"  # ours is old now, and is refreshed
    assert await tools() == 1
    assert Guarded.agreed == 1
    kept.unlink()
    with pytest.raises(KodeError, match="kode-sidecar mcp login web"):
        await tools()


def test_a_file_of_log_ins_in_another_hand_loses_none(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    kept = ServerStore[str](path, str, durable=False)
    kept.put("one", "a")
    moved = path.rename(tmp_path / "moved.json")
    path.mkdir()  # cannot be read for a moment, as a file on Windows that is being replaced
    assert kept.get("one") == "a"
    path.rmdir()
    moved.rename(path)
    kept.put("two", "b")
    assert ServerStore[str](path, str, durable=False).get("one") == "a"
