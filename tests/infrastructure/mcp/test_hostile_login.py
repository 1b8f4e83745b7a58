"""A log-in to a server that means harm, by the command itself over real sockets (W19)."""

import asyncio
import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.mcp.test_login import Guarded
from tests.support.program import ROOT
from tests.support.served import served
from tests.support.sidecar import HANG_SECONDS


class Hostile(Guarded):
    """Says of its log-in what a test wants it to say."""

    server: "HostileServer"

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        if ".well-known/oauth-protected-resource" in self.path:
            self.say(self.server.filled(self.server.resource, self.base))
        elif ".well-known/oauth-authorization-server" in self.path:
            if self.server.bomb:
                self.say_bomb()
            elif self.server.moved:
                self.say({}, 302, location=self.server.moved)
            else:
                self.say(self.server.filled(self.server.login, self.base))
        else:
            self.say({}, 404)

    def do_POST(self) -> None:
        self.server.asked.append(f"POST {self.path}")
        if self.path == "/mcp" and self.server.challenge:
            self.say({}, 401, **{"www-authenticate": self.server.challenge})
        else:
            super().do_POST()

    def say_bomb(self) -> None:
        self.send_response(200)
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(BOMB)))
        self.end_headers()
        self.wfile.write(BOMB)


BOMB = gzip.compress(b" " * 100_000_000, 1) * 20


class HostileServer(ThreadingHTTPServer):
    """`BASE` in what it says is its own address."""

    bomb, moved, challenge = False, "", ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hostile)
        self.asked: list[str] = []
        self.resource: Any = {"resource": "BASE/mcp", "authorization_servers": ["BASE"]}
        self.login: Any = {
            "issuer": "BASE",
            "authorization_endpoint": "BASE/authorize",
            "token_endpoint": "BASE/token",
            "registration_endpoint": "BASE/registration",
        }

    def filled(self, value: Any, base: str) -> Any:
        return json.loads(json.dumps(value).replace("BASE", base))


@contextmanager
def serving() -> Iterator[HostileServer]:
    server = HostileServer()
    with served(server):
        yield server


async def log_in(server: HostileServer, home: Path) -> tuple[int, str]:
    """The exit code of `mcp login`, and all that it showed."""
    entry = {"url": f"http://127.0.0.1:{server.server_address[1]}/mcp"}
    (home / "config.yaml").write_text(json.dumps({"mcp": {"web": entry}}), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LIMITED, "mcp", "login", "web"),
        cwd=ROOT,
        env={"KODE_HOME": str(home), "PATH": "", "PYTHONUTF8": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(HANG_SECONDS):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


# Where the system can, with so little memory that what is unpacked whole ends it.
LIMITED = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
except ImportError:
    pass
from kode_sidecar.__main__ import main
sys.exit(main())
"""


async def refused(server: HostileServer, home: Path) -> str:
    code, said = await log_in(server, home)
    assert code != 0
    assert "The MCP server web" in said, said
    assert "Traceback" not in said
    assert "Open this" not in said, "nothing is offered to be opened"
    assert all(line.isprintable() for line in said.splitlines())
    return said


async def test_a_packed_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with serving() as server:
        server.bomb = True
        assert "more than 1,000,000 bytes" in await refused(server, tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://example.com/\x1b]0;title\x07\x1b[2J",
        "https://example.com/\n\nOpen https://evil.example/ instead",
        "https://good.example@192.168.0.1/",
        "https://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "OTHER/delete",
    ],
)
async def test_what_a_browser_should_not_open_is_not_offered(address: str, tmp_path: Path) -> None:
    with serving() as other, serving() as server:
        there = f"http://127.0.0.1:{other.server_address[1]}"
        place = address.replace("OTHER", there)
        server.login = {**server.login, "authorization_endpoint": place}
        await refused(server, tmp_path)
        assert other.asked == []


@pytest.mark.parametrize("what", ["token", "registration", "issuer", "metadata", "redirect"])
async def test_no_other_service_of_this_machine_is_asked(what: str, tmp_path: Path) -> None:
    with serving() as other, serving() as server:
        there = f"http://127.0.0.1:{other.server_address[1]}"
        if what == "issuer":
            server.resource = {**server.resource, "authorization_servers": [there]}
        elif what == "metadata":
            server.challenge = f'Bearer resource_metadata="{there}/secret"'
        elif what == "redirect":
            server.moved = f"{there}/secret"
        else:
            server.login = {**server.login, f"{what}_endpoint": f"{there}/secret"}
        said = await refused(server, tmp_path)
        assert what == "redirect" or "not on the public internet" in said
        assert other.asked == []


ODD: list[Any] = [
    {"authorization_servers": {"a": 1}},
    {"authorization_servers": [5]},
    {"authorization_servers": "BASE"},
    {"authorization_servers": ["https://[::1"]},
    {"resource": ["BASE"]},
    {"resource": "http://[", "authorization_servers": ["BASE"]},
    {"resource": "\x1b[2Jhttps://elsewhere.example/"},
    [],
    "text",
]


@pytest.mark.parametrize("said", ODD, ids=[str(number) for number in range(len(ODD))])
async def test_metadata_of_another_form(said: Any, tmp_path: Path) -> None:
    with serving() as server:
        server.resource = said
        server.login = {"authorization_endpoint": 5, "scopes_supported": 7}
        await refused(server, tmp_path)
