"""Forty rounds: failing tests, edits, diagnostics, a summary, a steer, and a second session."""

from typing import Any

from kode_sidecar.core.text.uris import file_path
from kode_sidecar.terminal.client.buffer import Buffer
from tests.support.answering_model import AnsweringModel
from tests.support.long_job import CONFIG, FILES, SETTINGS, Worker, with_python
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage
from tests.support.word_servers import WordServers, capabilities

__all__ = ["CONFIG", "FILES"]

ENVIRONMENT = {**SETTINGS, "PATH": with_python()}
IS_LONG = True
HANDSHAKE = {"kode_options": capabilities(), "trusted": True}


def model() -> AnsweringModel:
    return AnsweringModel(Worker())


def save(buffer: Buffer, new: str) -> None:
    file_path(buffer.uri).write_text(new, "utf-8")


async def play(stage: Stage) -> None:
    world = stage.world
    world.editor.write = save
    WordServers(world.editor, stage.project)
    world.editor.open(stage.project / "shop.py")
    first = await world.session(agent="coder", mode="auto", model="kimi-k2.6")

    async def symbols(_: dict[str, Any]) -> Any:
        """In the middle of the job the user steers, and works in another session."""
        steer = {"turnId": turn_id, "input": [{"type": "text", "text": "Mind the notes, 谢谢"}]}
        await world.client.request(
            "kode/turn/steer", {"sessionId": first.session_id, **steer}, HANG_SECONDS
        )
        second = await world.session(agent="coder", mode="auto", model="kimi-k2.6")
        await world.turn(second, "A second job")
        return {"symbols": []}

    world.client.handle("kode/editor/symbols", symbols)
    turn_id = await world.start(first, "Make the tests pass")
    turn = await world.watch.turn_end(first.session_id, turn_id, HANG_SECONDS * 2)
    assert turn.stop_reason == "end_turn"
    assert (stage.project / "notes.py").read_text("utf-8") == "DONE = True\n"
