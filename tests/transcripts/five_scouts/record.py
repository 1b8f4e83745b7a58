"""Five scouts explore at once and come home in another order; the conversation stays small."""

import asyncio

from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, hold, text
from tests.support.scout_model import explore, read, report, scout_model
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

APP = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n"
FILES = {"app.py": APP}
QUOTE = ("app.py", 4, 5, "def greet(name):\n    return 'hello ' + name")
FIVE = ("one", "two", "three", "four", "five 茶")


def model() -> AnsweringModel:
    scouts = {
        title: [
            answer(text(f"inner words of {title}"), read()),
            answer(hold(title), report(f"{title} is in app.py", QUOTE)),
        ]
        for title in FIVE
    }
    return scout_model([answer(explore(*FIVE)), answer(text("Now I know."))], scouts)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6")
    turn_id = await world.start(session, "Explore.")
    async with asyncio.timeout(HANG_SECONDS):
        for title in FIVE:  # all of them wait in their second answer
            await world.model.reached(title)
    for back, title in enumerate(reversed(FIVE), 1):
        world.model.release(title)
        await world.watch.until(lambda back=back: done(session) == back, HANG_SECONDS)
    await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    history = await world.client.request(
        "kode/message/list", {"sessionId": session.session_id}, HANG_SECONDS
    )
    roles = [message["role"] for message in history["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]


def done(session: SessionFold) -> int:
    return sum(scout.state == "done" for scout in session.scouts.values())
