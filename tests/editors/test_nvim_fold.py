"""The plugin's fold over the frames of the protocol's example session."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.editors.neovim_builds import SUITES
from tests.editors.neovim_driver import PLUGIN, require_neovim
from tests.support.program import ROOT

FRAMES = ROOT / "protocol" / "examples" / "session.jsonl"


def events() -> list[dict[str, Any]]:
    """All events of the session, in order."""
    lines = FRAMES.read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    reported = [m["params"]["events"] for m in messages if m.get("method") == "kode/event"]
    return [event for batch in reported for event in batch]


def test_the_example_session_folds_into_what_it_says(tmp_path: Path) -> None:  # F1
    build = require_neovim(SUITES[0])
    script, result = Path(__file__).with_name("fold_frames.lua"), tmp_path / "result.json"
    command = [*build.command, "-l", str(script), str(PLUGIN), str(FRAMES), str(result)]
    environment = {**os.environ, **build.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(result.read_bytes())
    said = {e["blockId"]: e["block"] for e in events() if e["type"] == "block.completed"}
    for block_id, block in said.items():
        assert found["blocks"][block_id]["type"] == block["type"]
        if block["type"] in ("text", "thinking"):
            assert found["blocks"][block_id]["text"] == block["text"]
    streamed = [b for b in found["blocks"].values() if b["grown"] and b["type"] == "text"]
    assert streamed
    assert [b["grown"] for b in streamed] == [b["text"] for b in streamed]
    states = {
        hunk["hunkId"]: hunk["state"]
        for event in events()
        if event["type"] == "changeSet.updated"
        for file in event["files"]
        for hunk in file["hunks"]
    }
    assert found["states"] == states
    assert found["seq"] == max(event.get("seq", 0) for event in events())
    assert (
        found["path"][-1] == [e["messageId"] for e in events() if e["type"] == "message.added"][-1]
    )
    assert found["over"]
