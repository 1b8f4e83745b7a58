"""The session that `protocol/README.md` tells, played by the real process and written down.

`python -m tests.support.golden_session` writes it anew after a change of the wire.
"""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.terminal.client.connection import Frame
from kode_sidecar.terminal.client.handshake import client_capabilities
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS, only_change_set, sidecar

Json = dict[str, Any]
GOLDEN = ROOT / "protocol" / "examples" / "session.jsonl"

ROOT_URI = "file:///home/lin/teahouse"
ON_DISK = "# 茶铺 🍵\n\n\ndef greet(name):\n    return 'hello ' + name\n"
UNSAVED = ON_DISK + "\n\ndef leave(name):\n    return 'bye ' + name\n"
RESPONSES = (
    answer(
        thinking("Two functions glue strings. I should read the file first."),
        text("Let me look at greetings.py."),
        tool_call("read_file", {"path": "greetings.py"}),
    ),
    answer(
        text("Both can use f-strings 🍵"),
        tool_call(
            "propose_edit",
            {
                "path": "greetings.py",
                "edits": [
                    {"old": "    return 'hello ' + name", "new": '    return f"你好 {name} 👋"'},
                    {"old": "    return 'bye ' + name", "new": '    return f"再见 {name}"'},
                ],
            },
        ),
    ),
    answer(hold("decided"), text("Done. 请看 the two hunks.")),
)
DELTA_CHARS = 24

_IDS = {
    "sessionId": "session",
    "turnId": "turn",
    "messageId": "message",
    "parentId": "message",
    "blockId": "block",
    "changeSetId": "changes",
    "hunkId": "hunk",
    "requestId": "question",
}
_FIXED: Mapping[str, Any] = {
    "processId": 4711,
    "durationMs": 1200,
    "version": "0.1.0",
    "schemaSha256": "0" * 64,
}
_TIMES = ("ts", "createdAt", "updatedAt")


def read_golden() -> list[Json]:
    """The frames in the file: `from` is `client` or `server`, `message` is what was sent."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


async def play(project: Path) -> list[Json]:
    """Play it in an empty folder; the frames, without what differs from run to run."""
    file = project / "greetings.py"
    file.write_bytes(ON_DISK.encode())
    capabilities = client_capabilities(("utf-16",))
    del capabilities["window"]  # a progress would begin whenever the client has agreed to it
    handshake = {"locale": "zh-CN", "capabilities": capabilities}
    async with sidecar(RESPONSES, roots=[project], handshake=handshake) as world:
        world.editor.open(file, UNSAVED, language_id="python")
        session = await world.session(title="Greetings", model="kimi-k2.6")
        turn_id = await world.start(session, "Use f-strings, please. 谢谢 🙏")
        await world.watch.until(lambda: len(session.messages) == 5 and all_done(session))
        await world.model.reached("decided")
        accepted, rejected = only_change_set(session).hunks()
        await world.decide(
            only_change_set(session),
            seenSeq=session.seq,
            decisions=[
                {"hunkId": accepted.id, "action": "accept"},
                {"hunkId": rejected.id, "action": "reject", "comment": "leave() stays"},
            ],
        )
        world.model.release("decided")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        await world.client.close()
        places = {project.as_uri(): ROOT_URI, path_to_uri(project): ROOT_URI}
        return list(normalised(world.client.frames, places))


def all_done(session: Any) -> bool:
    return all(message.completed for message in session.messages.values())


def normalised(frames: Iterable[Frame], places: Mapping[str, str]) -> Iterator[Json]:
    """Frames as they go into the file; `places` are URIs of this run and what they are called."""
    cleaner = _Cleaner(places)
    for entry in _recut(frames):
        yield cleaner.clean(entry)


def _recut(frames: Iterable[Frame]) -> Iterator[Json]:
    """Deltas in even pieces: how they are merged depends on how fast the client reads.

    For the same reason nothing is said of edits that form.
    """
    growing: list[Json] = []
    for frame in frames:
        message = frame.message()
        if message.get("method") == "kode/event":
            reported = {event["type"] for event in message["params"]["events"]}
            if reported == {"changeSet.forming"}:
                continue
        if message.get("method") == "kode/delta":
            growing += message["params"]["deltas"]
            continue
        if message.get("method") == "kode/event":
            yield from _pieces(growing)
            growing = []
        yield {"from": "client" if frame.direction == "out" else "server", "message": message}


def _pieces(deltas: Iterable[Json]) -> Iterator[Json]:
    texts: dict[str, str] = {}
    for delta in deltas:
        texts[delta["blockId"]] = texts.get(delta["blockId"], "") + delta["add"]
    for block_id, grown in texts.items():
        for at in range(0, len(grown), DELTA_CHARS):
            piece = {"blockId": block_id, "at": at, "add": grown[at : at + DELTA_CHARS]}
            message = {"method": "kode/delta", "params": {"deltas": [piece]}, "jsonrpc": "2.0"}
            yield {"from": "server", "message": message}


class _Cleaner:
    """Ids are numbered by kind, times run evenly, places and versions are made up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        self._names: dict[str, str] = {}
        self._counts: dict[str, count[int]] = {}
        self._ticks = count()

    def clean(self, value: Any, member: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.clean(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.clean(inner, member) for inner in value]
        if member in _FIXED and value is not None:
            # A document's version is a number and stays.
            return value if member == "version" and isinstance(value, int) else _FIXED[member]
        if not isinstance(value, str):
            return value
        if member in _TIMES:
            tick = next(self._ticks)
            return f"2026-01-05T09:{tick // 6000:02}:{tick // 100 % 60:02}.{tick % 100:02}0Z"
        if member in _IDS and value not in self._names:
            number = next(self._counts.setdefault(_IDS[member], count(1)))
            self._names[value] = f"{_IDS[member]}-{number}"
        return self._rename(value)

    def _rename(self, text: str) -> str:
        for old, new in self._places.items():
            text = text.replace(old, new)
        for old, new in self._names.items():
            text = re.sub(rf"\b{re.escape(old)}\b", new, text)
        return text


def main() -> None:
    """Play it and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        os.environ["KODE_HOME"] = str(top / "home")
        project = top / "teahouse"
        project.mkdir()
        frames = asyncio.run(play(project))
    lines = (json.dumps(frame, ensure_ascii=False, separators=(",", ":")) for frame in frames)
    GOLDEN.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))


if __name__ == "__main__":
    main()
