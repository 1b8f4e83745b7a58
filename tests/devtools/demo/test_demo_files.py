"""The bundled project and recording fit each other."""

import json
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import load_recording
from kode_sidecar.devtools.demo.stage import EDITED_FILE, HERE, recorded_environment, set_stage


def tool_calls(stream: bytes) -> list[dict[str, Any]]:
    """The calls of a recorded answer: name and arguments."""
    calls: dict[int, dict[str, Any]] = {}
    for line in stream.decode("utf-8").split("\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                known = calls.setdefault(call["index"], {"name": "", "arguments": ""})
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"]["arguments"]
    return [{**call, "arguments": json.loads(call["arguments"])} for call in calls.values()]


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_the_recorded_edits_match_the_unsaved_text_once(locale: str) -> None:
    recording = load_recording(HERE / "recording" / locale, 15)
    looking, proposing, closing = (tool_calls(answer.body) for answer in recording.responses)
    assert [call["name"] for call in looking] == ["read_file", "search_code"]
    assert closing == []
    (call,) = proposing
    assert call["name"] == "propose_edit"
    assert call["arguments"]["path"] == EDITED_FILE
    unsaved = (HERE / "unsaved" / "receipt.js").read_bytes().decode("utf-8").replace("\r\n", "\n")
    on_disk = (HERE / "sample_project" / EDITED_FILE).read_text(encoding="utf-8")
    edits = call["arguments"]["edits"]
    assert [unsaved.count(edit["old"]) for edit in edits] == [1, 1]
    # One of them can only be made in the text that is not saved yet.
    assert [on_disk.count(edit["old"]) for edit in edits] == [1, 0]


def test_the_sample_keeps_its_line_ends_and_characters() -> None:
    for path in (HERE / "sample_project" / EDITED_FILE, HERE / "unsaved" / "receipt.js"):
        data = path.read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n") > 10
        assert "🧮 小计" in data.decode("utf-8")


def test_a_stage_is_a_copy_and_the_users_settings_stay_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stage = set_stage()
    assert stage.file.read_bytes() == (HERE / "sample_project" / EDITED_FILE).read_bytes()
    assert stage.unsaved_text != stage.file.read_bytes().decode("utf-8")
    environ = {"PATH": "/bin", "KODE_MODE": "auto", "Kimi_Api_Key": "mine", "MOONSHOT_API_KEY": "x"}
    assert recorded_environment(environ, "http://127.0.0.1:1/v1") == {
        "PATH": "/bin",
        "KIMI_BASE_URL": "http://127.0.0.1:1/v1",
        "KIMI_API_KEY": "sk-demo-recorded",
    }
