"""Hooks that a project names: its files are values that can fail, and hold nothing up."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.servers.boot.project_hooks import ProjectHooks


def write_hooks(root: Path) -> Path:
    (root / ".kode").mkdir()
    hooks = {"Stop": [{"hooks": [{"command": ["sh", "check.sh"]}]}]}
    (root / ".kode" / "hooks.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    script = root / "check.sh"
    script.write_text("exit 0\n", encoding="utf-8")
    return script


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes among files")
def test_a_pipe_in_place_of_the_file_is_no_hook_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".kode").mkdir()
    os.mkfifo(tmp_path / ".kode" / "hooks.json")
    hooks = ProjectHooks(tmp_path / "state")
    assert (hooks.read([tmp_path]), hooks.problems) == ([], [])


def test_a_script_that_cannot_be_read_is_a_problem_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write_hooks(tmp_path)
    hooks = ProjectHooks(tmp_path / "state")
    (one,) = hooks.read([tmp_path])
    assert one.files == ["check.sh"]
    opened = Path.open

    def refuse(path: Path, *rest: Any, **more: Any) -> Any:
        if path == script:
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert hooks.read([tmp_path]) == []
    assert hooks.problems == [f"{script}: Permission denied."]
