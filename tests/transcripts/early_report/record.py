"""A scout reports before it has read anything, is told to read, and recovers."""

from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, tool_call
from tests.support.scout_model import explore, read, report, scout_model
from tests.support.transcripts import Stage

FILES = {"app.py": "import os\n"}


def model() -> AnsweringModel:
    scout = [
        answer(report("guessed")),
        answer(tool_call("read_file", {"path": "gone.py"})),
        answer(report("guessed again")),
        answer(read()),
        answer(report("known", ("app.py", 1, 1, "import os"), ("app.py", 1, 1, "import sys"))),
    ]
    return scout_model([answer(explore("a")), answer(text("I see."))], {"a": scout})


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    await stage.world.turn(session, "Explore.")
    assert [scout.state for scout in session.scouts.values()] == ["done"]
