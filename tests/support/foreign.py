"""One turn with an editor that is not ours: what it is told to do and what must come of it.

The editor is a process of its own and spawns the sidecar itself. `EDITOR_SCENE` names a JSON file:

    command   the sidecar as an argument list
    root      the folder to open, and its `rootUri`
    file      a file in it; the editor opens it and makes its buffer `lines` without saving
    kode      `initializationOptions.kode`, or null for a client that knows nothing of it
    prompt    what to ask
    typed     a line that the user puts above the first one when the turn is over
    result    where to write what came of it, as JSON

The editor runs the turn, types, accepts everything, and shuts the sidecar down. The result has

    texts       the assistant's text blocks as they grew
    completed   the same from `block.completed`
    stopReason
    decided     the answer to `kode/changeSet/decide`
    edits       how many `workspace/applyEdit` came
    buffer      the text as the editor would save it
"""

import asyncio
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.model_script import answer, text, tool_call
from tests.support.node_tools import not_run
from tests.support.program import ROOT, SERVE
from tests.support.sidecar import HANG_SECONDS

KODE = {
    "protocolVersions": ["1.0"],
    "client": {"name": "foreign editor", "version": "1"},
    "trusted": True,
}
SAVED = (
    '// 配置 first\r\nlet 问候 = "👋🏽 你好 𠮷 " + name; // 旧\r\n\r\nkeep();\r\nlet end = 1;\r\n'
)
LINES = ["// 未保存 😀😀", *SAVED.split("\r\n")[:-2], "let end = 2; // 🍵 没有存盘"]
TYPED = "// 你在打字 🎹"
EDITS = [
    ('"👋🏽 你好 𠮷 " + name; // 旧', '"👋🏽 您好 𠮷 " + 名字; // 新 🙂\nlet 更多 = [1, 2];'),
    ("let end = 2; // 🍵", "let end = 3; // 🫖🍵"),
]
WANTED = [
    TYPED,
    "// 未保存 😀😀",
    "// 配置 first",
    'let 问候 = "👋🏽 您好 𠮷 " + 名字; // 新 🙂',
    "let 更多 = [1, 2];",
    "",
    "keep();",
    "let end = 3; // 🫖🍵 没有存盘",
]
INSTALL = "as root on Debian `.ci/run` installs it"
SAID = ("我先改这两处 🙂, one moment: 👩‍👩‍👧", "Done. 好了 🎉 𠮷")


@dataclass(frozen=True)
class Stage:
    """A project on disk and the environment of the editor in it."""

    root: Path
    file: Path
    scene: Path
    result: Path
    environment: Mapping[str, str]


def require(program: str) -> str:
    """The program's path. Where it is missing the test says NOT RUN; on a CI it fails."""
    return shutil.which(program) or not_run(f"{program} is missing; {INSTALL}")


def require_package(name: str) -> None:
    """The same for a Python package that development installs."""
    if find_spec(name) is None:
        not_run(f"{name} is missing; `dev.py test` installs it")


def not_available(reason: str) -> NoReturn:
    """Skip visibly, on a CI too: for what only some systems have."""
    warnings.warn(pytest.PytestWarning(f"NOT RUN: {reason}"), stacklevel=2)
    pytest.skip(f"NOT RUN: {reason}")


def stage(
    folder: Path, base_url: str, *, kode: Mapping[str, Any] | None, final_newline: bool = True
) -> Stage:
    """Lay out the project and the scene. Without a final newline the file has none either."""
    root = folder / "项目 one"
    root.mkdir()
    file = root / "配置 a.js"
    file.write_bytes(saved(final_newline))
    scene, result = folder / "scene.json", folder / "result.json"
    reported = {
        "command": SERVE,
        "root": str(root),
        "rootUri": root.as_uri(),
        "file": str(file),
        "uri": file.as_uri(),
        "lines": LINES,
        "finalNewline": final_newline,
        "kode": kode,
        "prompt": "Please 改 it 🙏",
        "typed": TYPED,
        "result": str(result),
    }
    scene.write_text(json.dumps(reported), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "KIMI_BASE_URL": base_url,
        "KIMI_API_KEY": "sk-test-key-000",
        "EDITOR_SCENE": str(scene),
    }
    return Stage(root, file, scene, result, environment)


def saved(final_newline: bool) -> bytes:
    """The file on disk."""
    return (SAVED if final_newline else SAVED.removesuffix("\r\n")).encode()


def model() -> ModelServer:
    """It says something, proposes the edits, and says something again."""
    edits = [{"old": old, "new": new} for old, new in EDITS]
    call = tool_call("propose_edit", {"path": "配置 a.js", "edits": edits})
    recording = Recording((answer(text(SAID[0], size=3), call), answer(text(SAID[1], size=3))))
    return ModelServer(recording, paced=False)


async def play(
    command: Sequence[str],
    folder: Path,
    *,
    kode: Mapping[str, Any] | None = KODE,
    final_newline: bool = True,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run the editor's process over the scene; its result, already compared."""
    async with model() as server:
        there = stage(folder, server.base_url, kode=kode, final_newline=final_newline)
        with (folder / "editor.log").open("w+b") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env={**there.environment, **(environment or {})},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                await asyncio.wait({asyncio.create_task(process.wait())}, timeout=HANG_SECONDS)
            finally:
                hung = process.returncode is None
                if hung:
                    process.kill()
                    await process.wait()
            log.seek(0)
            said = log.read().decode("utf-8", errors="replace")
    assert (hung, process.returncode) == (False, 0), said
    result = json.loads(there.result.read_bytes())
    check(result, there, final_newline=final_newline)
    return result


def check(result: Mapping[str, Any], there: Stage, *, final_newline: bool = True) -> None:
    """The text as the model said it, one verified edit, the buffer to the byte, disk untouched."""
    assert result["texts"] == list(SAID)
    assert result["completed"] == list(SAID)
    assert result["stopReason"] == "end_turn"
    decided = result["decided"]
    assert (decided["state"], decided["verified"]) == ("decided", True), decided
    assert len(decided["applied"]) == len(EDITS)
    assert decided["stale"] == decided["conflicts"] == decided["rejected"] == []
    assert result["edits"] == 1
    assert result["buffer"] == "\r\n".join(WANTED) + ("\r\n" if final_newline else "")
    assert there.file.read_bytes() == saved(final_newline)
    assert [path.name for path in there.root.iterdir()] == [there.file.name]
