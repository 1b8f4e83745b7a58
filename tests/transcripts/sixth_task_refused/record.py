"""A sixth task is refused: in one call by its params, over parallel calls by the scouts out."""

import asyncio

from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, hold, text
from tests.support.scout_model import explore, read, report, scout_model
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

FILES = {"app.py": "import os\n"}
FIVE = ("one", "two", "three", "four", "five")
CALLS = (
    explore("one", "two", "three", call_id="explore:0"),
    explore("four", "five", "six", call_id="explore:1"),
    explore("seven", call_id="explore:2"),
)


def model() -> AnsweringModel:
    scouts = {
        title: [answer(read()), answer(hold(title), report(title, ("app.py", 1, 1, "import os")))]
        for title in FIVE
    }
    main = [answer(explore(*"abcdef")), answer(*CALLS), answer(text("Five it is."))]
    return scout_model(main, scouts)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6")
    turn_id = await world.start(session, "Explore.")
    async with asyncio.timeout(HANG_SECONDS):
        for title in FIVE:
            await world.model.reached(title)
    for title in FIVE:
        world.model.release(title)
    await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    assert sorted(scout.title for scout in session.scouts.values()) == sorted(FIVE)
