"""The commands of the program, as a user types them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from kode_sidecar import __version__
from kode_sidecar.servers.boot.wire_files import WIRE_FILES
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS


def run(
    *arguments: str, cwd: Path = ROOT, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Run one command. A variable that is None is not there."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment}
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )


def test_the_version_and_a_wrong_command() -> None:
    assert run("--version").stdout.startswith(f"kode-sidecar {__version__} (commit ")
    wrong = run("sevre")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "invalid choice: 'sevre'" in wrong.stderr


def test_the_doctor_finds_prompts_and_search(tmp_path: Path) -> None:
    home = tmp_path / "我的 home"
    done = run("doctor", cwd=tmp_path, KODE_HOME=str(home), KIMI_API_KEY="sk-secret-key-0001")
    assert (done.returncode, done.stderr) == (0, "")
    checks = re.findall(r"^  (ok|FAIL) +(\w+):", done.stdout, re.MULTILINE)
    names = ("settings", "key", "storage", "logs", "memory", "skills", "prompts", "search")
    assert checks == [("ok", name) for name in names]
    assert str(home) in done.stdout
    assert "sk-secret-key-0001" not in done.stdout


def test_the_doctor_reads_the_users_yaml(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: coder\ntop_p: 7\n", encoding="utf-8")
    done = run("doctor", KODE_HOME=str(tmp_path), KIMI_API_KEY="sk-secret-key-0001")
    assert done.returncode == 1
    assert re.search(r"agent +coder +.*config\.yaml", done.stdout)
    assert re.search(r"FAIL settings: .*top_p", done.stdout)


def test_the_doctor_refuses_the_addresses_that_a_server_is_refused_for(tmp_path: Path) -> None:
    servers = "mcp:\n  far: {url: 'http://a.example/'}\n  near: {url: 'http://127.0.0.1:1/'}\n"
    (tmp_path / "config.yaml").write_text(servers, encoding="utf-8")
    done = run("doctor", KODE_HOME=str(tmp_path), KIMI_API_KEY="sk-secret-key-0001")
    assert done.returncode == 1
    assert re.search(r"FAIL mcp: .* far must begin with https://", done.stdout)
    assert re.search(r"ok +mcp: MCP servers on offer: near\.", done.stdout)


def test_without_a_home_the_systems_data_folder_is_used() -> None:
    done = run("doctor", KODE_HOME=None, KIMI_API_KEY="sk-secret-key-0001")
    assert done.stderr == ""
    assert re.search(r"storage_root +\S.*kode-sidecar", done.stdout)


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_the_demo_plays(tmp_path: Path, locale: str) -> None:  # E7
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    done = run("demo", "--fast", "--locale", locale, cwd=tmp_path, **folders)
    assert (done.returncode, done.stderr) == (0, "")
    assert "🧮 小计" in done.stdout
    assert list(tmp_path.glob("kode-demo-*/home/conversations/*/messages.jsonl"))


def test_the_contract_it_writes_is_the_one_in_the_project(tmp_path: Path) -> None:
    done = run("protocol", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == set(WIRE_FILES)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (ROOT / "protocol" / path.name).read_bytes()
