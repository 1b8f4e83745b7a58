"""The official conformance suite over our client, and real servers from npm (F5)."""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kode_sidecar.mcp.contracts import Host, ServerConfig
from kode_sidecar.mcp.remembered import RememberedLists
from kode_sidecar.mcp.server import Server
from tests.conftest import FULL, SEED_VARIABLE
from tests.support.node_tools import node, node_modules
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

PINS = ROOT / "tests" / "support" / "npm_mcp"
CLIENT = ROOT / "tests" / "support" / "mcp_conformance_client.py"
STATEFUL, STATELESS = "2025-11-25", "2026-07-28"
# What both generations ask of a client that can send a user to a browser.
LOGINS = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-step-up"),
    *("scope-omitted-when-undefined", "scope-retry-limit", "pre-registration"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
)
NEW_LOGINS = (
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
    *("authorization-server-migration", "iss-supported", "iss-not-advertised"),
    *("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"),
    "metadata-issuer-mismatch",
)
SCENARIOS = (
    *((STATEFUL, name) for name in ("initialize", "tools_call", "sse-retry")),
    (STATEFUL, "elicitation-sep1034-client-defaults"),
    *((version, f"auth/{name}") for version in (STATEFUL, STATELESS) for name in LOGINS),
    *((STATELESS, f"auth/{name}") for name in NEW_LOGINS),
    *((STATELESS, name) for name in ("tools_call", "request-metadata", "http-standard-headers")),
    *((STATELESS, name) for name in ("http-custom-headers", "http-invalid-tool-headers")),
    *((STATELESS, name) for name in ("sep-2322-client-request-state",)),
    (STATELESS, "json-schema-2020-12-preservation"),
)
SAMPLE = SCENARIOS if FULL else random.Random(os.environ[SEED_VARIABLE]).sample(SCENARIOS, 4)


@pytest.mark.parametrize(("version", "scenario"), SAMPLE)
def test_the_official_suite_is_satisfied(version: str, scenario: str, tmp_path: Path) -> None:
    suite = node_modules(PINS) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    done = subprocess.run(
        [
            *(*node(), str(suite), "client", "--spec-version", version, "--scenario", scenario),
            *("--command", f"{sys.executable} {CLIENT}", "--timeout", "90000"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    assert "OVERALL: PASSED" in output, output[-3_000:]


@pytest.mark.parametrize(
    ("package", "tool", "arguments", "expected"),
    [
        ("everything", "echo", {"message": "你好"}, "你好"),
        ("filesystem", "list_directory", {"path": "."}, "[FILE] here.txt"),
    ],
)
async def test_real_servers_answer(
    package: str, tool: str, arguments: dict[str, str], expected: str, tmp_path: Path
) -> None:
    (tmp_path / "here.txt").write_text("x", encoding="utf-8")
    script = (
        node_modules(PINS) / "@modelcontextprotocol" / f"server-{package}" / "dist" / "index.js"
    )
    argv = (*node(), str(script), *([str(tmp_path)] if package == "filesystem" else []))
    server = Server(
        ServerConfig(package, argv, folder=str(tmp_path)),
        Host(),
        RememberedLists(None),
        environment=dict(os.environ),
        now=time.monotonic,
    )
    arguments = {key: str(tmp_path) if one == "." else one for key, one in arguments.items()}
    try:
        async with asyncio.timeout(HANG_SECONDS):
            result = await server.call(tool, arguments)
            assert expected in result.content[0].text
            assert len((await server.listing()).tools) > 5
    finally:
        await server.close()
