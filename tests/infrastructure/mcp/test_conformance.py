"""The official conformance suite over our client (F5)."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FULL, SEED_VARIABLE
from tests.support.node_tools import node, node_modules
from tests.support.program import ROOT

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
    *((STATELESS, f"json-schema-{name}") for name in ("2020-12-preservation", "ref-no-deref")),
    (STATEFUL, "json-schema-2020-12-preservation"),
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
