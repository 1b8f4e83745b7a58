"""`agent.log`: what is in a line, what never is."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.message import Usage
from kode_sidecar.infrastructure.records.json_log import JsonLog, LogFiles, LogScope, Redaction

KEY = 'k"ey-über-123'


def timestamp() -> str:
    return "2026-01-02T03:04:05.678Z"


def open_log(folder: Path, redaction: Redaction | None = None, **more: Any) -> JsonLog:
    return JsonLog(LogFiles(folder), timestamp, redaction or Redaction(), **more)


def lines(folder: Path, name: str = "agent.log") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_bytes().split(b"\n") if line]


def test_a_line_has_all_the_fields(tmp_path: Path) -> None:  # A10
    log = open_log(tmp_path / "logs")
    scope = LogScope("t1", "c1", "m1", "kimi")
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=1)
    log.write(
        "info",
        "providers.kimi",
        "model_call",
        scope,
        duration_ms=12,
        tokens=usage,
        content={"prompt": "长" * 500},
        status=200,
    )
    log.write("debug", "x", "left_out")
    log.close()
    assert lines(tmp_path / "logs") == [
        {
            "time": timestamp(),
            "level": "info",
            "module": "providers.kimi",
            "event": "model_call",
            "trace_id": "t1",
            "conversation_id": "c1",
            "message_id": "m1",
            "provider": "kimi",
            "duration": 12,
            "tokens": {"input": 1, "output": 2, "total": 3, "cached": 1, "reasoning": 0},
            "status": 200,
            "prompt": "长" * 500,
        }
    ]


def test_redaction_keeps_the_head_and_a_hash(tmp_path: Path) -> None:  # A10
    log = open_log(tmp_path, Redaction(keep_chars=4))
    log.write("info", "m", "prompt", content={"prompt": "secret plans"}, note="kept whole")
    log.close()
    (line,) = lines(tmp_path)
    digest = hashlib.sha256(b"secret plans").hexdigest()
    assert line["prompt"] == {"head": "secr", "chars": 12, "sha256": digest}
    assert line["note"] == "kept whole"


@pytest.mark.parametrize("keep_chars", [None, 20])
def test_a_key_is_never_in_the_log(tmp_path: Path, keep_chars: int | None) -> None:  # A10 W14
    log = open_log(tmp_path, Redaction([KEY, ""], keep_chars))
    log.write(
        "error",
        "m",
        f"failed {KEY}",
        LogScope(provider=KEY),
        content={"prompt": f"my key is {KEY}!", "body": json.dumps({"key": KEY})},
        headers={"Authorization": "Bearer abcdefghijk", "X-Api-Key": "other", KEY: "x"},
        nested=[{"deep": (f"a{KEY}b", KEY)}],
        bare="sk-abcdefghijklmnop0123 and Authorization: Basic dXNlcjpwYXNz done",
        quoted='{"authorization": "Bearer zyxwvutsrq"}',
        error=ValueError(f"no {KEY}"),
    )
    log.close()
    raw = (tmp_path / "agent.log").read_text(encoding="utf-8")
    escaped = json.dumps(KEY, ensure_ascii=False)[1:-1]
    leaks = (KEY, escaped, "abcdefghijk", "other", "0123", "dXNlcjpwYXNz", "zyxwvutsrq", "ber-123")
    for leak in leaks:
        assert leak not in raw
    (line,) = lines(tmp_path)
    assert line["bare"] == "*** and Authorization: *** done"
    assert line["nested"] == [{"deep": ["a***b", "***"]}]


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_around_a_key_brings_it_back(before: str, after: str) -> None:  # W14
    key = "sk-Ab12Cd34Ef56Gh78"
    assert key not in Redaction([key]).text(before + key + after)
    assert key not in str(Redaction([key], keep_chars=25).content(before + key + after))


def test_control_characters_are_cleaned(tmp_path: Path) -> None:  # W13
    log = open_log(tmp_path)
    log.write("info", "m", "e", content={"text": "a\x1b[31mb\x00\x7f\x9b\r\n\tc\ud800"})
    log.close()
    assert lines(tmp_path)[0]["text"] == "a[31mb\n\tc\ufffd"


def test_what_cannot_be_shown_costs_only_itself(tmp_path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    log = open_log(tmp_path)
    log.write("info", "m", "loop", value=loop)
    log.write("info", "m", "next")
    log.close()
    assert [line["event"] for line in lines(tmp_path)] == ["loop", "next"]
    assert lines(tmp_path)[0]["not_logged"] == "RecursionError"


def test_files_rotate_by_size(tmp_path: Path) -> None:  # A10
    log = JsonLog(LogFiles(tmp_path, max_bytes=1, keep=2), timestamp, Redaction())
    for number in range(5):
        log.write("info", "m", "e", n=number)
        log.close()
        log = JsonLog(LogFiles(tmp_path, max_bytes=1, keep=2), timestamp, Redaction())
    log.close()
    names = ["agent.log", "agent.log.1", "agent.log.2"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names
    assert [lines(tmp_path, name)[0]["n"] for name in names] == [4, 3, 2]


def test_a_full_queue_drops_and_says_so(tmp_path: Path) -> None:  # A10
    gate = threading.Event()

    class Slow:
        def __str__(self) -> str:
            assert gate.wait(10)
            return "slow"

    log = open_log(tmp_path, max_waiting_chars=2_000)
    log.write("info", "m", "first", value=Slow())
    for _ in range(100):
        log.write("info", "m", "more", content={"text": "x" * 100})
    gate.set()
    log.close()
    found = lines(tmp_path)
    (said,) = [line for line in found if line["event"] == "lines_dropped"]
    kept = [line for line in found if line["event"] == "more"]
    assert said["count"] + len(kept) == 100
    assert len(kept) <= 6


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = open_log(tmp_path / "file")
    log.write("info", "m", "e")
    log.close()
    log.write("info", "m", "after close")
