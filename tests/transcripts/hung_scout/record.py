"""A scout hangs until its ten minutes are over; another one is told in time to report."""

import asyncio

from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.scout_model import explore, read, report, scout_model
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

FILES = {"app.py": "import os\n"}
QUOTE = ("app.py", 1, 1, "import os")
MOVES_THE_CLOCK = True
LISTS = tool_call("list_files", {"directory": "."})


def model() -> AnsweringModel:
    scouts = {
        "quick": [answer(read()), answer(report("at once", QUOTE))],
        "hung": [answer(text("inner words"), read()), answer(hold("never"), report("too late"))],
        "slow": [
            answer(read()),
            answer(hold("late"), LISTS, read(call_id="r:1")),  # goes on when it should report
            answer(report("just in time", QUOTE)),
        ],
    }
    return scout_model([answer(explore(*scouts)), answer(text("Two of three."))], scouts)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6")
    turn_id = await world.start(session, "Explore.")
    async with asyncio.timeout(HANG_SECONDS):
        await world.model.reached("never")
        await world.model.reached("late")
    await world.watch.until(lambda: ended(session) == 1, HANG_SECONDS)
    stage.clock.write_text("575", encoding="ascii")
    world.model.release("late")
    await world.watch.until(lambda: ended(session) == 2, HANG_SECONDS)
    stage.clock.write_text("601", encoding="ascii")
    await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    assert {scout.title: scout.state for scout in session.scouts.values()} == {
        "quick": "done",
        "hung": "timed_out",
        "slow": "done",
    }


def ended(session: SessionFold) -> int:
    return sum(scout.state not in ("running", "reporting") for scout in session.scouts.values())
