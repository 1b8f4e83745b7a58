"""The official conformance suite over our client, whole, for both generations (F5)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def suite(cwd: Path, *arguments: str) -> str:
    """What the suite says when it runs with these arguments."""
    program = node_modules(PINS) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    done = subprocess.run(
        [*node(), str(program), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)


@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_the_official_suite_is_satisfied(version: str, scenario: str, tmp_path: Path) -> None:
    which = ("--spec-version", version, "--scenario", scenario)
    how = ("--command", f"{sys.executable} {CLIENT}", "--timeout", "240000")
    output = suite(tmp_path, "client", *which, *how)
    assert "OVERALL: PASSED" in output, output[-3_000:]


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
def test_no_scenario_that_a_generation_requires_is_left_out(version: str, tmp_path: Path) -> None:
    listed = suite(tmp_path, "list", "--requirements", version)
    required = listed.split("Client scenarios")[1].split("Run and reported")[0]
    names = re.findall(r"^  - (\S+)$", required, re.MULTILINE)
    assert "tools_call" in names
    assert set(names) <= {name for played, name in SCENARIOS if played == version}
