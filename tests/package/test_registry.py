"""What the registry of ACP does with our entry: starts it by `uvx`, and asks for ways to sign in.

Its own check runs where `KODE_TEST_ACP_REGISTRY` names a checkout of agentclientprotocol/registry,
which no package registry has.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.package.test_package import hatchling
from tests.support.acp_client import AcpClient
from tests.support.foreign import not_available
from tests.support.program import ROOT
from tests.support.python_tools import python_programs
from tests.support.sidecar import HANG_SECONDS

# Read now: nothing of whoever runs the tests reaches them later.
REGISTRY = os.environ.get("KODE_TEST_ACP_REGISTRY", "")
ENTRY = ROOT / "protocol" / "acp"
PINS = ROOT / "tests" / "support" / "pypi_registry"
# As its check announces itself: nothing of signing in by a terminal in the words of the schema.
CAPABILITIES = {
    "terminal": True,
    "fs": {"readTextFile": True, "writeTextFile": True},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}


def environment(folder: Path) -> dict[str, str]:
    """In which `uvx` finds the wheel of this checkout in place of a published one."""
    hatchling(ROOT, "wheel", folder / "wheel")
    programs = python_programs(PINS)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_FIND_LINKS": str(folder / "wheel"),
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }


async def test_uvx_starts_the_package_of_the_entry(tmp_path: Path) -> None:
    with_uv = environment(tmp_path)
    wanted = json.loads((ENTRY / "agent.json").read_bytes())["distribution"]["uvx"]
    process = await asyncio.create_subprocess_exec(
        str(python_programs(PINS) / "uvx"),
        wanted["package"],
        *wanted["args"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=with_uv,
        cwd=tmp_path,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def write(data: bytes) -> None:
        stdin.write(data)
        await stdin.drain()

    client = AcpClient(stdout, write)
    try:
        reported = await client.initialize(**CAPABILITIES)
        assert reported["agentInfo"]["name"] == "kode-sidecar"
        # Without a type it is the agent's own way, which the registry takes.
        assert [one for one in reported["authMethods"] if one.get("type", "agent") == "agent"]
        stdin.close()
        async with asyncio.timeout(HANG_SECONDS):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await client.close()


def test_the_registrys_own_check_passes(tmp_path: Path) -> None:
    if not REGISTRY:
        not_available("KODE_TEST_ACP_REGISTRY names no checkout of the registry")
    with_uv = {**environment(tmp_path), "SKIP_URL_VALIDATION": "1"}  # nothing is published yet
    registry = tmp_path / "registry"
    shutil.copytree(REGISTRY, registry, ignore=shutil.ignore_patterns(".git", ".sandbox"))
    entry = registry / "kode-sidecar"
    entry.mkdir()
    for name in ("agent.json", "icon.svg"):
        shutil.copy(ENTRY / name, entry)

    def run(name: str, *arguments: str) -> str:
        script = registry / ".github" / "workflows" / name
        done = subprocess.run(
            [str(python_programs(PINS) / "python"), str(script), *arguments],
            cwd=registry,
            env=with_uv,
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS * 5,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = run("build_registry.py")
    assert "Added agent: kode-sidecar" in said
    assert "jsonschema not installed" not in said
    assert "Auth OK" in run("verify_agents.py", "--agent", "kode-sidecar", "--auth-check")
