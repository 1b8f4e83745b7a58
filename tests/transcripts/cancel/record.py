"""The user stops the turn in the middle of a text, then goes on."""

from tests.support.model_script import answer, hold, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

FILES = {"menu.py": "PRICE = 12\n"}
RESPONSES = (
    answer(text("First I read."), tool_call("read_file", {"path": "menu.py"})),
    answer(text("Then I talk and 说 😀"), hold("never"), text(" and talk.")),
    answer(text("Of course.")),
)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6")
    turn_id = await world.start(session, "Tell me all.")
    await world.watch.until(lambda: has_said(session, "Then I talk and 说 😀"), HANG_SECONDS)
    target = {"sessionId": session.session_id, "turnId": turn_id}
    cancelled = await world.client.request("kode/turn/cancel", target, HANG_SECONDS)
    assert cancelled == {"cancelled": True}
    end = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    assert end.stop_reason == "cancelled"
    assert (await world.turn(session, "Enough?")).stop_reason == "end_turn"


def has_said(session: SessionFold, words: str) -> bool:
    return any(block.text == words for block in session.blocks.values())
