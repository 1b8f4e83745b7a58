"""The demo as a user sees it: the real process, a recorded model, a person deciding."""

import io
import json
import re
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo import DemoOptions, play


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the demo makes its folders."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("KODE_MODE", "auto")  # a user's own settings change nothing
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    return tmp_path


@pytest.mark.parametrize("locale", ["zh", "en"])
async def test_the_demo_plays_to_its_end(top: Path, locale: str) -> None:  # E7, A9, E2, E3
    out = io.StringIO()
    code = await play(DemoOptions(fast=True, locale=locale), out)
    shown = out.getvalue()
    assert code == 0, shown
    assert re.findall(r"⚙ (\w+) .* ✓ ok", shown) == ["read_file", "search_code", "propose_edit"]
    # The proposal shows two hunks, the difference afterwards only the accepted one.
    accepted = "/* 🧮 小计 */ sum += priceOf(name) * count;"
    rejected = "return Math.round(total(items) * memberRate);"
    assert len(re.findall(rf"\+ +{re.escape(accepted)}", shown)) == 2
    assert len(re.findall(rf"\+ +{re.escape(rejected)}", shown)) == 1
    assert "kimi-k2.6" in shown  # A2: the retired default id was passed over, and it was said

    (conversation,) = top.glob("kode-demo-*/home/conversations/*")
    records = [conversation / "messages.jsonl", conversation / "journal.jsonl"]
    for record in records:
        assert str(record) in shown
        assert all(json.loads(line) for line in record.read_bytes().split(b"\n") if line)
    (log,) = top.glob("kode-demo-*/home/logs/agent.log")
    for record in [*records, log]:
        assert b"sk-demo-recorded" not in record.read_bytes()  # W14


async def test_live_without_a_key_says_what_to_set(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KIMI_API_KEY", raising=False)
    monkeypatch.delenv("MOONSHOT_API_KEY", raising=False)
    out = io.StringIO()
    assert await play(DemoOptions(live=True, locale="en"), out) == 1
    assert "set KIMI_API_KEY" in out.getvalue()
    assert str(top) in out.getvalue()
