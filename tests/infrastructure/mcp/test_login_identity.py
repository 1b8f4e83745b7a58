"""Who we are to a log-in server, and who it is: metadata documents of clients, and `iss`."""

import asyncio
import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from tests.infrastructure.mcp.test_login import Guarded
from tests.support.program import ROOT
from tests.support.served import served
from tests.support.sidecar import HANG_SECONDS

DOCUMENT = "https://kode.example/client.json"


class Identified(Guarded):
    """An MCP server whose log-in server promises and returns what a test wants."""

    server: "IdentifiedServer"  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/.well-known/oauth-authorization-server":
            ends = {name: f"{self.base}/{name.partition('_')[0]}" for name in self.server.ends}
            self.say({"issuer": self.base, **ends, **self.server.promised})
        elif place.path == "/authorization":
            asked = dict(parse_qsl(place.query))
            self.server.clients.append(asked["client_id"])
            back = {name: value.replace("BASE", self.base) for name, value in self.server.back}
            answer = urlencode({"state": asked["state"], **back})
            self.say({}, 302, location=f"{asked['redirect_uri']}?{answer}")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self.server.posted.append(self.path)
        super().do_POST()


class IdentifiedServer(ThreadingHTTPServer):
    """`clients` are the client ids that came to the page where the user agrees."""

    def __init__(self, promised: Mapping[str, Any], back: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Identified)
        self.promised, self.back = promised, tuple(back.items())
        self.ends = ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
        self.clients: list[str] = []
        self.posted: list[str] = []


@contextmanager
def serving(
    promised: Mapping[str, Any], back: Mapping[str, str] | None = None
) -> Generator[IdentifiedServer]:
    Guarded.newest = ""
    server = IdentifiedServer(promised, back or {"code": "c1"})
    with served(server):
        yield server


async def log_in(server: IdentifiedServer, home: Path, **entry: str) -> tuple[int, str]:
    """Agree to `mcp login` in a browser; its exit code, and what it said at the end."""
    url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    config = {"mcp": {"web": {"url": url, **entry}}}
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kode_sidecar", "mcp", "login", "web"),
        cwd=ROOT,
        env={"KODE_HOME": str(home), "PATH": "", "PYTHONUTF8": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    async with asyncio.timeout(HANG_SECONDS):
        said = b""
        while (line := await process.stdout.readline()) and not line.startswith(b"http"):
            said += line
        if line:
            async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as browser:
                await browser.get(line.decode().strip())
            said = b""
        said += await process.stdout.read()
        return await process.wait(), said.decode()


LET_IN = (0, "web lets you in, and has 1 tools.")
SUPPORTED = {"client_id_metadata_document_supported": True}


@pytest.mark.parametrize(
    ("promised", "entry", "client", "registers"),
    [
        (SUPPORTED, {"client_metadata_url": DOCUMENT}, DOCUMENT, False),
        (SUPPORTED, {}, "us", True),
        ({}, {"client_metadata_url": DOCUMENT}, "us", True),
        (SUPPORTED, {"client_id": "c", "client_metadata_url": DOCUMENT}, "c", False),
    ],
    ids=["document", "no document", "not supported", "registered by hand"],
)
async def test_who_we_are(
    promised: Mapping[str, Any],
    entry: Mapping[str, str],
    client: str,
    registers: bool,
    tmp_path: Path,
) -> None:
    with serving(promised) as server:
        code, said = await log_in(server, tmp_path, **entry)
        assert (code, said.strip()) == LET_IN
        assert server.clients == [client]
        assert ("/registration" in server.posted) is registers
        (kept,) = (tmp_path / "mcp").glob("*")
        assert json.loads(kept.read_bytes())


@pytest.mark.parametrize(
    ("promised", "entry", "wanted"),
    [
        (SUPPORTED, {}, "set its `client_id` or `client_metadata_url`."),
        ({}, {"client_metadata_url": DOCUMENT}, "set its `client_id`."),
    ],
)
async def test_a_log_in_server_without_registration_says_what_to_set(
    promised: Mapping[str, Any], entry: Mapping[str, str], wanted: str, tmp_path: Path
) -> None:
    with serving(promised) as server:
        server.ends.pop()
        code, said = await log_in(server, tmp_path, **entry)
        assert code != 0
        assert wanted in said
        assert server.clients == []


PROMISED = {"authorization_response_iss_parameter_supported": True}
RIGHT, OTHER = {"iss": "BASE"}, {"iss": "https://evil.example"}


@pytest.mark.parametrize("back", [{"code": "c1"}, {"error": "access_denied"}])
@pytest.mark.parametrize(
    ("promised", "named"),
    [(PROMISED, {}), (PROMISED, OTHER), ({}, OTHER), (PROMISED, {"iss": "BASE/"})],
    ids=["missing", "another", "another that nobody promised", "nearly the same"],
)
async def test_an_answer_of_another_log_in_server_is_not_used(
    promised: Mapping[str, Any],
    named: Mapping[str, str],
    back: Mapping[str, str],
    tmp_path: Path,
) -> None:
    with serving(promised, {**back, **named}) as server:
        code, said = await log_in(server, tmp_path)
        assert code != 0
        assert "was answered by another log-in server than was asked" in said
        assert "access_denied" not in said
        assert "/token" not in server.posted


@pytest.mark.parametrize("promised", [PROMISED, {}])
async def test_an_answer_of_the_log_in_server_that_was_asked_is_used(
    promised: Mapping[str, Any], tmp_path: Path
) -> None:
    with serving(promised, {"code": "c1", **RIGHT}) as server:
        code, said = await log_in(server, tmp_path)
        assert (code, said.strip()) == LET_IN
