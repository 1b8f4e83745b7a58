"""Sessions told in all three ways, played by the real process: what every fold is tested against.

`python -m tests.support.golden_folds` writes them anew after a change of the wire.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.terminal.client.handshake import client_capabilities
from tests.support.golden_session import ON_DISK, ROOT_URI, UNSAVED, normalised
from tests.support.model_script import answer, broken_off, hold, text, thinking, tool_call
from tests.support.program import ROOT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

Json = dict[str, Any]
FOLDER = ROOT / "protocol" / "fold" / "golden"
_EDIT = {"old": "    return 'hello ' + name", "new": '    return f"你好 {name} 👋"'}
_BYE = {"old": "    return 'bye ' + name", "new": '    return f"再见 {name}"'}
_DONE, _NEXT = {"text": "Look 看", "state": "done"}, {"text": "Tell", "state": "in_progress"}
_SPOKEN = answer(
    thinking("先想一想 🍵"), text("Half of it,"), hold("middle"), text(" and all of it 👋")
)
SESSIONS: dict[str, Sequence[RecordedResponse]] = {
    "edits": (
        answer(
            text("Let me look."),
            tool_call("read_file", {"path": "greetings.py"}),
            tool_call("list_files", {}),
        ),
        answer(
            tool_call("propose_edit", {"path": "greetings.py", "edits": [_EDIT]}),
            tool_call("update_plan", {"items": [_DONE, _NEXT]}),
        ),
        _SPOKEN,
    ),
    "keep": (
        answer(tool_call("propose_edit", {"path": "greetings.py", "edits": [_EDIT, _BYE]})),
        _SPOKEN,
    ),
    "retry": (broken_off(answer(text("This attempt breaks off in the middle.")), 4), _SPOKEN),
}
"""Each one is held in the middle of its last answer, where it is told as a snapshot, too."""
PROMPT = "Use f-strings, please. 谢谢 🙏"
RETRY_PROMPT = (
    f"{PROMPT} The line to the host may break off while you answer: then you are asked once more, "
    "and what you say the second time counts. This prompt is so long that the estimate of the lost "
    "tokens, in steps of a hundred, is the same for every name of the folder."
)


def read_golden(name: str) -> Json:
    """`stream` are the params of events and deltas in order. `snapshot`, `replay` and `pages` tell

    the whole of it; `middle` is a snapshot after `after` items of the stream.
    """
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


async def play(name: str, project: Path) -> Json:
    """Play one in an empty folder, and return it without what differs from run to run."""
    file = project / "greetings.py"
    file.write_bytes(ON_DISK.encode())
    capabilities = client_capabilities(("utf-16",))
    del capabilities["window"]
    handshake = {"locale": "en", "capabilities": capabilities}
    async with sidecar(SESSIONS[name], roots=[project], handshake=handshake) as world:
        world.editor.open(file, UNSAVED, language_id="python")
        mode = {"mode": name} if name == "keep" else {}
        session = await world.session(title="Greetings", model="kimi-k2.6", agent="coder", **mode)
        turn_id = await world.start(session, RETRY_PROMPT if name == "retry" else PROMPT)
        await world.model.reached("middle")
        await world.watch.until(
            lambda: any(b.text == "Half of it," for b in session.blocks.values())
        )
        await _ask(world, session, "attach")
        world.model.release("middle")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        if session.change_sets:
            first, *others = only_change_set(session).hunks()
            decisions = [{"hunkId": first.id, "action": "accept"}]
            decisions += [{"hunkId": hunk.id, "action": "reject"} for hunk in others]
            await world.decide(only_change_set(session), decisions=decisions)
        for params in ({}, {"afterSeq": 9}):
            await _ask(world, session, "attach", **params)
        await world.client.request(
            "kode/message/list", {"sessionId": session.session_id, "all": True}, HANG_SECONDS
        )
        await world.client.close()
        places = {project.as_uri(): ROOT_URI, path_to_uri(project): ROOT_URI}
        return _at_one_time(_reported(list(normalised(world.client.frames, places))))


async def _ask(world: World, session: SessionFold, what: str, **params: Any) -> None:
    params = {"sessionId": session.session_id, **params}
    await world.client.request(f"kode/session/{what}", params, HANG_SECONDS)


def _at_one_time(value: Any) -> Any:
    """Times run on in every answer that is written down; a message was made but once."""
    if isinstance(value, list):
        return [_at_one_time(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "2026-01-05T09:00:00.000Z" if name == "createdAt" else _at_one_time(inner)
        for name, inner in value.items()
    }


def _reported(frames: Sequence[Json]) -> Json:
    stream: list[Json] = []
    answers: list[Json] = []
    after = 0
    asked: dict[object, str] = {}
    for frame in (entry["message"] for entry in frames):
        method = frame.get("method", "")
        if method in ("kode/event", "kode/delta"):
            stream.append(frame["params"])
        elif method in ("kode/session/attach", "kode/message/list"):
            asked[frame["id"]] = method
        elif frame.get("id") in asked and "result" in frame:
            after = after or len(stream)
            answers.append(frame["result"])
    middle, snapshot, replay, listed = answers
    reported = {"snapshot": snapshot, "replay": replay, "pages": [listed["messages"]]}
    return {"stream": stream, "after": after, "middle": middle, **reported}


def main() -> None:
    """Play them and write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name in SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder).resolve()
            os.environ["KODE_HOME"] = str(top / "home")
            project = top / "teahouse"
            project.mkdir()
            reported = asyncio.run(play(name, project))
        text = json.dumps(reported, ensure_ascii=False, indent=1)
        (FOLDER / f"{name}.json").write_bytes(f"{text}\n".encode())


if __name__ == "__main__":
    main()
